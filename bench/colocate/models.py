# SPDX-License-Identifier: Apache-2.0
"""What is served and what is trained: stock PyTorch, random weights, no downloads.

REQUESTS[name](device) returns one request as a callable that only queues work (so that a CUDA graph can
hold it); TRAINING[name](device) returns one step of a training loop. BERT-base and GPT-2 small are
written out with PyTorch's own layers; ResNet-50 is torchvision's.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer layer; post-norm as BERT has it, pre-norm and causal as GPT-2 has it."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        return qkv.permute(2, 0, 3, 1, 4)

    def merge(self, x):
        return self.out(x.transpose(1, 2).flatten(2))

    def feed(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh" if self.causal else "none"))

    def forward(self, x):
        if self.causal:
            q, k, v = self.split(self.norm1(x))
            x = x + self.merge(F.scaled_dot_product_attention(q, k, v, is_causal=True))
            return x + self.feed(self.norm2(x))
        q, k, v = self.split(x)
        x = self.norm1(x + self.merge(F.scaled_dot_product_attention(q, k, v)))
        return self.norm2(x + self.feed(x))

    def decode(self, x, keys, values, last, mask):
        """One token behind a cache of `keys` and `values`, of which `last` is the token's place."""
        q, k, v = self.split(self.norm1(x))
        keys.index_copy_(2, last, k)
        values.index_copy_(2, last, v)
        x = x + self.merge(F.scaled_dot_product_attention(q, keys, values, attn_mask=mask))
        return x + self.feed(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, words, length, causal, width=768, heads=12, layers=12):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, causal) for _ in range(layers))
        self.causal, self.heads, self.width = causal, heads, width
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        if not self.causal:
            x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) if self.causal else x

    def loss(self, tokens, targets):
        return F.cross_entropy(self.head(self(tokens)).flatten(0, 1).float(), targets.flatten())


def build(device, make):
    """The model, made where it will be: random numbers come faster there."""
    with torch.device(device):
        return make()


def bert():
    return Transformer(30522, 512, causal=False)


def gpt2():
    return Transformer(50257, 1024, causal=True)


def half(device):
    return torch.float16 if device == "cuda" else torch.float32


def serve_resnet50(device):
    import torchvision

    model = build(device, lambda: torchvision.models.resnet50(weights=None)).to(half(device)).eval()
    image = torch.randn(1, 3, 224, 224, device=device, dtype=half(device))
    return lambda: model(image)


def serve_bert(device):
    model = build(device, bert).to(half(device)).eval()
    tokens = torch.randint(30522, (8, 128), device=device)
    return lambda: model(tokens)


def serve_gpt2(device, context=256, room=512):
    """One token of GPT-2, its keys and values behind `context` earlier ones."""
    model = build(device, gpt2).to(half(device)).eval()
    shape = (1, model.heads, room, model.width // model.heads)
    cache = [[torch.randn(shape, device=device, dtype=half(device)) for _ in "kv"] for _ in model.blocks]
    token = torch.randint(50257, (1, 1), device=device)
    last = torch.tensor([context], device=device)
    mask = (torch.arange(room, device=device) <= last).view(1, 1, 1, room)

    def request():
        x = model.words(token) + model.places(last)
        for block, (keys, values) in zip(model.blocks, cache):
            x = block.decode(x, keys, values, last, mask)
        return model.head(model.norm(x)).argmax(-1)

    return request


def training(device, model, optimiser, loss):
    """One step under automatic mixed precision."""
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")

    def step():
        with torch.autocast(device, dtype=torch.float16 if device == "cuda" else torch.bfloat16):
            value = loss()
        scaler.scale(value).backward()
        scaler.step(optimiser)
        scaler.update()
        optimiser.zero_grad(set_to_none=True)
        return value

    return step


def train_resnet50(device, batch=64):
    import torchvision

    if device != "cuda":
        batch = 2
    model = build(device, lambda: torchvision.models.resnet50(weights=None))
    images = torch.randn(batch, 3, 224, 224, device=device)
    classes = torch.randint(1000, (batch,), device=device)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return training(device, model, optimiser, lambda: F.cross_entropy(model(images), classes))


def train_transformer(device, make, words, batch, length):
    if device != "cuda":
        batch, length = 1, 16
    model = build(device, make)
    tokens = torch.randint(words, (batch, length), device=device)
    targets = torch.randint(words, (batch, length), device=device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5)
    return training(device, model, optimiser, lambda: model.loss(tokens, targets))


def matmul_loop(device, n=8192, times=8):
    """Large products one after another: launches that fill the device, no host work."""
    if device != "cuda":
        n = 256
    a, b = (torch.randn(n, n, device=device, dtype=half(device)) for _ in "ab")
    out = torch.empty_like(a)

    def step():
        for _ in range(times):
            torch.matmul(a, b, out=out)

    return step


REQUESTS = {"resnet50": serve_resnet50, "bert": serve_bert, "gpt2": serve_gpt2}
TRAINING = {
    "resnet50-train": train_resnet50,
    "gpt2-train": lambda device: train_transformer(device, gpt2, 50257, 8, 512),
    "bert-train": lambda device: train_transformer(device, bert, 30522, 32, 128),
    "matmul": matmul_loop,
}
