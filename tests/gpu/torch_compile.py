# SPDX-License-Identifier: Apache-2.0
"""torch.compile: Inductor's Triton kernels. Whole numbers, whose result is exact whatever kernels are picked, and a function with
its gradient, which must be near what it gives eagerly."""
import os

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")

from common import device, result, torch


def mix(numbers):
    for n in range(8):
        numbers = ((numbers ^ (numbers >> 15)) * 2246822 + n) & 0xFFFFFFFF
    return numbers, numbers.sum(-1), numbers.amax(0)


def function(x, weight):
    x = torch.nn.functional.gelu(x @ weight) * torch.sigmoid(x)
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)


numbers = torch.arange(1 << 20, device=device).view(1024, 1024)
mixed = torch.compile(mix)
for _ in range(20):
    numbers, *sums = mixed(numbers)
for ours, eager in zip(mixed(numbers), mix(numbers)):
    if not torch.equal(ours, eager):
        raise SystemExit("a compiled function of whole numbers differs from the same, eager")
x = torch.randn(512, 1024, device=device, requires_grad=True)
weight = torch.randn(1024, 1024, device=device) / 32
compiled = torch.compile(function)
outputs = []
for call in (function, compiled, compiled):
    out = call(x, weight)
    (gradient,) = torch.autograd.grad(out.square().sum() + out.sum(), x)
    outputs.append((out, gradient))
torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-2, atol=1e-2)
torch.testing.assert_close(outputs[2], outputs[0], rtol=1e-2, atol=1e-2)
result(numbers, *sums)
