"""Training with gradients of four batches to a step."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def train(steps=6, parts=4, batch=192):
    model = nn.Sequential(nn.Linear(256, 384), nn.GELU(), nn.Linear(384, 384), nn.GELU(), nn.Linear(384, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        for _ in range(parts):
            x, y = torch.randn(batch, 256), torch.randint(0, 10, (batch,))
            loss = nn.functional.cross_entropy(model(x), y) / parts
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


print(train())
