"""Training steps of reduced models of the usual kinds, in plain `nn` code: zero_grad, forward, loss, backward, update."""

from __future__ import annotations

import math
from types import SimpleNamespace

from rows_train import classify, step_row


def _layers(host):
    """The modules that several of these models share, made of the package's own `nn`."""
    torch, nn, F = host.torch, host.nn, host.F

    class Attention(nn.Module):
        """Several heads of attention to `memory`, or to the input itself."""

        def __init__(self, width, heads, causal=False):
            super().__init__()
            self.heads, self.causal = heads, causal
            self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

        def forward(self, x, memory=None):
            memory = x if memory is None else memory
            q, k, v = (
                p.view(p.shape[0], p.shape[1], self.heads, -1).transpose(1, 2)
                for p in (self.q(x), self.k(memory), self.v(memory))
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.o(y.transpose(1, 2).reshape(x.shape))

    class Mlp(nn.Module):
        def __init__(self, width, approximate="none"):
            super().__init__()
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.approximate = approximate

        def forward(self, x):
            return self.down(F.gelu(self.up(x), approximate=self.approximate))

    class PreNormBlock(nn.Module):
        """Layer norm before attention, cross attention (if asked for) and the two linear layers."""

        def __init__(self, width, heads, causal=False, cross=False, approximate="none"):
            super().__init__()
            self.attention, self.norm1 = Attention(width, heads, causal), nn.LayerNorm(width)
            self.cross, self.norm_cross = (Attention(width, heads), nn.LayerNorm(width)) if cross else (None, None)
            self.mlp, self.norm2 = Mlp(width, approximate), nn.LayerNorm(width)

        def forward(self, x, memory=None):
            x = x + self.attention(self.norm1(x))
            if self.cross is not None:
                x = x + self.cross(self.norm_cross(x), memory)
            return x + self.mlp(self.norm2(x))

    class Tokens(nn.Module):
        """Token and position embeddings."""

        def __init__(self, vocabulary, length, width):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)

        def forward(self, ids):
            return self.token(ids) + self.position(torch.arange(ids.shape[1]))

    return SimpleNamespace(Attention=Attention, Mlp=Mlp, PreNormBlock=PreNormBlock, Tokens=Tokens)


@step_row("model.bert", group="models")
def bert(host):
    torch, nn, parts = host.torch, host.nn, _layers(host)
    vocabulary, length, width, heads, batch = 8192, 128, 384, 6, 4

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.mlp = parts.Attention(width, heads), parts.Mlp(width)
            self.norm1, self.norm2, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(0.1)

        def forward(self, x):
            x = self.norm1(x + self.dropout(self.attention(x)))
            return self.norm2(x + self.dropout(self.mlp(x)))

    model = nn.Sequential(
        parts.Tokens(vocabulary, length, width),
        nn.LayerNorm(width),
        *[Layer() for _ in range(4)],
        nn.Linear(width, vocabulary),
    )
    ids = torch.randint(0, vocabulary, (batch, length))
    return classify(host, model, host.optim.AdamW(model.parameters(), lr=1e-4), ids, vocabulary, (batch, length))


@step_row("model.gpt2", group="models")
def gpt2(host):
    torch, nn, F, parts = host.torch, host.nn, host.F, _layers(host)
    vocabulary, length, width, heads, batch = 8192, 256, 384, 6, 2

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = parts.Tokens(vocabulary, length, width)
            self.blocks = nn.Sequential(*[parts.PreNormBlock(width, heads, causal=True, approximate="tanh") for _ in range(4)])
            self.norm = nn.LayerNorm(width)

        def forward(self, ids):
            return F.linear(self.norm(self.blocks(self.tokens(ids))), self.tokens.token.weight)

    model, ids = Gpt2(), torch.randint(0, vocabulary, (batch, length))
    return classify(host, model, host.optim.AdamW(model.parameters(), lr=1e-4), ids, vocabulary, (batch, length))


