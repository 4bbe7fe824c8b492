"""asyncio tasks that take turns on one thread: each has its own scopes, so each gets a lane of its own.

Ops never wait, so at any moment one task runs; scopes do, so those of two tasks overlap in time without one being inside
the other. From the first scope that is opened inside a task on, the thread notes when another task's turn comes.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer

# The lane of the task that runs: 0 outside of tasks. A task that opens no scope goes on the lane of the one that made it.
_lane: ContextVar[int] = ContextVar("lane of the task", default=0)
_numbers = itertools.count(1)
_modules = sys.modules
_ON_LANES = (observer.OP, observer.BACKWARD, observer.ENGINE, observer.SCOPE, observer.STEP)


def _no_loop() -> None:
    """Stands for asyncio's own function for as long as nobody has imported asyncio."""


_running_loop: Callable[[], Any] = _no_loop


def current_task() -> Any:
    """The asyncio task that runs on this thread, None if there is none. Imports nothing."""
    global _running_loop
    if _running_loop() is None:
        if _running_loop is not _no_loop or "asyncio.tasks" not in _modules:
            return None
        _running_loop = _modules["asyncio.events"]._get_running_loop
        return current_task()
    return _modules["asyncio.tasks"].current_task()


class TaskLog:
    """Whose turn it was when, on one thread."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._lanes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._turns: list[tuple[int, int]] = []  # from this moment on, this lane
        self._now = 0
        self._seen = 0

    def entered(self, task: Any, moment: int) -> None:
        """A scope begins; `task` is the one that opens it."""
        if task is not None:
            lane = self._lanes.get(task)
            if lane is None:
                lane = self._lanes[task] = next(_numbers)
                self.names[lane] = task.get_name()
            if _lane.get() != lane:
                _lane.set(lane)
        self._turn(moment)
        self._seen = moment

    def left(self, moment: int) -> None:
        """A scope ends."""
        self._turn(self._seen + 1)
        self._seen = moment

    def _turn(self, moment: int) -> None:
        lane = _lane.get()
        if lane != self._now:
            self._now = lane
            self._turns.append((moment, lane))

    # ------------------------------------------------------------------ beside the functions that take rows

    def wrap_append_row(self, take: Callable[[tuple[int, ...]], None]) -> Callable[[tuple[int, ...]], None]:
        """The function that takes an op's row, with an eye on whose turn it is."""

        def extend(row: tuple[int, ...]) -> None:
            self._turn(self._seen + 1)
            self._seen = row[2]
            take(row)

        return extend

    def wrap_capture(self, take: Callable[..., None]) -> Callable[..., None]:
        """The same for one that is given start, end and more."""

        def detail(start: int, end: int, *more: Any) -> None:
            self._turn(self._seen + 1)
            self._seen = end
            take(start, end, *more)

        return detail

    def wrap_span(self, take: Callable[..., None]) -> Callable[..., None]:
        """The same for spans."""

        def span(name: str, kind: int, start: int, end: int, *more: Any) -> None:
            self._turn(self._seen + 1)
            self._seen = end
            take(name, kind, start, end, *more)

        return span

    # ------------------------------------------------------------------ afterwards

    def turns(self, after: int = 0) -> list[tuple[int, int]]:
        """(from which moment on, which lane), without the first so many."""
        return self._turns[after:]

    def lane_at(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lane whose turn it was at each moment."""
        return lane_at(self._turns, moments)


def lane_at(noted: Any, moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lane whose turn it was at each moment, from rows of moment and lane."""
    turns = np.concatenate([np.zeros((1, 2), np.int64), np.asarray(noted, np.int64).reshape(-1, 2)])
    # A turn is noted when its first row ends, so one may be noted after a later one began: each counts from its own.
    turns = turns[np.argsort(turns[:, 0], kind="stable")]
    found: NDArray[np.int64] = turns[np.searchsorted(turns[:, 0], moments, side="right") - 1, 1]
    return found


def lanes_of_rows(turns: Any, kind: NDArray[Any], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lane of each row of a thread: that of its task if the task's scopes met those of another, else 0.

    Python calls stay with the thread: a task that waits has none running.
    """
    lane = np.where(np.isin(kind, _ON_LANES), lane_at(turns, start), 0)
    scopes = np.flatnonzero((kind == observer.SCOPE) & (lane > 0))
    order = scopes[np.argsort(start[scopes], kind="stable")]
    met: set[int] = set()
    alone: set[int] = set()  # lanes with scopes under way that have met no other
    under_way: list[tuple[int, int]] = []  # a heap of ends and lanes
    counts: Counter[int] = Counter()  # of scopes under way, by lane
    for begin, finish, own in zip(start[order].tolist(), end[order].tolist(), lane[order].tolist(), strict=True):
        while under_way and under_way[0][0] <= begin:
            _, over = heappop(under_way)
            counts[over] -= 1
            if not counts[over]:
                del counts[over]
                alone.discard(over)
        heappush(under_way, (finish, own))
        counts[own] += 1
        if own not in met:
            alone.add(own)
        if len(counts) > 1:
            met |= alone
            alone.clear()
    found: NDArray[np.int64] = np.where(np.isin(lane, list(met)), lane, 0) if met else np.zeros(len(lane), np.int64)
    return found
