"""Train a small network under the profiler: print the table, write the trace and the stacks.

    python examples/train_mlp.py --out build/demo

Plain torch code throughout: only the first import names this package.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim
from mindtorch_v2.nn import functional as F
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function, schedule

BATCH = 64
STEPS = 60


def rings(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points in the plane and the ring each lies in: 0 the disc, 1 the ring around it, 2 the outside."""
    points = torch.randn(count, 2)
    radius = points.pow(2).sum(dim=1).sqrt()
    return points, (radius > 0.8).long() + (radius > 1.5).long()


def train_step(model: nn.Module, optimizer: optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> float:
    with record_function("forward"):
        loss = F.cross_entropy(model(x), y)
    with record_function("backward"):
        optimizer.zero_grad()
        loss.backward()
    optimizer.step()
    return loss.item()


def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for the trace and the stacks")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    trace, stacks = out / "trace.json", out / "stacks.txt"

    torch.manual_seed(0)
    points, labels = rings(BATCH * STEPS)
    test_points, test_labels = rings(1000)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.02)

    def report(prof: profile) -> None:
        """Called by the profiler when the active steps are over."""
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=15))
        prof.export_chrome_trace(str(trace))
        prof.export_stacks(str(stacks), "self_cpu_time_total")

    print(f"accuracy before training: {accuracy(model, test_points, test_labels):.1%}")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=STEPS - 10, warmup=2, active=5, repeat=1),
        on_trace_ready=report,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for step in range(STEPS):
            batch = slice(step * BATCH, (step + 1) * BATCH)
            loss = train_step(model, optimizer, points[batch], labels[batch])
            if step % 10 == 9:
                print(f"step {step + 1:3d}  loss {loss:.3f}")
            prof.step()
    print(f"accuracy after training:  {accuracy(model, test_points, test_labels):.1%}")

    print(f"\nThe five profiled steps are in {out}:")
    print(f"  {trace}   timeline: open in chrome://tracing or at ui.perfetto.dev")
    print(f"  {stacks}   flame graph: drop on speedscope (speedscope.app)")


if __name__ == "__main__":
    main()
