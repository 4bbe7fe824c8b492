"""Training of a recurrent classifier of sequences."""

import mindtorch_v2 as torch
from mindtorch_v2 import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, symbols=200, width=96):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.recurrent = nn.GRU(width, 128, batch_first=True)
        self.head = nn.Linear(128, 5)

    def forward(self, tokens):
        _, last = self.recurrent(self.embed(tokens))
        return self.head(last[-1])


def train(steps=10, batch=128, length=20):
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        tokens, labels = torch.randint(0, 200, (batch, length)), torch.randint(0, 5, (batch,))
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print(train())
