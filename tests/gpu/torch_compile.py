# SPDX-License-Identifier: Apache-2.0
"""torch.compile: Inductor's Triton kernels, forward and backward, beside the same function run eagerly."""
from common import device, result, torch


def function(x, weight):
    x = torch.nn.functional.gelu(x @ weight) * torch.sigmoid(x)
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)


x = torch.randn(512, 1024, device=device, requires_grad=True)
weight = torch.randn(1024, 1024, device=device) / 32
compiled = torch.compile(function)
outputs = []
for call in (function, compiled, compiled):
    out = call(x, weight)
    (gradient,) = torch.autograd.grad(out.square().sum(), x)
    outputs.append((out, gradient))
torch.testing.assert_close(outputs[0][0], outputs[1][0], rtol=1e-3, atol=1e-3)
result(*outputs[1], *outputs[2])
