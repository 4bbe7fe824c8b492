"""Training that skips noisy batches only after computing their gradients."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def is_noisy(step):
    return step % 3 == 2


def train(steps=18, batch=192):
    model = nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        x, y = torch.randn(batch, 256), torch.randint(0, 10, (batch,))
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # planted: unused_gradients
        if is_noisy(step):
            optimizer.zero_grad()
            continue
        optimizer.step()
        optimizer.zero_grad()
    return model


train()
