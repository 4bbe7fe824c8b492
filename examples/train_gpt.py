"""Train a small GPT on a few poems under the profiler, then show where time and memory went.

Everything but the import line is ordinary PyTorch code.
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path

import mindtorch_v2 as torch
import mindtorch_v2.nn as nn
import mindtorch_v2.nn.functional as F
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule

POEMS = Path(__file__).parent / "data" / "poems.txt"
WAIT, WARMUP, ACTIVE = 1, 1, 3


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, context: int, width: int = 64, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.context = context
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def batch_of(data, size: int, context: int):
    """Random stretches of the text, and the same moved on by one character."""
    starts = torch.randint(len(data) - context, (size,)).tolist()
    return (torch.stack([data[i : i + context] for i in starts]), torch.stack([data[i + 1 : i + 1 + context] for i in starts]))


@torch.no_grad()
def write(model: GPT, start: str, letters: list[str], count: int) -> str:
    """Continue a text, one character after the other."""
    tokens = torch.tensor([[letters.index(c) for c in start]])
    for _ in range(count):
        logits = model(tokens[:, -model.context :])[:, -1]
        tokens = torch.cat([tokens, torch.multinomial(F.softmax(logits / 0.8, dim=-1), 1)], dim=1)
    return "".join(letters[i] for i in tokens[0].tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="where the files go")
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    if args.steps < WAIT + WARMUP + ACTIVE:
        parser.error(f"--steps must be at least {WAIT + WARMUP + ACTIVE}, to have something to profile")
    args.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    text = POEMS.read_text()
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text])
    model = GPT(len(letters), context=64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def step() -> float:
        inputs, targets = batch_of(data, 16, model.context)
        optimizer.zero_grad()
        with record_function("forward"):
            loss = F.cross_entropy(model(inputs).view(-1, len(letters)), targets.view(-1))
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        return loss.item()

    parameters = sum(p.numel() for p in model.parameters())
    print(
        f"A GPT of {parameters:,} parameters learns {len(text):,} characters of verse; without training, "
        f"the loss is about {math.log(len(letters)):.2f}."
    )
    plan = schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
    losses = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=plan,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
        with_flops=True,
    ) as prof:
        for _ in range(WAIT + WARMUP + ACTIVE):
            losses.append(step())
            prof.step()
    losses += [step() for _ in range(args.steps - len(losses))]
    for at in range(0, args.steps, max(1, args.steps // 5)):
        print(f"  step {at:4d}   loss {losses[at]:.3f}")
    print(f"  step {args.steps - 1:4d}   loss {losses[-1]:.3f}\n")
    print(write(model, "Shall I ", letters, 160) + "\n")

    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=12, max_name_column_width=45))
    print("\nBy module (the ops that each called itself):\n")
    print(module_summary(prof))
    trace, stacks, memory = args.out / "trace.json", args.out / "stacks.txt", args.out / "memory.html"
    modules, report, saved = args.out / "modules.txt", args.out / "report.html", args.out / "profile.mtp"
    modules.write_text(module_summary(prof) + "\n")
    prof.export_chrome_trace(str(trace))
    prof.export_stacks(str(stacks), "self_cpu_time_total")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch means to remove it; here it stays
        prof.export_memory_timeline(str(memory))
    prof.export_html(report, title="Training a small GPT")
    prof.save(saved)
    print(f"\nReport:           {report}   open it in a browser")
    print(f"Saved profile:    {saved}   mtprof table {saved}")
    print(f"Trace:            {trace}   open it at ui.perfetto.dev or in chrome://tracing")
    print(f"Stacks:           {stacks}   open it at speedscope.app, or flamegraph.pl {stacks} > flame.svg")
    print(f"Memory timeline:  {memory}   open it in a browser")
    print(f"Module summary:   {modules}")


def module_summary(prof) -> str:
    """A line per module: time of the ops that it called itself, forward and backward, and their FLOPs."""
    totals: dict[str, list[float]] = {}
    backward: set[int] = set()  # ids of events inside the backward pass; parents come before their children
    for event in prof.events():
        if event["kind"] == "engine" or (event.cpu_parent is not None and id(event.cpu_parent) in backward):
            backward.add(id(event))
        if event["module"]:
            total = totals.setdefault(event["module"], [0, 0, 0])
            total[id(event) in backward] += event.self_cpu_time_total / 1e3
            total[2] += event.flops / 1e6
    lines = [f"  {'module':<28} {'forward':>12} {'backward':>12} {'MFLOPs':>10}"]
    lines += [f"  {name:<28} {ahead:>9.2f} ms {back:>9.2f} ms {flops:>10.1f}" for name, (ahead, back, flops) in totals.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
