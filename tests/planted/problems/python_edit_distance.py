"""Sequence training that measures edit distances in plain Python in every step."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def edit_distance(a, b):
    above = [*range(len(b) + 1)]
    for i in range(1, len(a) + 1):
        row = [i]
        for j in range(1, len(b) + 1):  # planted: python_between_ops
            change = above[j - 1] + (a[i - 1] != b[j - 1])
            up, left = above[j] + 1, row[j - 1] + 1
            least = change if change < up else up
            row += [least if least < left else left]
        above = row
    return above[-1]


def train(steps=12, batch=8, length=48, symbols=32):
    model = nn.Sequential(nn.Embedding(symbols, 128), nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, symbols))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    worst = 0
    for _ in range(steps):
        source = torch.randint(0, symbols, (batch, length))
        logits = model(source)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), source.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guessed, wanted = logits.argmax(-1).tolist(), source.tolist()
        for guess, want in zip(guessed, wanted, strict=True):
            distance = edit_distance(guess, want)
            worst = distance if distance > worst else worst
    return worst


train()
