"""Training that looks for hard samples by reading every loss on its own."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.body(x))


def train(steps=14, batch=256):
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    features, labels = torch.randn(2048, 256), torch.randint(0, 10, (2048,))
    hard = []
    for step in range(steps):
        first = step * batch % 2048
        x, y = features[first : first + batch], labels[first : first + batch]
        losses = nn.functional.cross_entropy(model(x), y, reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        for sample in range(batch):
            if losses[sample].item() > 4.0:  # planted: host_sync
                hard.append(first + sample)  # noqa: PERF401  the problem is above
    return model, hard


train()
