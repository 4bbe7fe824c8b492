"""Sets of moments as sorted intervals that do not touch: with `|`, `&` and `-` of two, and how much of some time they cover."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Intervals:
    """The union of some intervals, in nanoseconds."""

    def __init__(self, start: NDArray[Any], end: NDArray[Any]) -> None:
        order = np.argsort(start, kind="stable")
        begins, ends = np.asarray(start, np.int64)[order], np.asarray(end, np.int64)[order]
        reached = np.maximum.accumulate(ends) if len(ends) else ends
        first = np.append(True, begins[1:] > reached[:-1]) if len(begins) else np.empty(0, np.bool_)
        self.start: Times = begins[first]
        self.end: Times = reached[np.append(first[1:], True)] if len(begins) else reached
        self._before = np.append(0, np.cumsum(self.end - self.start))

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals(np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end]))

    def __and__(self, other: Intervals) -> Intervals:
        return self - (self - other)

    def __sub__(self, other: Intervals) -> Intervals:
        edges = np.concatenate([self.start, self.end, other.start, other.end])
        sizes = [len(self), len(self), len(other), len(other)]
        order = np.argsort(edges, kind="stable")
        edges = edges[order]
        inside = np.cumsum(np.repeat([1, -1, 0, 0], sizes)[order])
        covered = np.cumsum(np.repeat([0, 0, 1, -1], sizes)[order])
        free = np.flatnonzero((inside[:-1] > 0) & (covered[:-1] == 0) & (edges[1:] > edges[:-1]))
        return Intervals(edges[free], edges[free + 1])

    def __len__(self) -> int:
        return len(self.start)

    @property
    def total(self) -> int:
        """Nanoseconds in all."""
        return int(self._before[-1])

    def covered(self, start: NDArray[Any], end: NDArray[Any]) -> Times:
        """Nanoseconds of each stretch of time that lie in the set."""
        covered: Times = self._until(np.asarray(end, np.int64)) - self._until(np.asarray(start, np.int64))
        return covered

    def overlap(self, start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each stretch of time has a part in the set, or a moment if it has no length."""
        at = np.searchsorted(self.end, start, side="right")
        known = at < len(self)
        result = np.zeros(len(start), np.bool_)
        result[known] = self.start[at[known]] < end[known]
        return result

    def _until(self, time: Times) -> Times:
        """Nanoseconds of the set before each moment."""
        if not len(self.start):
            return np.zeros(len(time), np.int64)
        at = np.searchsorted(self.start, time, side="right") - 1
        inside = np.minimum(time, self.end[at]) - self.start[at]
        return np.where(at >= 0, self._before[at] + inside, 0)
