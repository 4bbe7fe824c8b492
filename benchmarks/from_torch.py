"""Times PyTorch's own table of a profile of 100,000 events, and that through `from_torch`, and compares what they say.

    PYTHON benchmarks/from_torch.py [--events N] [--runs N] [--page FILE] [--json FILE]

PYTHON is an interpreter with torch and what this package needs (numpy, orjson, ml_dtypes); the package itself is that of
this checkout. Each run records the same small training loop twice, once for each table, in turns; times are from the end of the
`with` block to the text of the table. The exit status is 1 if calls or self times by operator differ. --page writes the report.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch

from mindtorch_v2.profiler import from_torch

_MOST_OFF_US = 1.0  # of an operator's self time, for each of its calls: traces have a thousandth of a microsecond


class Program:
    """A training loop of small layers; about 300 events a step."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = [part for _ in range(6) for part in (torch.nn.Linear(64, 64), torch.nn.LayerNorm(64), torch.nn.GELU())]
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(64, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, foreach=False)

    def step(self) -> None:
        """One forward and backward pass and the optimizer's step."""
        loss = self.model(torch.randn(32, 64)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def recorded(program: Program, steps: int) -> Any:
    """A finished profile of so many steps."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as prof:
        for _ in range(steps):
            program.step()
    return prof


def timed(make: Callable[[Any], tuple[Any, str]], prof: Any) -> tuple[float, Any, str]:
    """Seconds, and what was made of a profile: the object that has the averages, and their table."""
    begun = time.perf_counter()
    source, table = make(prof)
    return time.perf_counter() - begun, source, table


def _torch_table(prof: Any) -> tuple[Any, str]:
    return prof, prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)


def _our_table(prof: Any) -> tuple[Any, str]:
    recording = from_torch(prof)
    return recording, recording.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)


def differences(torchs: Any, ours: Any) -> list[str]:
    """Operators of whose calls the two tables say something else. The times of two recordings differ; those of one must not."""
    found = []
    theirs = {row.key: row for row in torchs}
    known = {row.key: row for row in ours}
    for key in sorted(theirs.keys() | known.keys()):
        mine, other = known.get(key), theirs.get(key)
        if mine is None or other is None:
            found.append(f"{key}: only in {'torch' if mine is None else 'from_torch'}")
        elif mine.count != other.count:
            found.append(f"{key}: {other.count} calls in torch, {mine.count} in from_torch")
        elif abs(mine.self_cpu_time_total - other.self_cpu_time_total) > _MOST_OFF_US * mine.count:
            found.append(f"{key}: {other.self_cpu_time_total} us in torch, {mine.self_cpu_time_total} us in from_torch")
    return found


def main() -> int:
    """Print the times of each run, their medians, and what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--page", type=Path, help="file for the report of the last run")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    program = Program()
    events = len(from_torch(recorded(program, 4)).events()) / 4
    steps = round(options.events / events)
    seconds: dict[str, list[float]] = {"torch": [], "from_torch": []}
    recording = None
    for run in range(options.runs):
        torchs, _, shown = timed(_torch_table, recorded(program, steps))
        ours, recording, text = timed(_our_table, recorded(program, steps))
        seconds["torch"].append(torchs)
        seconds["from_torch"].append(ours)
        print(f"run {run + 1}: torch {torchs:.2f} s, from_torch {ours:.2f} s, {torchs / ours:.1f} times", flush=True)
    assert recording is not None
    same = recorded(program, 40)
    found = differences(same.key_averages(), from_torch(same).key_averages())
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"torch's table:\n{shown}\nthrough from_torch:\n{text}")
    print(
        f"torch {torch.__version__}, {len(recording.events()):,} events, {steps} steps, median of {options.runs}: torch "
        f"{middle['torch']:.2f} s, from_torch {middle['from_torch']:.2f} s, {middle['torch'] / middle['from_torch']:.1f} times"
    )
    print("\n".join(found) or "calls and self times are the same for every operator")
    if options.page:
        options.page.parent.mkdir(parents=True, exist_ok=True)
        recording.export_html(os.fspath(options.page))
    if options.json:
        options.json.write_text(
            json.dumps({"events": len(recording.events()), "seconds": seconds, "differences": found}) + "\n"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
