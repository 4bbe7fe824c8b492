"""A convolutional classifier of images, as the first script of many: arguments, loaders, a schedule, a checkpoint."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    """Noisy copies of ten random pictures."""

    def __init__(self, count, seed):
        source = torch.Generator().manual_seed(seed)
        shapes = torch.rand(10, 1, 12, 12, generator=torch.Generator().manual_seed(99))
        self.labels = torch.randint(10, (count,), generator=source)
        self.images = shapes[self.labels] + 0.3 * torch.randn(count, 1, 12, 12, generator=source)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.drop = nn.Dropout(0.25)
        self.fc = nn.Linear(16 * 5 * 5, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return F.log_softmax(self.fc(self.drop(torch.flatten(x, 1))), dim=1)


def train(model, device, loader, optimizer, losses):
    model.train()
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


def test(model, device, loader):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(dim=1, keepdim=True).eq(target.view(-1, 1)).sum().item()
    return loss / len(loader.dataset), correct


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1.0)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Digits(96, 0), args.batch_size, shuffle=True)
    held_out = DataLoader(Digits(40, 1), 20)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    for _ in range(args.epochs):
        train(model, device, loader, optimizer, losses)
        loss, correct = test(model, device, held_out)
        losses += [loss, float(correct)]
        scheduler.step()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mnist_cnn.pt")
        torch.save(model.state_dict(), path)
        again = Net()
        again.load_state_dict(torch.load(path))
    losses.append(test(again, device, held_out)[0])
    return losses


if __name__ == "__main__":
    RESULT = main()