@step_row("model.llama", group="models")
def llama(host):
    torch, nn, F = host.torch, host.nn, host.F
    vocabulary, length, width, heads, kv_heads, hidden, batch = 8192, 256, 384, 6, 2, 1024, 2

    class RmsNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def rotate(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = RmsNorm(), RmsNorm()
            self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = (nn.Linear(width, width // heads * kv_heads, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(hidden, width, bias=False)

        def forward(self, x, cos, sin):
            n = self.norm1(x)
            q, k, v = (p(n).view(batch, length, -1, width // heads).transpose(1, 2) for p in (self.q, self.k, self.v))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape(batch, length, width))
            n = self.norm2(x)
            return x + self.down(F.silu(self.gate(n)) * self.up(n))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.layers = nn.ModuleList([Layer() for _ in range(4)])
            self.norm, self.head = RmsNorm(), nn.Linear(width, vocabulary, bias=False)
            half = width // heads // 2
            angles = torch.arange(length)[:, None] * 10_000.0 ** (-torch.arange(half) / half)
            self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
            self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

        def forward(self, ids):
            x = self.tokens(ids)
            for layer in self.layers:
                x = layer(x, self.cos, self.sin)
            return self.head(self.norm(x))

    model, ids = Llama(), torch.randint(0, vocabulary, (batch, length))
    return classify(host, model, host.optim.AdamW(model.parameters(), lr=1e-4), ids, vocabulary, (batch, length))


@step_row("model.resnet50", group="models")
def resnet50(host):
    nn, F = host.nn, host.F

    class Bottleneck(nn.Module):
        def __init__(self, entering, width, stride):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(entering, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
            self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
            self.shortcut = nn.Identity()
            if entering != 4 * width or stride != 1:
                self.shortcut = nn.Sequential(nn.Conv2d(entering, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            y = F.relu(self.norm2(self.conv2(y)))
            return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))

    blocks, entering = [], 64
    for width, stride, depth in ((64, 1, 2), (128, 2, 2), (256, 2, 2), (512, 2, 1)):
        for i in range(depth):
            blocks.append(Bottleneck(entering, width, stride if i == 0 else 1))
            entering = 4 * width
    model = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(entering, 1000),
    )
    optimizer = host.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    return classify(host, model, optimizer, host.torch.randn(4, 3, 96, 96), 1000)


@step_row("model.whisper_tiny", group="models")
def whisper(host):
    torch, nn, F, parts = host.torch, host.nn, host.F, _layers(host)
    vocabulary, frames, length, width, heads, batch = 8192, 600, 64, 384, 6, 2

    class Whisper(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv1d(80, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, padding=1)
            self.position = nn.Parameter(torch.zeros(frames // 2, width))
            self.encoder = nn.Sequential(*[parts.PreNormBlock(width, heads) for _ in range(2)], nn.LayerNorm(width))
            self.tokens = parts.Tokens(vocabulary, length, width)
            self.decoder = nn.ModuleList([parts.PreNormBlock(width, heads, causal=True, cross=True) for _ in range(2)])
            self.norm = nn.LayerNorm(width)
            self.mel = torch.randn(batch, 80, frames)

        def forward(self, ids):
            x = F.gelu(self.conv2(F.gelu(self.conv1(self.mel)))).transpose(1, 2)
            memory = self.encoder(x + self.position)
            y = self.tokens(ids)
            for block in self.decoder:
                y = block(y, memory)
            return F.linear(self.norm(y), self.tokens.token.weight)

    model, ids = Whisper(), torch.randint(0, vocabulary, (batch, length))
    return classify(host, model, host.optim.AdamW(model.parameters(), lr=1e-4), ids, vocabulary, (batch, length))


@step_row("model.unet", group="models")
def unet(host):
    torch, nn, F, parts = host.torch, host.nn, host.F, _layers(host)
    width, size, batch = 48, 32, 2

    class Residual(nn.Module):
        def __init__(self, entering, leaving):
            super().__init__()
            self.norm1, self.conv1 = nn.GroupNorm(8, entering), nn.Conv2d(entering, leaving, 3, padding=1)
            self.time = nn.Linear(4 * width, leaving)
            self.norm2, self.conv2 = nn.GroupNorm(8, leaving), nn.Conv2d(leaving, leaving, 3, padding=1)
            self.shortcut = nn.Conv2d(entering, leaving, 1) if entering != leaving else nn.Identity()

        def forward(self, x, time):
            y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
            return self.conv2(F.silu(self.norm2(y))) + self.shortcut(x)

    class ImageAttention(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.norm, self.attention = nn.GroupNorm(8, channels), parts.Attention(channels, 4)

        def forward(self, x):
            rows = self.norm(x).flatten(2).transpose(1, 2)
            return x + self.attention(rows).transpose(1, 2).reshape(x.shape)

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width), nn.SiLU())
            self.enter = nn.Conv2d(3, width, 3, padding=1)
            self.down1, self.down2 = Residual(width, width), Residual(width, 2 * width)
            self.half1, self.half2 = nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(2 * width, 2 * width, 3, 2, 1)
            self.middle1, self.middle2 = Residual(2 * width, 2 * width), Residual(2 * width, 2 * width)
            self.attention_down, self.attention = ImageAttention(2 * width), ImageAttention(2 * width)
            self.double2, self.double1 = (
                nn.Conv2d(2 * width, 2 * width, 3, padding=1),
                nn.Conv2d(2 * width, width, 3, padding=1),
            )
            self.up2, self.up1 = Residual(4 * width, 2 * width), Residual(2 * width, width)
            self.leave = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

        def forward(self, x, steps):
            half = width // 2
            angles = steps[:, None] * torch.exp(-math.log(10_000) * torch.arange(half) / half)
            time = self.time(torch.cat((angles.sin(), angles.cos()), -1))
            first = self.down1(self.enter(x), time)
            second = self.attention_down(self.down2(self.half1(first), time))
            y = self.middle2(self.attention(self.middle1(self.half2(second), time)), time)
            y = self.double2(F.interpolate(y, scale_factor=2.0, mode="nearest"))
            y = self.up2(torch.cat((y, second), 1), time)
            y = self.double1(F.interpolate(y, scale_factor=2.0, mode="nearest"))
            return self.leave(self.up1(torch.cat((y, first), 1), time))

    model = UNet()
    optimizer = host.optim.AdamW(model.parameters(), lr=1e-4)
    image, noise, steps = torch.randn(batch, 3, size, size), torch.randn(batch, 3, size, size), torch.rand(batch) * 1000

    def step():
        optimizer.zero_grad()
        F.mse_loss(model(image + noise, steps), noise).backward()
        optimizer.step()

    return step
