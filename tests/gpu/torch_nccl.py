# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over NCCL (gloo without a GPU): as many ranks as the argument says, one GPU each."""
import os
import sys
import tempfile

from common import device, model, result, torch

import torch.distributed as distributed


def rank_main(rank, ranks, meeting):
    if device == "cuda":
        torch.cuda.set_device(rank)
    distributed.init_process_group("nccl" if device == "cuda" else "gloo", init_method="file://" + meeting, rank=rank, world_size=ranks)
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(model(layers=2))
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3)
    losses = []
    for n in range(20):
        data = torch.randn(4, 64, 512, generator=torch.Generator().manual_seed(n * ranks + rank)).to(device)
        loss = (net(data) ** 2).mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        distributed.all_reduce(loss)
        losses.append(loss.detach())
    if rank == 0:
        result(torch.stack(losses), *net.parameters())
    distributed.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        if ranks == 1:
            rank_main(0, 1, meeting)
        else:
            torch.multiprocessing.spawn(rank_main, (ranks, meeting), nprocs=ranks)
