"""Many small parameters, updated one at a time."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Experts(nn.Module):
    def __init__(self, count=48, width=64):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(count)])
        self.shifts = nn.ParameterList([nn.Parameter(torch.zeros(width)) for _ in range(count)])
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        scales, shifts = torch.stack(list(self.scales)), torch.stack(list(self.shifts))
        return self.head((x.unsqueeze(1) * scales + shifts).mean(dim=1))


def train(steps=14):
    model = Experts()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
    for _ in range(steps):
        x, y = torch.randn(64, 64), torch.randint(0, 8, (64,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # planted: single_tensor_optimizer
    return model


train()
