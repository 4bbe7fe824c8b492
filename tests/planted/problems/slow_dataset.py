"""Training on images that the dataset augments pixel by pixel in Python."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Images(Dataset):
    def __init__(self, count=160):
        self.images = torch.randn(count, 256)
        self.labels = torch.randint(0, 10, (count,)).tolist()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        pixels = self.images[index].tolist()
        brightest = pixels[0]
        for position in range(6 * 256):  # planted: data_loader_wait
            value = pixels[position % 256] * 0.98 + 0.01
            brightest = value if value > brightest else brightest
            pixels[position % 256] = value
        return torch.tensor(pixels) / brightest, self.labels[index]


def train():
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in DataLoader(Images(), batch_size=16):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


train()
