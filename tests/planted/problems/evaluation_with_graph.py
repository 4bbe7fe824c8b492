"""Training with a validation after it that forgets torch.no_grad()."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def batches(count, size=192):
    for _ in range(count):
        yield torch.randn(size, 256), torch.randint(0, 10, (size,))


def train(model, optimizer):
    for x, y in batches(8):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def validate(model):
    right = torch.zeros((), dtype=torch.int64)
    for x, y in batches(12):
        right += (model(x).argmax(dim=1) == y).sum()  # planted: unused_graph
    return right.item() / (12 * 192)


def main():
    model = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer)
    return validate(model)


main()
