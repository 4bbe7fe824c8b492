"""Times of a clock that went back, made to go forward again.

The recorder's clock does not go back, unless a program replaces it (tests that freeze time do). A thread hands over its rows
in the order in which they ended: an op that ended before the op before it, or that began in the middle of it, tells that the
clock was set back in between. From there on time stands still, until the clock is past the latest time that was read: no event
ends before it starts, none is inside of one that was over, and what was lost is the length of what ran meanwhile. It is counted
and told.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_NEVER = 1 << 62


class ClockOrder:
    """Puts the times of one thread's rows in order, one table after another; `steps_back` counts what it found."""

    def __init__(self, since: int) -> None:
        """since: when the recording began."""
        self.steps_back = 0
        self._latest = since  # the latest time that was read, which is that of the recording
        self._last = (since, since)  # start and end of the last row that nests
        self._last_end = since  # the end of the last row of all, as it was read
        self._landed = _NEVER  # the earliest reading after the clock was set back
        self._roots: list[tuple[int, int]] = []  # start and end of rows that are inside of none so far

    def fixed(self, table: NDArray[np.int64], nests: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The rows (id, start, end ...) with times in order: the table itself if they are, which a few passes over it tell.

        nests: which rows are inside or outside of each other, never both; a scope may be ended by another thread, in any order.
        """
        if not len(table):
            return table
        start, end = table[:, 1], table[:, 2]
        back = self._back_between(start[nests], end[nests]) + int((end < start).sum())
        if back or self.steps_back:
            self.steps_back += back
            return self._put_in_order(table)
        self._latest = max(self._latest, int(end.max()))
        self._roots = [self._last]
        self._last_end = int(end[-1])
        return table

    def _back_between(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
        """How often a row ended before the one before it, or began in the middle of it."""
        if not len(start):
            return 0
        before = np.empty((2, len(start)), np.int64)
        before[:, 0] = self._last
        before[0, 1:], before[1, 1:] = start[:-1], end[:-1]
        self._last = (int(start[-1]), int(end[-1]))
        return int(((end < before[1]) | ((start > before[0]) & (start < before[1]))).sum())

    def _put_in_order(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        fixed = table.copy()
        for at, (start, end) in enumerate(zip(table[:, 1].tolist(), table[:, 2].tolist(), strict=True)):
            fixed[at, 1:3] = self._interval(start, end)
            self._last_end = end
        return fixed

    def _interval(self, start: int, end: int) -> tuple[int, int]:
        """Start and end of the next row, such that it is after, or around, each of those before it."""
        if start <= end and end >= self._latest:
            self._landed = _NEVER
            self._latest = end
        else:
            # The clock is behind. A start that is earlier than any reading since then was read before it was set back, unless
            # it has been set back once more.
            again = start <= end < self._last_end
            began_before = start > end or (start < self._landed < _NEVER and not again)
            self._landed = min(self._landed, end if began_before else start)
            # A nanosecond for each row, so that none is taken for one inside of another that began and ended when it did.
            self._latest = end = max(self._latest + 1, start if began_before else end)
            start = start if began_before else end
        while self._roots and self._roots[-1][0] >= start:
            self._roots.pop()
        if self._roots and self._roots[-1][1] > start:
            start = self._roots[-1][1]
        self._roots.append((start, end))
        return start, end


def going_forward(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times in the order in which they were read, without those that are earlier than one before them."""
    forward: NDArray[np.int64] = np.maximum.accumulate(times)
    return forward


def loss(steps_back: int) -> str:
    """What to tell of a clock that went back."""
    times = "once" if steps_back == 1 else f"{steps_back} times"
    return (
        f"the clock went back at least {times}: while it was behind, events have no length, and ranges that seem to have begun "
        "before the recording are missing"
    )
