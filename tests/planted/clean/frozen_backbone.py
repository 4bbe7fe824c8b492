"""A new head on features of a network that is not trained."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


def train(steps=14, batch=192):
    backbone = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()).eval()
    head = nn.Linear(512, 10)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    for _ in range(steps):
        x, y = torch.randn(batch, 256), torch.randint(0, 10, (batch,))
        with torch.no_grad():
            features = backbone(x)
        loss = nn.functional.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print(train())
