# SPDX-License-Identifier: Apache-2.0
"""What the programs in PyTorch share: everything that makes a run repeatable, and how a result is said."""
import hashlib
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)


def result(*tensors):
    """Prints a hash of every bit of the tensors."""
    bits = hashlib.sha256()
    for tensor in tensors:
        tensor = tensor.detach().to("cpu").contiguous()
        bits.update(tensor.view(torch.uint8).numpy().tobytes() if tensor.dim() else repr(tensor.item()).encode())
    print("result", bits.hexdigest()[:16], flush=True)


def model(width=512, layers=3):
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device)


def train(net, data, steps, amp=None):
    """`steps` steps of AdamW; the losses."""
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(device, enabled=amp is torch.float16)
    losses = []
    for _ in range(steps):
        with torch.autocast(device, dtype=amp or torch.bfloat16, enabled=amp is not None):
            loss = (net(data).float() ** 2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        optimiser.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses)
