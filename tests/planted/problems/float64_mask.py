"""Training with a mask from NumPy, whose numbers are float64."""

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Masked(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.first = nn.Linear(32, width)
        self.second = nn.Linear(width, 10)
        keep = np.where(np.arange(width) % 8 == 0, 0.0, 1.0)
        self.mask = torch.from_numpy(np.tile(keep, (512, 1)))

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        kept = hidden * self.mask  # planted: promotion
        return self.second(kept.float())


def train(steps=14):
    model = Masked()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x, y = torch.randn(512, 32), torch.randint(0, 10, (512,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


train()
