"""Training that writes its weights as JSON in every step."""

import json
import os
import tempfile

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def train(log, steps=12, batch=192):
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        x, y = torch.randn(batch, 256), torch.randint(0, 10, (batch,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weights = model[0].weight.detach().tolist()
        log.write(json.dumps({"step": step, "weights": weights}))  # planted: python_between_ops
    return model


with open(os.path.join(tempfile.gettempdir(), f"log-{os.getpid()}.json"), "w") as stream:
    train(stream)
os.unlink(stream.name)
