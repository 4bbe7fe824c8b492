"""Training of an autoencoder, with a moving average of its weights kept by foreach ops."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    def __init__(self, width=384, inner=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 256), nn.SiLU(), nn.Linear(256, inner))
        self.decoder = nn.Sequential(nn.Linear(inner, 256), nn.SiLU(), nn.Linear(256, width))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def train(steps=14, batch=256):
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    weights = list(model.parameters())
    average = [weight.detach().clone() for weight in weights]
    for _ in range(steps):
        x = torch.randn(batch, 384)
        loss = nn.functional.mse_loss(model(x + 0.1 * torch.randn_like(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, weights, 0.01)
    return loss.item()


print(train())
