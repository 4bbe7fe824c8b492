"""Training that keeps the outputs of every step, and with each the graph that made it."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def train(steps=16, batch=192):
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    outputs = []
    for _ in range(steps):
        x, target = torch.randn(batch, 256), torch.randn(batch, 64)
        outputs.append(model(x))  # planted: memory_growth
        loss = nn.functional.mse_loss(outputs[-1], target)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
    return torch.stack(outputs).std()


train()
