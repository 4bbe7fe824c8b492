"""Contrastive training that normalizes embeddings one row at a time."""

# ruff: noqa: PERF401  the loop is the problem

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 64))

    def forward(self, x):
        embedded = self.layers(x)
        rows = []
        for row in range(embedded.shape[0]):
            rows.append(embedded[row] / embedded[row].norm())  # planted: row_loop
        return torch.stack(rows)


def train(steps=12, batch=96):
    encoder = Encoder()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    target = torch.arange(batch)
    for _ in range(steps):
        x = torch.randn(batch, 128)
        left, right = encoder(x), encoder(x + 0.1 * torch.randn(batch, 128))
        loss = nn.functional.cross_entropy(left @ right.T / 0.1, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return encoder


train()
