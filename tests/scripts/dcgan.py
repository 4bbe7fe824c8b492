"""Two convolutional networks against each other: transposed convolutions, batch norms, two optimizers."""

import torch
import torch.nn as nn
import torch.optim as optim


def weights_init(module):
    name = type(module).__name__
    if "Conv" in name:
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


torch.manual_seed(5)
nz, width = 8, 4
generator = nn.Sequential(
    nn.ConvTranspose2d(nz, width * 2, 4, 1, 0, bias=False),
    nn.BatchNorm2d(width * 2),
    nn.ReLU(True),
    nn.ConvTranspose2d(width * 2, width, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width),
    nn.ReLU(True),
    nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False),
    nn.Tanh(),
)
discriminator = nn.Sequential(
    nn.Conv2d(3, width, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
    nn.BatchNorm2d(width * 2),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(width * 2, 1, 4, 1, 0, bias=False),
    nn.Sigmoid(),
)
generator.apply(weights_init)
discriminator.apply(weights_init)
criterion = nn.BCELoss()
optimizer_d = optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_g = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
RESULT = []
for _ in range(4):
    discriminator.zero_grad()
    real = torch.rand(6, 3, 16, 16) * 2 - 1
    label = torch.full((6,), 1.0)
    loss_real = criterion(discriminator(real).view(-1), label)
    loss_real.backward()
    fake = generator(torch.randn(6, nz, 1, 1))
    label.fill_(0)
    loss_fake = criterion(discriminator(fake.detach()).view(-1), label)
    loss_fake.backward()
    optimizer_d.step()

    generator.zero_grad()
    label.fill_(1)
    output = discriminator(fake).view(-1)
    loss_g = criterion(output, label)
    loss_g.backward()
    optimizer_g.step()
    RESULT += [(loss_real + loss_fake).item(), loss_g.item(), output.mean().item()]
