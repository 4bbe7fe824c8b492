"""Runs a script as if an op were faster: all else is made slower, and the clock is read accordingly.

With an op to be twice as fast, everything outside of it takes twice as long, by waiting after it, and a step's time is halved.
So what the program does while the op runs, and what waits for it, shows in the result, as in a causal profiler. Steps with and
without take turns, so that a machine whose speed changes misleads neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..analysis.comparison.evidence import typical
from ..analysis.findings import duration
from .run_script import Handle, Recording

_WARM_UP = 2  # steps that do not count
_BOOTSTRAPS = 2000
_CONFIDENCE = 0.95


class Outcome(NamedTuple):
    """Typical times of a step in nanoseconds, as it is and with the faster op, and their ratio with its confidence interval.

    Typical is the lower quartile: other work on a machine only makes steps slower.
    """

    steps: tuple[int, int]
    as_is_ns: float
    virtual_ns: float
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"a step takes {duration(self.as_is_ns)}, and would take {duration(self.virtual_ns)}: {self.ratio - 1:+.1%} "
            f"({_CONFIDENCE:.0%} interval {self.low - 1:+.1%} to {self.high - 1:+.1%}; "
            f"{self.steps[0]} and {self.steps[1]} steps)"
        )


class Slowdown:
    """An op listener that makes all but some ops slower, of the thread that it was added on."""

    def __init__(self, pattern: str, factor: float, clock: Callable[[], int], wait: Callable[[int], None]) -> None:
        self._pattern, self._factor, self._clock, self._wait = pattern, factor, clock, wait
        self._chosen: dict[int, bool] = {}  # by op; a script may declare its own, so they are looked up when they run
        self.active = False
        self._inside = 0  # of how many of the ops
        self._since = clock()

    def op_started(self, op: int, args: tuple[Any, ...]) -> bool:
        """Before an op: wait for what was before it."""
        self.catch_up()
        chosen = self._chosen.get(op)
        if chosen is None:
            chosen = self._chosen[op] = fnmatchcase(observer.op_names[op], self._pattern)
        self._inside += chosen
        return chosen

    def op_ended(self, op: int, started: bool, result: Any) -> None:
        """After an op: wait for it, unless it is one of those that are to be faster, or part of one."""
        self.catch_up()
        self._inside -= started

    def range_started(self, values: tuple[Any, ...]) -> None:
        """Ranges are no ops."""

    def catch_up(self) -> None:
        """Wait for the time since the last call, as much longer as it is to take."""
        now = self._clock()
        if self.active and not self._inside:
            self._wait(int((now - self._since) * (self._factor - 1)))
            now = self._clock()
        self._since = now

    @property
    def met(self) -> bool:
        """Whether one of the ops that are to be faster has run."""
        return any(self._chosen.values())

    def reset(self) -> None:
        """Forget ops that ended by an exception."""
        self._inside = 0


class SpeedupSession:
    """Runs a script without recording it; steps of its optimizers take turns."""

    def __init__(
        self,
        pattern: str,
        factor: float,
        every_step: Callable[[Callable[[], None]], Handle],
        clock: Callable[[], int] = time.perf_counter_ns,
        wait: Callable[[int], None] | None = None,
    ) -> None:
        self.factor = factor
        self._clock, self._every_step = clock, every_step
        self._listener = Slowdown(pattern, factor, clock, partial(wait_for, clock=clock) if wait is None else wait)
        self._handle: Handle | None = None
        self._began = 0
        self.steps = 0
        self._times: dict[bool, list[float]] = {False: [], True: []}

    def start(self) -> None:
        """Begin, before the script does."""
        self._handle = self._every_step(self._stepped)
        observer.add_op_listener(self._listener)
        self._began = self._clock()

    def stop(self) -> None:
        """End, however the script ended."""
        observer.remove_op_listener(self._listener)
        if self._handle is not None:
            self._handle.remove()

    @property
    def met(self) -> bool:
        """Whether an op that is to be faster has run."""
        return self._listener.met

    @property
    def recording(self) -> Recording | None:
        """Nothing is recorded."""
        return None

    def _stepped(self) -> None:
        listener = self._listener
        listener.catch_up()
        now = self._clock()
        self.steps += 1
        if self.steps > _WARM_UP:
            spent = (now - self._began) / (self.factor if listener.active else 1)
            self._times[listener.active].append(spent)
        listener.reset()
        listener.active = self.steps >= _WARM_UP and not listener.active
        self._began = self._clock()

    def outcome(self) -> Outcome | None:
        """What came out; None with fewer than five steps of each kind."""
        a, b = (np.array(self._times[kind]) for kind in (False, True))
        if min(len(a), len(b)) < 5:
            return None
        random = np.random.default_rng(0)
        ratios = np.sort(_drawn(b, random) / _drawn(a, random))
        tail = (1 - _CONFIDENCE) / 2
        low, high = np.quantile(ratios, [tail, 1 - tail])
        before, after = float(typical(a)), float(typical(b))
        return Outcome((len(a), len(b)), before, after, after / before, float(low), float(high))


def _drawn(times: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """Typical times of steps drawn with replacement."""
    return typical(random.choice(times, (_BOOTSTRAPS, len(times))))


def wait_for(ns: int, clock: Callable[[], int]) -> None:
    """Wait by reading the clock; nothing sleeps, so that the processor is as warm as it was."""
    until = clock() + ns
    while clock() < until:
        pass
