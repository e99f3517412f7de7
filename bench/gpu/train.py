#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training loop on stock PyTorch (transformer, bfloat16 autocast, AdamW), deterministic.

Prints the loss after ten steps, which must not depend on who else runs, and the steps per second.
"""
import sys
import time

import torch

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 6
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(
    *[torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, dropout=0.0) for _ in range(4)]
).cuda()
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
data = torch.randn(8, 512, 768, device="cuda")


def step():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = (model(data) ** 2).mean()
    loss.backward()
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return loss


for _ in range(10):
    loss = step()
print("train loss after 10 steps %.9f" % loss.item(), flush=True)
start, steps = time.perf_counter(), 0
while time.perf_counter() - start < seconds:
    loss = step()
    steps += 1
    if steps % 4 == 0:
        loss.item()
torch.cuda.synchronize()
print("train steps/s %.2f" % (steps / (time.perf_counter() - start)))
