"""The script that `mtprof demo` records: a small character model learns a sentence."""

from __future__ import annotations

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F
from mindtorch_v2.utils.data import DataLoader, TensorDataset

TEXT = "the quick brown fox jumps over the lazy dog. " * 40
CONTEXT, STEPS = 32, 12


class Net(nn.Module):
    """One transformer layer over embedded letters."""

    def __init__(self, letters: int, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.encoder = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, letters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits of the next letter at every position."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        logits: torch.Tensor = self.head(self.encoder(self.embed(x), src_mask=mask, is_causal=True))
        return logits


def main() -> None:
    """Train for a few steps and print the loss."""
    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(letter) for letter in TEXT])
    windows = data.unfold(0, CONTEXT + 1, 3)
    batches = DataLoader(TensorDataset(windows), batch_size=16, shuffle=True)
    model = Net(len(letters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step, (batch,) in enumerate(batches):
        optimizer.zero_grad()
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        print(f"step {step:2d}  loss {loss.item():.3f}")
        if step + 1 == STEPS:
            break


if __name__ == "__main__":
    main()
