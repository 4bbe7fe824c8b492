"""Training on features that are kept as lists of numbers and made into tensors in every step."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def train(steps=12, batch=192):
    rows = torch.randn(4 * batch, 128).tolist()
    labels = torch.randint(0, 10, (4 * batch,))
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        first = step % 4 * batch
        x = torch.tensor(rows[first : first + batch])  # planted: python_between_ops
        loss = nn.functional.cross_entropy(model(x), labels[first : first + batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


train()
