"""A variational autoencoder: reparameterized samples, a sum of two losses, pictures from noise."""

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self, width=64, hidden=32, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, hidden), nn.ReLU())
        self.mean, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, width), nn.Sigmoid())

    def forward(self, x):
        h = self.encoder(x.view(x.size(0), -1))
        mean, logvar = self.mean(h), self.logvar(h)
        std = torch.exp(0.5 * logvar)
        return self.decoder(mean + torch.randn_like(std) * std), mean, logvar


def loss_function(made, x, mean, logvar):
    entropy = F.binary_cross_entropy(made, x.view(x.size(0), -1), reduction="sum")
    return entropy - 0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())


torch.manual_seed(1)
data = torch.rand(60, 1, 8, 8).round()
loader = DataLoader(TensorDataset(data), batch_size=20, shuffle=True)
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
RESULT = []
for _ in range(3):
    model.train()
    for (batch,) in loader:
        optimizer.zero_grad()
        made, mean, logvar = model(batch)
        loss = loss_function(made, batch, mean, logvar)
        loss.backward()
        optimizer.step()
        RESULT.append(loss.item() / len(batch))
model.eval()
with torch.no_grad():
    RESULT.append(model.decoder(torch.randn(8, 4)).mean().item())
