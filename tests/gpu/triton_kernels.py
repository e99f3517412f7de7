# SPDX-License-Identifier: Apache-2.0
"""Triton: a matrix product with tl.dot and a softmax of rows, fifty launches each, checked against PyTorch."""
from common import result, torch

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, N: tl.constexpr, SIDE: tl.constexpr, STEP: tl.constexpr):
    row, column = tl.program_id(0) * SIDE + tl.arange(0, SIDE), tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    inner = tl.arange(0, STEP)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for k in range(0, N, STEP):
        left = tl.load(a + row[:, None] * N + k + inner[None, :])
        right = tl.load(b + (k + inner[:, None]) * N + column[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * N + column[None, :], total)


@triton.jit
def softmax(x, y, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(x + at)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + at, power / tl.sum(power, 0))


n = 1024
a, b = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in "ab")
c, y = torch.empty(n, n, device="cuda"), torch.empty(n, n, device="cuda")
for _ in range(50):
    product[(n // 64, n // 64)](a, b, c, n, 64, 32)
    softmax[(n,)](c, y, n)
torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-1)
torch.testing.assert_close(y, torch.softmax(c, 1), rtol=1e-3, atol=1e-5)
result(c, y)
