"""Training of a classifier, with the loss logged now and then."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def train(steps=16, batch=256):
    model = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Dropout(0.1), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    features, labels = torch.randn(2048, 256), torch.randint(0, 10, (2048,))
    log = []
    for step in range(steps):
        chosen = torch.randint(0, 2048, (batch,))
        loss = nn.functional.cross_entropy(model(features[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            log.append(f"step {step}: {loss.item():.3f}")
    return log


print("\n".join(train()))
