"""A small GPT over characters: causal attention, AdamW in groups, warm-up and cosine decay, clipping, sampling."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class Config:
    block: int = 16
    vocab: int = 0
    layers: int = 2
    heads: int = 2
    width: int = 16
    dropout: float = 0.1


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)
        self.drop = nn.Dropout(config.dropout)
        self.heads = config.heads
        self.register_buffer("seen", torch.tril(torch.ones(config.block, config.block)).view(1, 1, config.block, config.block))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.qkv(x).split(c, dim=2))
        if self.training:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.seen[:, :, :t, :t] == 0, float("-inf"))
            y = self.drop(F.softmax(scores, dim=-1)) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
            nn.Dropout(config.dropout),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab, config.width),
                wpe=nn.Embedding(config.block, config.width),
                h=nn.ModuleList([Block(config) for _ in range(config.layers)]),
                ln_f=nn.LayerNorm(config.width),
            )
        )
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        self.transformer.wte.weight = self.head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def optimizer(self, decay, lr):
        params = {name: p for name, p in self.named_parameters() if p.requires_grad}
        groups = [
            {"params": [p for p in params.values() if p.dim() >= 2], "weight_decay": decay},
            {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        logits = self.head(self.transformer.ln_f(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)

    @torch.no_grad()
    def generate(self, idx, count, top_k=5):
        for _ in range(count):
            logits = self(idx[:, -self.config.block :])[0][:, -1, :]
            best, _ = torch.topk(logits, top_k)
            logits[logits < best[:, [-1]]] = -float("Inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return idx


text = "a rose is a rose is a rose. " * 20
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text], dtype=torch.long)
torch.manual_seed(1337)
model = GPT(Config(vocab=len(chars)))
optimizer = model.optimizer(0.1, 1e-2)
RESULT = []
for step in range(12):
    lr = 1e-2 * min(1.0, (step + 1) / 4) * 0.5 * (1.0 + math.cos(math.pi * step / 12))
    for group in optimizer.param_groups:
        group["lr"] = lr
    ix = torch.randint(len(data) - 16, (4,))
    x, y = torch.stack([data[i : i + 16] for i in ix]), torch.stack([data[i + 1 : i + 17] for i in ix])
    _, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    RESULT += [loss.item(), norm.item()]
model.eval()
RESULT += [float(i) for i in model.generate(data[None, :3], 12)[0].tolist()]
