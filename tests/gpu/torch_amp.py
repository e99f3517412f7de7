# SPDX-License-Identifier: Apache-2.0
"""PyTorch, mixed precision: float16 with gradient scaling, and bfloat16."""
from common import device, model, result, torch, train

data = torch.randn(8, 128, 512, device=device)
if device == "cuda":
    result(train(model(), data, 10, torch.float16), train(model(), data, 10, torch.bfloat16))
else:
    result(train(model(), data, 2, torch.bfloat16))
