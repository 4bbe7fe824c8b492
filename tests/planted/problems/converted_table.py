"""Scoring against a table that is stored in half precision and widened for every batch."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Index(nn.Module):
    def __init__(self, items=4000, width=128):
        super().__init__()
        self.register_buffer("table", torch.randn(items, width).half())
        self.query = nn.Linear(width, width)

    def forward(self, x):
        table = self.table.float()  # planted: conversions
        return self.query(x) @ table.T


def serve(requests=20):
    index = Index().eval()
    best = []
    with torch.no_grad():
        for _ in range(requests):
            scores = index(torch.randn(32, 128))
            best.append(scores.argmax(dim=1))
    return torch.stack(best)


serve()
