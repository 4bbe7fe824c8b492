"""Retrieval that ranks its scores with Python's sorted()."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Ranker(nn.Module):
    def __init__(self, width=128, items=1500):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.register_buffer("items", torch.randn(items, width))

    def forward(self, x):
        return self.query(x) @ self.items.T


def search(requests=16, batch=16):
    ranker = Ranker().eval()
    answers = []
    with torch.inference_mode():
        for _ in range(requests):
            scores = ranker(torch.randn(batch, 128))
            rows = scores.tolist()
            for row in rows:
                best = sorted(zip(row, range(1500), strict=True))[-10:]  # planted: python_between_ops
                answers.append([index for _, index in best])
    return answers


search()
