"""Runs a script as if an op were faster: all else is made slower, and the clock is read accordingly.

With an op to be twice as fast, everything outside of it takes twice as long, by waiting after it, and a step's time is halved.
So what the program does while the op runs, and what waits for it, shows in the result, as in a causal profiler. To listen to
ops costs time, and a program that waits finds its caches colder, so there are three kinds of steps: as they are, all slowed
down, and all but the op. The last two differ by the share that the faster op saves, which is then that of the first: colder
caches slow all down alike. Listening costs the same for each op, however long, so it is measured beforehand and taken off both.
The kinds take turns, so that a machine whose speed changes misleads none.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..._core.tensor import make_tensor
from ..._dispatch import observer
from ..analysis.comparison.evidence import typical
from ..analysis.findings import duration, relative_changes
from .run_script import Handle, Recording

_WARM_UP = 2  # steps that do not count
_BOOTSTRAPS = 2000
_CONFIDENCE = 0.95


class Kind(enum.Enum):
    """What is done to a step."""

    AS_IS = "as it is"
    ALL_SLOWED = "all of it slowed down"
    OTHERS_SLOWED = "all but the op slowed down"


_TURNS = tuple(Kind)
FEWEST_STEPS = _WARM_UP + 5 * len(_TURNS)


class Outcome(NamedTuple):
    """Typical times of a step in nanoseconds, as it is and with the faster op, and their ratio with its confidence interval.

    Typical is the lower quartile: other work on a machine only makes steps slower.
    """

    steps: tuple[int, ...]  # of each kind
    as_is_ns: float
    virtual_ns: float
    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        change, low, high = relative_changes(self.ratio, self.low, self.high)
        return (
            f"a step takes {duration(self.as_is_ns)}, and would take {duration(self.virtual_ns)}: {change} "
            f"({_CONFIDENCE:.0%} interval {low} to {high}; "
            f"{self.steps[0]} steps as they are, {self.steps[1]} slowed down, {self.steps[2]} but for the op)"
        )


class Slowdown:
    """An op listener that makes all but some ops slower, of the thread that it was added on."""

    def __init__(self, pattern: str, factor: float, clock: Callable[[], int], wait: Callable[[int], None]) -> None:
        self._pattern, self._factor, self._clock, self._wait = pattern, factor, clock, wait
        self._chosen: dict[int, bool] = {}  # by op; a script may declare its own, so they are looked up when they run
        self.active = False
        self.spares = True  # whether the ops are not slowed down
        self._inside = 0  # of how many of the ops
        self._since = clock()
        self._late = 0  # by how much the waiting so far was too long
        self.ops = self.spared = self.inside_spared = 0  # ops so far: all, those that were spared, and those inside of these

    def op_started(self, op: int, args: tuple[Any, ...]) -> bool:
        """Before an op: wait for what was before it."""
        self.catch_up()
        chosen = self._chosen.get(op)
        if chosen is None:
            chosen = self._chosen[op] = fnmatchcase(observer.op_names[op], self._pattern)
        spared = chosen and self.spares
        self.ops += 1
        if self._inside:
            self.inside_spared += 1
        elif spared:
            self.spared += 1
        self._inside += spared
        return spared

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
            until = now + int((now - self._since) * (self._factor - 1)) - self._late
            self._wait(max(0, until - now))
            now = self._clock()
            self._late = now - until
        self._since = now

    @property
    def met(self) -> bool:
        """Whether one of the ops that are to be faster has run."""
        return any(self._chosen.values())

    def reset(self) -> None:
        """Forget ops that ended by an exception, and the waiting of the step before."""
        self._inside = self._late = 0
        self._since = self._clock()


class SpeedupSession:
    """Runs a script without recording it; steps of its optimizers take turns."""

    def __init__(
        self,
        pattern: str,
        factor: float,
        every_step: Callable[[Callable[[], None]], Handle],
        clock: Callable[[], int] = time.perf_counter_ns,
        wait: Callable[[int], None] | None = None,
        listening: Listening | None = None,
    ) -> None:
        """`listening`: what it costs to listen to an op; measured at the start if None."""
        self.factor = factor
        self._listening = listening
        self._clock, self._every_step = clock, every_step
        self._listener = Slowdown(pattern, factor, clock, partial(wait_for, clock=clock) if wait is None else wait)
        self._handle: Handle | None = None
        self._began = 0
        self._runs = False
        self._kind = Kind.ALL_SLOWED  # of the warm-up, which meets the ops
        self.steps = 0
        self._times: dict[Kind, list[float]] = {kind: [] for kind in Kind}

    def start(self) -> None:
        """Begin, before the script does."""
        if self._listening is None:
            self._listening = measure_listening(self._clock)
        self._handle = self._every_step(self._stepped)
        observer.add_op_listener(self._listener)
        self._runs = True
        self._began = self._clock()

    def stop(self, failed: bool) -> None:
        """End, however the script ended."""
        self._runs = False
        if self._kind is not Kind.AS_IS:
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
        if self._kind is not Kind.AS_IS:
            listener.catch_up()
        now = self._clock()
        self.steps += 1
        if self.steps == _WARM_UP:
            listener.ops = listener.spared = listener.inside_spared = 0
        if self.steps > _WARM_UP:
            self._times[self._kind].append((now - self._began) / (1 if self._kind is Kind.AS_IS else self.factor))
        if self.steps >= _WARM_UP:
            self._begin(_TURNS[(self.steps - _WARM_UP) % len(_TURNS)])
        listener.reset()
        self._began = self._clock()

    def _begin(self, kind: Kind) -> None:
        """Have the next step be of a kind."""
        if self._runs and self._kind is not Kind.AS_IS and kind is Kind.AS_IS:
            observer.remove_op_listener(self._listener)
        elif self._runs and self._kind is Kind.AS_IS and kind is not Kind.AS_IS:
            observer.add_op_listener(self._listener)
        self._kind = kind
        self._listener.active = kind is not Kind.AS_IS
        self._listener.spares = kind is Kind.OTHERS_SLOWED

    def outcome(self) -> Outcome | None:
        """What came out; None with fewer than five steps of each kind."""
        times = [np.array(self._times[kind]) for kind in _TURNS]
        if min(map(len, times)) < 5:
            return None
        random = np.random.default_rng(0)
        ratios = self._ratio(*(typical(random.choice(part, (_BOOTSTRAPS, len(part)))) for part in times))
        tail = (1 - _CONFIDENCE) / 2
        low, high = np.quantile(ratios, [tail, 1 - tail])
        as_is, all_slowed, others_slowed = (typical(part) for part in times)
        ratio = float(self._ratio(as_is, all_slowed, others_slowed))
        return Outcome(tuple(map(len, times)), float(as_is), float(as_is) * ratio, ratio, float(low), float(high))

    def _ratio(self, as_is: Any, all_slowed: Any, others_slowed: Any) -> Any:
        """A step's time with the faster op over that without it, both as if nothing had listened.

        What was spared is the op and the listening inside of it: that between its start and its end, and all of it for the ops
        that it calls. No more is taken off for listening than the slowed steps are longer by.
        """
        listener, cost = self._listener, self._listening or Listening(0.0, 0.0)
        spared_steps = max(1, len(self._times[Kind.OTHERS_SLOWED]))
        ops = max(1.0, listener.ops / max(1, spared_steps + len(self._times[Kind.ALL_SLOWED])))
        for_each_op = np.minimum(cost.op_ns, np.maximum(all_slowed - as_is, 0) / ops)
        inside = (listener.spared * cost.inside_share + listener.inside_spared) / spared_steps * for_each_op
        saved = all_slowed - others_slowed - inside * (1 - 1 / self.factor)
        return 1 - saved / (all_slowed - ops * for_each_op)


class Listening(NamedTuple):
    """What it costs to listen to an op: nanoseconds in all, and the share of them between its start and its end."""

    op_ns: float
    inside_share: float


def measure_listening(clock: Callable[[], int], calls: int = 200, rounds: int = 5) -> Listening:
    """The cost of listening to an op that does little: that of the quickest round, since other work only makes it slower."""
    tensor = make_tensor(np.ones(1, np.float32))
    found = []
    for _ in range(rounds):
        windows = _Windows(clock)
        plain = _timed(tensor.neg, calls, clock)
        observer.add_op_listener(windows)
        try:
            listened = _timed(tensor.neg, calls, clock)
        finally:
            observer.remove_op_listener(windows)
        whole = max(0, listened - plain)
        found.append(Listening(whole / calls, min(1.0, max(0, windows.total - plain) / whole) if whole else 0.0))
    return min(found)


def _timed(function: Callable[[], object], calls: int, clock: Callable[[], int]) -> int:
    began = clock()
    for _ in range(calls):
        function()
    return clock() - began


class _Windows:
    """An op listener that adds up the time between starts and ends."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock, self.total = clock, 0

    def op_started(self, op: int, args: tuple[Any, ...]) -> int:
        """Before an op."""
        return self._clock()

    def op_ended(self, op: int, started: int, result: Any) -> None:
        """After it."""
        self.total += self._clock() - started

    def range_started(self, values: tuple[Any, ...]) -> None:
        """Ranges are no ops."""


def wait_for(ns: int, clock: Callable[[], int]) -> None:
    """Wait by reading the clock; nothing sleeps, so that the processor is as warm as it was."""
    until = clock() + ns
    while clock() < until:
        pass
