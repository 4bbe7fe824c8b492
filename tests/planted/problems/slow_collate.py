"""Text training whose batches are padded token by token."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.utils.data import DataLoader

torch.manual_seed(0)
LENGTH = 200


def pad(samples):
    rows, labels = [], []
    for tokens, label in samples:
        row = [0] * LENGTH
        for position in range(LENGTH * 5):  # planted: data_loader_wait
            if position < LENGTH:
                row[position] = tokens[position % 40] + (position >= 40)
        rows.append(row)
        labels.append(label)
    return torch.tensor(rows), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(1002, 64)
        self.head = nn.Linear(64, 4)

    def forward(self, tokens):
        return self.head(self.embed(tokens))


def train():
    samples = [(torch.randint(0, 1000, (40,)).tolist(), number % 4) for number in range(320)]
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for tokens, labels in DataLoader(samples, batch_size=20, collate_fn=pad):
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


train()
