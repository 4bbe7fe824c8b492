"""Times of a clock that went back, made to go forward again.

The recorder's clock does not go back, unless a program replaces it (tests that freeze time do). A thread hands over its rows
in the order in which they ended, so that an end before that of the op before it tells that the clock was set back in between.
From there on time stands still, until the clock is past the latest time that was read: no event ends before it starts, none is
inside of one that was over, and what was lost is the length of what ran meanwhile. It is counted and told.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..recording.recorder import SPAN_BASE

_NEVER = 1 << 62


class ClockOrder:
    """Puts the times of one thread's rows in order, one table after another; `steps_back` counts what it found."""

    def __init__(self, since: int) -> None:
        """since: when the recording began."""
        self.steps_back = 0
        self._latest = since  # the latest time that was read, which is that of the recording
        self._last_end = since  # the end of the last op
        self._landed = _NEVER  # the earliest reading after the clock was set back
        self._roots: list[tuple[int, int]] = []  # start and end of rows that are inside of none so far

    def fixed(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows (id, start, end ...) with times in order: the table itself if they are, which two passes over it tell."""
        if not len(table):
            return table
        start, end = table[:, 1], table[:, 2]
        # A scope may be ended by another thread, in any order: only ops tell.
        ends = end[table[:, 0] < SPAN_BASE]
        back = int((np.diff(ends, prepend=self._last_end) < 0).sum()) if len(ends) else 0
        back += int((end < start).sum())
        self._last_end = int(ends[-1]) if len(ends) else self._last_end
        if back or self.steps_back:
            self.steps_back += back
            return self._put_in_order(table)
        self._latest = max(self._latest, int(end.max()))
        return table

    def _put_in_order(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        fixed = table.copy()
        for at, (start, end) in enumerate(zip(table[:, 1].tolist(), table[:, 2].tolist(), strict=True)):
            fixed[at, 1:3] = self._interval(start, end)
        return fixed

    def _interval(self, start: int, end: int) -> tuple[int, int]:
        """Start and end of the next row, such that it is after, or around, each of those before it."""
        if start <= end and end >= self._latest:
            self._landed = _NEVER
            self._latest = end
        else:
            # The clock is behind. A start that is earlier than any reading since then was read before it was set back.
            began_before = start > end or start < self._landed < _NEVER
            self._landed = min(self._landed, end if began_before else start)
            self._latest = end = max(self._latest, start if began_before else end)
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
