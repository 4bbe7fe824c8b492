"""A polynomial fitted by hand-written steps until it is close enough."""

from itertools import count

import torch
import torch.nn.functional as F

torch.manual_seed(3)
target, bias = torch.randn(4, 1) * 5, torch.randn(1) * 5
fc = torch.nn.Linear(4, 1)
for step in count(1):
    x = torch.randn(32).unsqueeze(1)
    features = torch.cat([x**i for i in range(1, 5)], 1)
    fc.zero_grad()
    loss = F.smooth_l1_loss(fc(features), features.mm(target) + bias.item())
    loss.backward()
    for param in fc.parameters():
        param.data.add_(-0.1 * param.grad)
    if loss.item() < 1e-2 or step == 400:
        break
RESULT = [float(step), loss.item(), *fc.weight.view(-1).tolist(), fc.bias[0].item()]
