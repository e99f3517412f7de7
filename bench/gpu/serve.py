#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An inference server on stock PyTorch: Poisson requests to a transformer encoder (fp16, batch 8 x 128).

Latency counts from the time a request was due. Prints one line; `sum` is a checksum of the last answer.
"""
import argparse
import random
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--graph", action="store_true", help="replay a CUDA graph instead of running eagerly")
parser.add_argument("--seconds", type=float, default=4)
parser.add_argument("--rate", type=float, default=100, help="requests per second")
options = parser.parse_args()

torch.manual_seed(0)
random.seed(1)
layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 6).cuda().half().eval()
batch = torch.randn(8, 128, 768, device="cuda", dtype=torch.half)
answer = None


def eager():
    global answer
    answer = model(batch)


with torch.no_grad():
    for _ in range(5):
        eager()
    torch.cuda.synchronize()
    request = eager
    if options.graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            eager()
        request = graph.replay
    request()
    torch.cuda.synchronize()
    latency = []
    start = due = time.perf_counter()
    while due < start + options.seconds:
        due += random.expovariate(options.rate)
        time.sleep(max(0, due - time.perf_counter()))
        request()
        torch.cuda.synchronize()
        latency.append((time.perf_counter() - due) * 1e3)

latency.sort()
print(
    "serve%s n %d p50 %.2f p99 %.2f max %.2f ms sum %.6f"
    % (
        " graph" if options.graph else "",
        len(latency),
        latency[len(latency) // 2],
        latency[int(len(latency) * 0.99)],
        latency[-1],
        answer.float().abs().sum().item(),
    )
)
