"""A language model of words: an LSTM whose state goes from batch to batch, or a Transformer with a causal mask."""

import argparse
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    def __init__(self, words, size, layers, dropout=0.2):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(words, size)
        self.rnn = nn.LSTM(size, size, layers, dropout=dropout)
        self.decoder = nn.Linear(size, words)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.layers, self.size = layers, size

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return F.log_softmax(self.decoder(self.drop(output)).flatten(0, 1), dim=1), hidden

    def init_hidden(self, count):
        weight = next(self.parameters())
        return weight.new_zeros(self.layers, count, self.size), weight.new_zeros(self.layers, count, self.size)


class TransformerModel(nn.Module):
    def __init__(self, words, size, layers, dropout=0.2):
        super().__init__()
        position = torch.arange(64.0).unsqueeze(1)
        scale = torch.exp(torch.arange(0, size, 2).float() * (-math.log(10000.0) / size))
        table = torch.zeros(64, 1, size)
        table[:, 0, 0::2] = torch.sin(position * scale)
        table[:, 0, 1::2] = torch.cos(position * scale)
        self.register_buffer("table", table)
        self.drop = nn.Dropout(dropout)
        self.embedding = nn.Embedding(words, size)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(size, 2, 2 * size, dropout), layers, enable_nested_tensor=False
        )
        self.decoder = nn.Linear(size, words)
        self.size = size

    def forward(self, x, hidden):
        mask = nn.Transformer.generate_square_subsequent_mask(len(x))
        x = self.drop(self.embedding(x) * math.sqrt(self.size) + self.table[: len(x)])
        return F.log_softmax(self.decoder(self.encoder(x, mask)).flatten(0, 1), dim=1), hidden

    def init_hidden(self, count):
        return ()


def detached(hidden):
    return hidden.detach() if isinstance(hidden, torch.Tensor) else tuple(detached(h) for h in hidden)


parser = argparse.ArgumentParser()
parser.add_argument("--model", default="LSTM", choices=("LSTM", "Transformer"))
args = parser.parse_args()
torch.manual_seed(1111)
words, span = 30, 10
text = (torch.arange(600) * 7 + torch.randint(3, (600,))) % words
train_data = text.view(6, -1).t().contiguous()
model = (RNNModel if args.model == "LSTM" else TransformerModel)(words, 16, 2)
criterion, lr = nn.NLLLoss(), 2.0
RESULT = []
for _ in range(2):
    model.train()
    hidden = model.init_hidden(6)
    for i in range(0, len(train_data) - 1, span):
        length = min(span, len(train_data) - 1 - i)
        hidden = detached(hidden)
        model.zero_grad()
        output, hidden = model(train_data[i : i + length], hidden)
        loss = criterion(output, train_data[i + 1 : i + 1 + length].view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-lr)
    RESULT.append(loss.item())

# The whole model as a file, and words sampled from it.
file = io.BytesIO()
torch.save(model, file)
file.seek(0)
model = torch.load(file, weights_only=False).eval()
with torch.no_grad():
    word, hidden, said = torch.randint(words, (1, 1)), model.init_hidden(1), []
    for _ in range(5):
        output, hidden = model(word, hidden)
        word = torch.multinomial(output[-1].exp(), 1).view(1, 1)
        said.append(float(word.item()))
RESULT += said
