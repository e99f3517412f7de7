# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs in PyTorch: a captured inference, and a captured training step, replayed among eager work."""
from common import device, model, result, torch

net = model().eval()
data = torch.randn(8, 128, 512, device=device)
optimiser = torch.optim.AdamW(net.parameters(), lr=1e-4, capturable=device == "cuda")


def step():
    optimiser.zero_grad(set_to_none=False)
    loss = (net(data) ** 2).mean()
    loss.backward()
    optimiser.step()
    return loss


replay = step
if device == "cuda":
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    replay = lambda: graph.replay() or captured
losses = []
for n in range(30 if device == "cuda" else 2):
    data.copy_(torch.randn(8, 128, 512, generator=torch.Generator().manual_seed(n)))
    losses.append(replay().detach().clone())
with torch.no_grad():
    result(torch.stack(losses), net(data))
