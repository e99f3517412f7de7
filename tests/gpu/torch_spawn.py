# SPDX-License-Identifier: Apache-2.0
"""A server of several processes (torch.multiprocessing, spawn): each works on the device and hands a tensor of
its own over to the parent, which reads it where it lies (CUDA IPC)."""
from common import device, model, result, torch

import torch.multiprocessing as processes


def serve(rank, requests, answers):
    torch.manual_seed(rank)
    net = model(layers=2).eval()
    with torch.no_grad():
        while (seed := requests.get()) is not None:
            data = torch.randn(4, 64, 512, generator=torch.Generator().manual_seed(seed)).to(device)
            answers.put(net(data))
            requests.task_done()
        requests.task_done()


if __name__ == "__main__":
    context = processes.get_context("spawn")
    sums, workers = [], []
    for rank in range(3):
        requests, answers = context.JoinableQueue(), context.Queue()
        workers.append((context.Process(target=serve, args=(rank, requests, answers)), requests, answers))
        workers[-1][0].start()
    for seed in range(4):
        for _, requests, _ in workers:
            requests.put(seed)
        for _, _, answers in workers:
            answer = answers.get(timeout=60)
            sums.append(answer.cpu().clone())
            del answer
    for process, requests, _ in workers:
        requests.put(None)
        process.join(30)
        if process.exitcode != 0:
            raise SystemExit("a worker ended with %s" % process.exitcode)
    result(torch.stack(sums))
