"""Training that collects garbage after every step."""

import gc

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Tokens:
    """A vocabulary, as programs keep them: many small objects."""

    def __init__(self, count=150_000):
        self.names = [[number, str(number)] for number in range(count)]


def train(steps=14, batch=128):
    vocabulary = Tokens()
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x, y = torch.randn(batch, 256), torch.randint(0, 10, (batch,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gc.collect()  # planted: gc_pauses
    return len(vocabulary.names)


train()
