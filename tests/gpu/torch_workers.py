# SPDX-License-Identifier: Apache-2.0
"""A DataLoader with four forked workers and pinned memory, after CUDA is up in the parent."""
from common import device, model, result, torch, train


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, n):
        return torch.randn(64, 512, generator=torch.Generator().manual_seed(n))


if __name__ == "__main__":
    net = model(layers=2)
    loader = torch.utils.data.DataLoader(
        Samples(), batch_size=8, num_workers=4, pin_memory=device == "cuda", multiprocessing_context="fork"
    )
    losses = [train(net, batch.to(device, non_blocking=True), 1) for _ in range(2) for batch in loader]
    result(torch.cat(losses))
