"""Made-up recordings of one program on a noisy machine, for what compares recordings: seeded, by a clock that is only counted.

A step calls `ops` ops of different lengths, each inside of a parent that has little time of its own. A noise model says how the
machine disturbs them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.store.store import EventStore

Factors = NDArray[np.float64]  # one line per step, one column per op
Noise = Callable[[np.random.Generator, int, int], Factors]


def log_normal(rng: np.random.Generator, steps: int, ops: int) -> Factors:
    """Each call differs from its usual time by 15 %."""
    return np.exp(0.15 * rng.standard_normal((steps, ops)))


def drift(rng: np.random.Generator, steps: int, ops: int) -> Factors:
    """The machine has another speed in each recording, and it changes by up to a third during one."""
    slope = rng.uniform(-0.3, 0.3) * np.linspace(0, 1, steps)[:, None]
    return rng.uniform(0.8, 1.4) * np.exp(slope + 0.06 * rng.standard_normal((steps, ops)))


def bursts(rng: np.random.Generator, steps: int, ops: int) -> Factors:
    """Other work slows several steps down at a time."""
    load, left = np.ones(steps), 0
    for step in range(steps):
        if not left and rng.random() < 0.1:
            left, strength = int(rng.integers(2, 9)), rng.uniform(1.3, 3.0)
        if left:
            load[step], left = strength, left - 1
    return load[:, None] * np.exp(0.06 * np.abs(rng.standard_normal((steps, ops))))


def outliers(rng: np.random.Generator, steps: int, ops: int) -> Factors:
    """One call in thirty takes up to twenty times as long."""
    far = rng.random((steps, ops)) < 1 / 30
    return np.exp(0.08 * rng.standard_normal((steps, ops))) * np.where(far, rng.uniform(2, 20, (steps, ops)), 1.0)


def uneven(rng: np.random.Generator, steps: int, ops: int) -> Factors:
    """In each recording every op is off by its own 6 %: where its memory lies, what shares its caches."""
    return np.exp(0.06 * rng.standard_normal(ops) + 0.06 * rng.standard_normal((steps, ops)))


def two_speeds(rng: np.random.Generator, steps: int, ops: int) -> Factors:
    """A neighbor on the same core comes and goes for longer than a recording; half the ops feel it more than the others."""
    feels = np.where(np.arange(ops) % 2, 1.0, 0.6)
    slow, at = rng.random() < 0.5, 0
    speed = np.empty(steps)
    while at < steps:
        length = int(rng.integers(10, 80))
        speed[at : at + length] = 1.7 if slow else 1.0
        slow, at = not slow, at + length
    return speed[:, None] ** feels * np.exp(0.05 * rng.standard_normal((steps, ops)))


NOISE: dict[str, Noise] = {model.__name__: model for model in (log_normal, drift, bursts, outliers, uneven, two_speeds)}


def recording(
    noise: Noise, seed: int, *, slower: int | None = None, factor: float = 1.0, ops: int = 24, steps: int = 50
) -> EventStore:
    """A recording of the program; op number `slower` takes `factor` times as long."""
    rng = np.random.default_rng(seed)
    lengths = 8_000.0 * 1.25 ** np.arange(ops)[:, None].T % 400_000 + 5_000
    factors = noise(rng, steps, 2 * ops)
    own = np.rint(3_000 * factors[:, ops:]).astype(np.int64)  # of each parent, around its op
    if slower is not None:
        factors[:, slower] *= factor
    times = np.rint(lengths * factors[:, :ops]).astype(np.int64)
    gap = 500
    rows = []
    now = 0
    for step in range(steps):
        begin = now
        for op, (inner, outer) in enumerate(zip(times[step].tolist(), own[step].tolist(), strict=True)):
            rows.append({"name": f"aten::op{op}", "start": now + outer // 2, "end": now + outer // 2 + inner})
            rows.append({"name": f"aten::outer{op}", "start": now, "end": now + outer + inner})
            now += outer + inner + gap
        rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": begin, "end": now})
    return EventStore.from_rows(rows)
