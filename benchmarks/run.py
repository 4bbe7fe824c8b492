"""Time dispatch and the profiler, beside torch where there is one.

    python benchmarks/run.py [--rounds 3] [--quick] [--only record scope]

Each package runs in processes of its own, turn about; TORCH_PYTHON names an interpreter that has torch.
Times are nanoseconds of CPU time on one thread: the best sample, or the median where a row is a difference.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

OURS, THEIRS = "mindtorch_v2", "torch"
clock = time.process_time_ns
Loop = Callable[[int], Any]


def loop_of(statement: str, **names: Any) -> Loop:
    """A function of n that runs `statement` n times; `names` are its locals, so that look-ups cost nothing."""
    bound = "".join(f", {name}={name}" for name in names)
    space: dict[str, Any] = {"repeat": repeat, **names}
    exec(f"def loop(n, repeat=repeat{bound}):\n for _ in repeat(None, n):\n  {statement}\n", space)
    return space["loop"]


def spent(action: Callable[..., Any], *args: Any) -> int:
    start = clock()
    action(*args)
    return clock() - start


def per_call(loop: Loop, samples: int) -> float:
    """Best nanoseconds for one turn of `loop`, each sample lasting about 10 ms."""
    n = 64
    while (taken := spent(loop, n)) < 2_000_000:
        n *= 2
    n = max(1, round(n * 10_000_000 / taken))
    return min(spent(loop, n) for _ in range(samples)) / n


class Rows:
    """The rows; each method measures one group and yields (name, nanoseconds)."""

    def __init__(self, module: str, samples: int, events: int) -> None:
        self.torch = importlib.import_module(module)
        self.nn = importlib.import_module(f"{module}.nn")
        self.profiler = importlib.import_module(f"{module}.profiler")
        self.samples, self.events = samples, events
        self.x = self.torch.ones((4, 4))
        self.add = loop_of("x + x", x=self.x)

    def session(self, **options: Any) -> Any:
        return self.profiler.profile(activities=[self.profiler.ProfilerActivity.CPU], **options)

    def recorded(self, loop: Loop, **options: Any) -> float:
        with self.session(**options):
            return per_call(loop, 1)

    def dispatch(self) -> Iterator[tuple[str, float]]:
        torch, x = self.torch, self.x
        w = torch.ones((4, 4), requires_grad=True)
        yield "dispatch.add", per_call(self.add, self.samples)
        yield "dispatch.mul_grad", per_call(loop_of("w * x", w=w, x=x), self.samples)
        yield "dispatch.matmul", per_call(loop_of("x @ x", x=x), self.samples)
        yield "dispatch.view", per_call(loop_of("x.view(16)", x=x), self.samples)
        yield "dispatch.sum", per_call(loop_of("x.sum()", x=x), self.samples)
        yield "dispatch.linear", per_call(loop_of("m(x)", m=self.nn.Linear(4, 4), x=x), self.samples)

    def record(self) -> Iterator[tuple[str, float]]:
        """What recording adds to one op; `off.residue` is what a finished session leaves behind."""
        before = per_call(self.add, self.samples)
        for name, options in {
            "record.add": {},
            "record.add.shapes": {"record_shapes": True},
            "record.add.memory": {"profile_memory": True},
        }.items():
            pairs = [(per_call(self.add, 1), self.recorded(self.add, **options)) for _ in range(self.samples)]
            yield name, statistics.median(on - off for off, on in pairs)
        yield "off.residue", per_call(self.add, self.samples) - before

    def scope(self) -> Iterator[tuple[str, float]]:
        loop = loop_of("with scope('s'): pass", scope=self.profiler.record_function)
        yield "scope.off", per_call(loop, self.samples)
        yield "scope.on", min(self.recorded(loop) for _ in range(self.samples))

    def cold(self) -> Iterator[tuple[str, float]]:
        """From stop() straight to the table, per event."""
        torch, x = self.torch, self.x
        bias = torch.ones((4,))
        names = {"linear": self.nn.functional.linear, "scope": self.profiler.record_function, "x": x, "bias": bias}
        body = loop_of("with scope('turn'): linear((x * x).relu(), x, bias).view(16).sum()", **names)
        with self.session() as probe:
            body(20)
        session = self.session()
        session.start()
        body(max(1, self.events * 20 // len(probe.events())))

        def finish() -> None:
            session.stop()
            session.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)

        taken = spent(finish)
        yield "cold.table", taken / len(session.events())


GROUPS = ("dispatch", "record", "scope", "cold")
DIFFERENCES = ("record.", "off.")


def worker(module: str, groups: list[str], quick: bool) -> None:
    rows = Rows(module, samples=3 if quick else 9, events=10_000 if quick else 100_000)
    print(json.dumps({name: ns for group in groups for name, ns in getattr(rows, group)()}))


def sample(python: str, module: str, groups: list[str], quick: bool) -> dict[str, float]:
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    command = [python, __file__, "--worker", module, "--only", *groups, *(["--quick"] if quick else [])]
    done = subprocess.run(command, env={**os.environ, **one_thread}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{module} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def fold(name: str, rounds: list[dict[str, float]]) -> float:
    return (statistics.median if name.startswith(DIFFERENCES) else min)(taken[name] for taken in rounds)


def show(taken: dict[str, list[dict[str, float]]]) -> None:
    beside = THEIRS in taken
    print(f"{'row':<20} {OURS + ' ns':>16}" + (f" {'torch ns':>12} {'ratio':>8}" if beside else ""))
    ratios = []
    for name in taken[OURS][0]:
        ours = fold(name, taken[OURS])
        line = f"{name:<20} {ours:>16,.0f}"
        if beside:
            theirs = fold(name, taken[THEIRS])
            line += f" {theirs:>12,.0f}"
            if ours > 0 and theirs > 0 and name != "off.residue":
                ratios.append(ours / theirs)
                line += f" {ratios[-1]:>8.3f}"
        print(line)
    if ratios:
        print(f"geometric mean of the ratios: {math.exp(statistics.fmean(map(math.log, ratios))):.3f}")


def has_torch(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="processes started per package")
    parser.add_argument("--quick", action="store_true", help="fewer samples, smaller sessions, one round")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args.worker, args.only, args.quick)

    sides = {OURS: sys.executable}
    torch_python = os.environ.get("TORCH_PYTHON", "")
    if torch_python and has_torch(torch_python):
        sides[THEIRS] = torch_python
    taken: dict[str, list[dict[str, float]]] = {module: [] for module in sides}
    for turn in range(1 if args.quick else args.rounds):
        for module in list(sides)[:: 1 if turn % 2 == 0 else -1]:
            taken[module].append(sample(sides[module], module, args.only, args.quick))

    show(taken)
    if THEIRS not in sides:
        why = f"{torch_python} cannot import torch" if torch_python else "TORCH_PYTHON names no interpreter"
        print(f"No figures of torch: {why}.")


if __name__ == "__main__":
    main()
