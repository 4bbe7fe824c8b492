"""Attention whose heads are projected by one small product each."""

# ruff: noqa: PERF401  the loop is the problem

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width=128, heads=64):
        super().__init__()
        self.heads = nn.ParameterList([nn.Parameter(0.1 * torch.randn(width, width // heads)) for _ in range(heads)])
        self.out = nn.Linear(width, width)

    def forward(self, x):
        weights = list(self.heads)
        projected = []
        for weight in weights:
            projected.append(x @ weight)  # planted: repeated_op
        mixed = torch.cat(projected, dim=-1)
        scores = torch.softmax(mixed @ mixed.transpose(1, 2) / 11.3, dim=-1)
        return self.out(scores @ x)


def predict(batches=16):
    model = Attention().eval()
    total = torch.zeros(())
    with torch.inference_mode():
        for _ in range(batches):
            x = torch.randn(4, 48, 128)
            total += model(x).square().mean()
    return total.item()


predict()
