"""Epochs of training, each with a validation under no_grad."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def batches(count, size=192):
    for _ in range(count):
        yield torch.randn(size, 256), torch.randint(0, 10, (size,))


def main(epochs=3):
    model = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for epoch in range(epochs):
        for x, y in batches(5):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            right = torch.zeros((), dtype=torch.int64)
            for x, y in batches(3):
                right += (model(x).argmax(dim=1) == y).sum()
        print(epoch, right.item() / (3 * 192))


main()
