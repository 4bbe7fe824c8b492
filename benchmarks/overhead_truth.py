"""Compares what `prof.overhead()` says with the truth: the time of a program recorded less that of it not recorded.

    python benchmarks/overhead_truth.py [--rounds 21] [--repeats 4] [--quick] [--other] [--steps]

Five programs, each run ten times, times six sets of options; --other: four more. Takes turns with the program unrecorded and
recorded, in CPU time of its thread, and takes the median difference. Its 99 % interval tells how well the truth itself is
known: a case counts as inside if that and the range of the estimate meet, strictly if the median itself lies in the range,
and as unresolved, beside the others, if the interval is wider than the range. --steps: what is compared with the truth is a
recording in which each run is a step, by a schedule that leaves ten unrecorded before. Takes about eight minutes; --quick one.
The exit status is 1 if fewer than 95 % of the resolved ones are inside.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a product on several threads has a time of its own on each

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, schedule

F = nn.functional
Run = Callable[[], None]

OPTIONS: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
    "modules": {"with_modules": True},
    "everything": {
        "record_shapes": True,
        "profile_memory": True,
        "with_stack": True,
        "with_modules": True,
        "with_flops": True,
    },
}


def large_products() -> Run:
    a = torch.randn(256, 256)

    def run() -> None:
        b = a
        for _ in range(30):
            b = a @ b

    return run


def tiny_ops() -> Run:
    x, y = torch.randn(4), torch.randn(4)

    def run() -> None:
        for _ in range(300):
            z = torch.relu((x + y) * x) - y
            z.sum()

    return run


def mixed_shapes() -> Run:
    inputs = [torch.randn(n, m) for n in (3, 17, 64) for m in (5, 32, 100)]
    weights = [torch.randn(x.shape[1], 16) for x in inputs]

    def run() -> None:
        for _ in range(8):
            for x, w in zip(inputs, weights, strict=True):
                h = torch.softmax(x @ w, -1).transpose(0, 1).contiguous()
                h = F.gelu(torch.cat([h, h], 1))
                h.mean(0)
                h[1:].exp().sum()
                h.reshape(-1).sort()

    return run


def training() -> Run:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 32), nn.ReLU(), nn.Linear(32, 10)]
    net = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, target = torch.randn(4, 3, 16, 16), torch.tensor([1, 2, 3, 4])

    def run() -> None:
        for _ in range(8):
            optimizer.zero_grad()
            F.cross_entropy(net(x), target).backward()
            optimizer.step()

    return run


class _Value:
    def __init__(self, value: int) -> None:
        self.value = value

    def get(self) -> int:
        return self.value


def python_code() -> Run:
    x = torch.randn(8)

    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def lengths(text: str) -> dict[str, int]:
        return {word: len(word) for word in text.split()}

    def run() -> None:
        for i in range(50):
            fibonacci(9)
            lengths("a bb ccc dddd " * 6)
            sum(_Value(j).get() for j in range(40))
            x + i
            sorted(range(50), key=lambda number: -number)

    return run


PROGRAMS: dict[str, Callable[[], Run]] = {
    function.__name__: function for function in (large_products, tiny_ops, mixed_shapes, training, python_code)
}


def attention() -> Run:
    torch.manual_seed(0)
    width = 32
    project, out, norm = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)
    parameters = [*project.parameters(), *out.parameters(), *norm.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    x = torch.randn(4, 16, width)

    def run() -> None:
        for _ in range(6):
            q, k, v = project(norm(x)).chunk(3, -1)
            y = x + out(F.scaled_dot_product_attention(q, k, v))
            optimizer.zero_grad()
            y.square().mean().backward()
            optimizer.step()

    return run


def recurrence() -> Run:
    torch.manual_seed(0)
    cell = nn.GRUCell(16, 16)
    inputs = torch.randn(20, 8, 16)

    def run() -> None:
        state = torch.zeros(8, 16)
        for x in inputs:
            state = cell(x, state)
        state.sum().backward()
        cell.zero_grad()

    return run


def numeric_code() -> Run:
    a, x = torch.randn(6, 24, 24), torch.randn(8, 256)

    def run() -> None:
        for _ in range(15):
            torch.einsum("bij,bjk->bik", a, a)
            torch.fft.irfft(torch.fft.rfft(x) * 0.5)
            torch.linalg.solve(a + 30 * torch.eye(24), a)
            torch.where(x > 0, x.cumsum(-1), x.flip(-1)).topk(5)

    return run


def data_preparation() -> Run:
    records = [{"id": n, "text": "some words of text " * (n % 4 + 1), "values": [n / 7, n / 3, float(n)]} for n in range(120)]

    def features(record: dict[str, Any]) -> Any:
        words = [word.upper().strip() for word in record["text"].split()]
        return torch.tensor([*record["values"], float(len(words)), float(max(map(len, words)))])

    def run() -> None:
        batch = torch.stack([features(record) for record in records])
        (batch - batch.mean(0)) / (batch.std(0) + 1)

    return run


OTHER_PROGRAMS: dict[str, Callable[[], Run]] = {
    function.__name__: function for function in (attention, recurrence, numeric_code, data_preparation)
}


class Case(NamedTuple):
    """One run of a program with some options, times in nanoseconds; the truth with its own interval."""

    unrecorded: float
    truth: float
    truth_low: float
    truth_high: float
    estimate: float
    low: float
    high: float
    is_measured: bool

    @property
    def inside(self) -> bool:
        return self.truth_low <= self.high and self.low <= self.truth_high

    @property
    def strictly(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def resolved(self) -> bool:
        """Whether the truth is known better than the estimate says."""
        return self.truth_high - self.truth_low < self.high - self.low

    @property
    def within_tenth(self) -> bool:
        """Whether the estimate is the truth within 10 %."""
        return abs(self.estimate - self.truth) <= 0.1 * abs(self.truth)

    @property
    def time_within_tenth(self) -> bool:
        """Whether the recorded time less the estimate is the time without recording within 10 %."""
        return abs(self.estimate - self.truth) <= 0.1 * self.unrecorded


def _timed(run: Run) -> int:
    begin = time.thread_time_ns()
    run()
    return time.thread_time_ns() - begin


_STEPS = 10


def _in_steps(run: Run, options: dict[str, bool]) -> Any:
    with profile(schedule=schedule(wait=_STEPS, warmup=1, active=_STEPS, repeat=1), **options) as recorded:
        for _ in range(2 * _STEPS + 2):
            run()
            recorded.step()
    return recorded


def measure(run: Run, options: dict[str, bool], rounds: int, *, in_steps: bool = False) -> Case:
    """The cost of recording ten runs, truth and estimate; `in_steps`: of recordings in which each run is a step."""
    step = run

    def run() -> None:
        for _ in range(_STEPS):
            step()

    run()
    with profile(**options):
        run()
    off, added = [_timed(run)], []
    for _ in range(rounds):
        recorded: Any = profile(**options)
        with recorded:
            on = _timed(run)
        off.append(_timed(run))
        added.append(on - (off[-1] + off[-2]) / 2)
    ranked = np.sort(added)
    # The interval of a median from the ranks of the differences.
    reach = int(np.ceil(1.29 * np.sqrt(rounds)))
    low, high = max(0, rounds // 2 - reach), min(rounds - 1, rounds // 2 + reach)
    cost = (_in_steps(step, options) if in_steps else recorded).overhead()
    truth = (float(np.median(off)), float(np.median(ranked)), float(ranked[low]), float(ranked[high]))
    return Case(*truth, cost.total_ns, cost.low_ns, cost.high_ns, bool(cost.measured_on))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21, help="pairs of runs in each case")
    parser.add_argument("--repeats", type=int, default=4, help="times that every case is measured anew")
    parser.add_argument("--quick", action="store_true", help="9 rounds, once")
    parser.add_argument("--other", action="store_true", help="the programs that the constants were not chosen by")
    parser.add_argument("--steps", action="store_true", help="estimates from recordings with unrecorded steps before")
    args = parser.parse_args()
    rounds, repeats = (9, 1) if args.quick else (args.rounds, args.repeats)
    print(
        f"{'program':16} {'options':11} {'without':>9} {'truth':>9} {'(interval)':>21} {'estimate':>9} {'low':>9} {'high':>9}  "
        "inside (us)"
    )
    cases = []
    for _ in range(repeats):
        for program, make in (OTHER_PROGRAMS if args.other else PROGRAMS).items():
            run = make()
            for name, options in OPTIONS.items():
                case = measure(run, options, rounds, in_steps=args.steps)
                cases.append(case)
                without, truth, truth_low, truth_high, estimate, low, high = (part / 1e3 for part in case[:7])
                print(
                    f"{program:16} {name:11} {without:9.0f} {truth:9.0f} {truth_low:10.0f} {truth_high:10.0f} {estimate:9.0f} "
                    f"{low:9.0f} {high:9.0f}  {'yes' if case.inside else 'NO'}{'' if case.resolved else ' (unresolved)'}"
                    f"{' (measured)' if case.is_measured else ''}",
                    flush=True,
                )
    resolved = [case for case in cases if case.resolved]
    inside = sum(case.inside for case in resolved)
    errors = [abs(case.estimate / case.truth - 1) for case in resolved if case.truth > 0]
    width = np.median([case.high / max(case.low, 1) for case in cases])
    print(
        f"{inside} of {len(resolved)} inside their range ({inside / max(len(resolved), 1):.1%}); "
        f"strictly {sum(case.strictly for case in resolved)}, and {sum(case.strictly for case in cases)} of all {len(cases)}; "
        f"{len(cases) - len(resolved)} unresolved, {sum(case.inside for case in cases if not case.resolved)} of them inside; "
        f"high / low {width:.1f} in the median; resolved estimates off by {np.median(errors):.0%} in the median, "
        f"{sum(case.within_tenth for case in resolved)} of {len(resolved)} by at most 10 %; times without recording off by "
        f"at most 10 % in {sum(case.time_within_tenth for case in cases)} of {len(cases)}; "
        f"{sum(case.is_measured for case in cases)} measured"
    )
    return 0 if resolved and inside >= 0.95 * len(resolved) else 1


if __name__ == "__main__":
    sys.exit(main())
