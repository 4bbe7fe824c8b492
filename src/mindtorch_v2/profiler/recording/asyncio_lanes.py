"""Tasks that take turns on one thread: each task whose scopes overlap those of another gets a lane of its own.

Tasks are those of asyncio, of trio, and greenlets (see `current_task`). Each has its own context variables.

A scope may contain an `await`, so scopes of two tasks can overlap in time without one being inside the other. Ops cannot, so
at any moment one task runs. From the first scope that a task opens, the thread's TaskLog notes when another task's turn begins.
"""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .current_task import Task, name_of

# The lane of the running task, 0 outside of tasks. A task that opens no scope inherits the lane of the task that created it.
_current_lane: ContextVar[int] = ContextVar("lane of the task", default=0)
_numbers = itertools.count(1)
Turns = Sequence[tuple[int, int]] | NDArray[np.int64]  # rows of moment and lane
_ON_LANES = (observer.OP, observer.BACKWARD, observer.ENGINE, observer.SCOPE, observer.STEP, observer.FIRST_USE)


class TaskLog:
    """Which task's turn it was when, on one thread."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._lanes: weakref.WeakKeyDictionary[Task, int] = weakref.WeakKeyDictionary()
        self._turns: list[tuple[int, int]] = []  # (from this moment on, this lane)
        self._lane = 0  # whose turn it is
        self._last = 0  # time of the last event

    def entered(self, task: Task | None, moment: int) -> None:
        """Called when a scope begins; `task` is the one that opens it, None outside of tasks."""
        if task is not None:
            lane = self._lanes.get(task)
            if lane is None:
                lane = self._lanes[task] = next(_numbers)
                self.names[lane] = name_of(task)
            if _current_lane.get() != lane:
                _current_lane.set(lane)
        self._turn(moment)
        self._last = moment

    def left(self, moment: int) -> None:
        """Called when a scope ends."""
        self._turn(self._last + 1)
        self._last = moment

    def _turn(self, moment: int) -> None:
        lane = _current_lane.get()
        if lane != self._lane:
            self._lane = lane
            self._turns.append((moment, lane))

    # ------------------------------------------------------------------ wrappers of recording functions, which note turns

    def wrap_append_row(self, append_row: Callable[[tuple[int, ...]], None]) -> Callable[[tuple[int, ...]], None]:
        """Wrap a function that takes an op's row."""

        def noting_turn(row: tuple[int, ...]) -> None:
            self._turn(self._last + 1)
            self._last = row[2]
            append_row(row)

        return noting_turn

    def wrap_capture(self, capture: Callable[..., None]) -> Callable[..., None]:
        """Wrap a function that takes an op's start, end, sequence number and arguments."""

        def noting_turn(start: int, end: int, *more: Any) -> None:
            self._turn(self._last + 1)
            self._last = end
            capture(start, end, *more)

        return noting_turn

    def wrap_span(self, span: Callable[..., None]) -> Callable[..., None]:
        """Wrap a function that takes a span's name, kind, start and end."""

        def noting_turn(name: str, kind: int, start: int, end: int, *more: Any) -> None:
            self._turn(self._last + 1)
            self._last = end
            span(name, kind, start, end, *more)

        return noting_turn

    # ------------------------------------------------------------------ afterwards

    def turns(self, after: int = 0) -> list[tuple[int, int]]:
        """(from which moment on, which lane), without the first `after` entries."""
        return self._turns[after:]

    def lane_at(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lane whose turn it was at each moment."""
        return lane_at(self._turns, moments)


def lane_at(noted: Turns, moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lane whose turn it was at each moment, from rows of moment and lane."""
    turns = np.concatenate([np.zeros((1, 2), np.int64), np.asarray(noted, np.int64).reshape(-1, 2)])
    # A turn is noted when its first row ends, so one may be noted after a later one began: each counts from its own.
    turns = turns[np.argsort(turns[:, 0], kind="stable")]
    lanes: NDArray[np.int64] = turns[np.searchsorted(turns[:, 0], moments, side="right") - 1, 1]
    return lanes


def lanes_of_rows(turns: Turns, kind: NDArray[Any], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lane of each row of a thread: that of its task if the task's scopes overlap those of another, else 0.

    Python calls stay with the thread: a task that waits has none running.
    """
    lane = np.where(np.isin(kind, _ON_LANES), lane_at(turns, start), 0)
    scopes = np.flatnonzero((kind == observer.SCOPE) & (lane > 0))
    order = scopes[np.argsort(start[scopes], kind="stable")]
    overlapping: set[int] = set()
    alone: set[int] = set()  # lanes with scopes under way that overlap none so far
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
        if own not in overlapping:
            alone.add(own)
        if len(counts) > 1:
            overlapping |= alone
            alone.clear()
    if not overlapping:
        return np.zeros(len(lane), np.int64)
    lanes: NDArray[np.int64] = np.where(np.isin(lane, list(overlapping)), lane, 0)
    return lanes
