"""A user's training script: `mypy --strict` has nothing to say of it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import Tensor, nn, optim
from mindtorch_v2.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR, StepLR
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
from mindtorch_v2.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, count: int) -> None:
        self.x = torch.linspace(-1, 1, count)[:, None]

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = self.x[index]
        return x, x**2


class Block(nn.Module):
    scale: Tensor

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))
        self.weight = nn.Parameter(torch.zeros(width, width))
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        x = x + F.dropout(F.linear(self.norm(x), self.weight), p=0.1, training=self.training)
        changed: Tensor = self.mlp(x)
        return x + self.scale * changed


class Net(nn.Module):
    def __init__(self, width: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.conv = nn.Conv2d(3, 8, kernel_size=3, padding=1)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.embed(x))
        for block in self.blocks:
            x = block(x)
        y: Tensor = self.head(x)
        return y

    def norms(self) -> Iterator[tuple[str, float]]:
        for name, parameter in self.named_parameters():
            yield name, float(parameter.norm().item())


def tensors() -> Tensor:
    torch.manual_seed(0)
    x = torch.randn(4, 8, requires_grad=True)
    y = torch.zeros((4, 8), dtype=torch.float32, device="cpu")
    z = (x * 2 + y - 1) / 3 @ torch.ones(8, 8).T
    z = -z.abs().clamp(min=0.1).pow(2).sum(dim=1, keepdim=True).expand(4, 8)
    values, indices = z.max(dim=-1)
    top = torch.topk(z, k=2)
    largest: Tensor = top.values[0, ..., None]
    mask = (z > 0) & ~(z == 1)
    z = torch.where(mask, z, 0.0)
    z[0, 1:3] = 5
    parts = torch.cat([z, z], dim=0).split(2)
    stacked = torch.stack(parts).view(-1, 8).reshape((2, -1)).permute(1, 0).contiguous()
    rows, columns = stacked.shape
    rank: int = stacked.size(0) + stacked.dim() + stacked.numel() + rows * columns
    logits = F.softmax(stacked, dim=-1).log()
    loss = F.nll_loss(logits, torch.zeros(rows, dtype=torch.long)) + values.mean() + largest.sum() + indices.sum()
    array = z.detach().cpu().numpy()
    again = torch.from_numpy(array).to(torch.float64).to("cpu", torch.float32).float().long()
    assert again.shape == z.shape and rank > 0
    q, r = torch.linalg.qr(torch.eye(3))
    spectrum = torch.fft.rfft(torch.arange(8.0)).real
    special = torch.special.erf(spectrum)
    loss.backward()
    grad = x.grad
    assert grad is not None
    with torch.no_grad():
        x -= 0.1 * grad
        grad.zero_()
    return (q @ r).sum() + special.sum() + torch.einsum("ij,ij->", z, z) + sum(part.sum() for part in parts)


def lightly() -> float:
    @torch.no_grad()
    def evaluate(model: nn.Module, x: Tensor) -> Tensor:
        model.eval()
        y: Tensor = model(x)
        return y

    return float(evaluate(Net(), torch.randn(2, 1)).mean())


def train(folder: Path, epochs: int = 1) -> float:
    model = Net().to("cpu").train()
    data = Squares(64)
    train_set, test_set = random_split(data, [48, 16])
    loader = DataLoader(train_set, batch_size=8, shuffle=True, num_workers=0, drop_last=True)
    pairs = TensorDataset(torch.randn(4, 1), torch.randn(4, 1))
    optimizer: optim.Optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    other = optim.SGD([{"params": list(model.parameters()), "lr": 0.1}], lr=0.01, momentum=0.9, nesterov=True)
    scheduler = CosineAnnealingLR(optimizer, T_max=10)
    more = [StepLR(other, step_size=2, gamma=0.5), LambdaLR(other, lambda epoch: 0.9**epoch)]
    OneCycleLR(optim.SGD(model.parameters(), lr=0.1), max_lr=0.1, total_steps=5)
    criterion = nn.MSELoss(reduction="mean")
    total = 0.0
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(folder)),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for _ in range(epochs):
            for x, target in loader:
                with record_function("step"):
                    optimizer.zero_grad(set_to_none=True)
                    loss = criterion(model(x), target)
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                    optimizer.step()
                total += loss.item()
                prof.step()
            scheduler.step()
            other.step()
            for each in more:
                each.step()
    table: str = prof.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=10)
    print(table, len(test_set), len(pairs), scheduler.get_last_lr(), optimizer.param_groups[0]["lr"])
    for event in prof.key_averages():
        print(event.key, event.count, event.self_cpu_time_total)
    prof.export_chrome_trace(str(folder / "trace.json"))
    with torch.profiler.profile(with_flops=True) as short:
        model(torch.randn(2, 1))
    print(short.key_averages().table(row_limit=5))
    nn.init.xavier_uniform_(model.head.weight)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return total


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        print(train(Path(scratch)), tensors(), lightly())
