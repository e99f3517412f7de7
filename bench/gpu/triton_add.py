#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Triton kernel, launched fifty times and checked."""
import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(a + i, mask=inside) * 2 + tl.load(b + i, mask=inside), mask=inside)


a = torch.randn(1 << 22, device="cuda")
b = torch.randn_like(a)
out = torch.empty_like(a)
for _ in range(50):
    add[(triton.cdiv(a.numel(), 256),)](a, b, out, a.numel(), BLOCK=256)
torch.cuda.synchronize()
equal = torch.equal(out, a * 2 + b)
print("triton", "equal" if equal else "DIFFERS")
raise SystemExit(not equal)
