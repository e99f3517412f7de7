# SPDX-License-Identifier: Apache-2.0
"""PyTorch, eager: training and inference of a transformer, a convolution, sorts and scans."""
from common import device, model, result, torch, train

net = model()
data = torch.randn(8, 128, 512, device=device)
losses = train(net, data, 20)
image = torch.randn(4, 16, 64, 64, device=device)
folded = torch.nn.functional.conv2d(image, torch.randn(32, 16, 3, 3, device=device), padding=1)
numbers = torch.randint(1 << 20, (1 << 18,), device=device)
with torch.no_grad():
    result(losses, net(data), folded, numbers.sort().values, torch.unique(numbers))
