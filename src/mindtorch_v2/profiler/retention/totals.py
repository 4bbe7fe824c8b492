"""Totals: count, sum, extremes and histogram of durations, as columns with one row per group.

In: groups and durations of rows, by `aggregate`. Out: a `stats.Summary` per group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .stats import BINS, LOG_GROWTH, Summary

Numbers = NDArray[np.int64]
_MOST = np.iinfo(np.int64).max


class Totals:
    """A Summary for each group, as columns."""

    def __init__(self) -> None:
        self._sums = np.zeros((0, 4), np.int64)  # count, sum, least, most
        self._bins = np.zeros((0, BINS), np.int64)

    # Memory per group.
    BYTES = 8 * (4 + BINS)

    def grow(self, groups: int) -> None:
        """Have columns for at least this many groups."""
        if groups > len(self._sums):
            more = max(groups, 2 * len(self._sums)) - len(self._sums)
            fresh = np.zeros((more, 4), np.int64)
            fresh[:, 2] = _MOST
            self._sums = np.concatenate([self._sums, fresh])
            self._bins = np.concatenate([self._bins, np.zeros((more, BINS), np.int64)])

    def add(self, group: Numbers, duration: Numbers) -> None:
        """Add durations, each to its group."""
        if not len(group):
            return
        sums = self._sums
        sums[:, 0] += np.bincount(group, minlength=len(sums))
        np.add.at(sums[:, 1], group, duration)
        np.minimum.at(sums[:, 2], group, duration)
        np.maximum.at(sums[:, 3], group, duration)
        number = np.ceil(np.log(np.maximum(duration, 1)) / LOG_GROWTH).astype(np.int64)
        place, count = np.unique(group * BINS + np.minimum(number, BINS - 1), return_counts=True)
        self._bins.reshape(-1)[place] += count

    def summary(self, group: int) -> Summary:
        """The totals of one group as plain numbers."""
        count, total, least, most = self._sums[group].tolist()
        used = np.flatnonzero(self._bins[group])
        bins = dict(zip(used.tolist(), self._bins[group, used].tolist(), strict=True))
        return Summary(count, total, least if count else 0, most, bins)

    def copy(self) -> Totals:
        """A copy that does not change when this one does."""
        copy = Totals()
        copy._sums, copy._bins = self._sums.copy(), self._bins.copy()
        return copy


class StepTotals:
    """Totals of the time that a group took per step. The step under way is summed up until a row of a later step comes."""

    def __init__(self) -> None:
        self.totals = Totals()
        self._step = np.full(0, -1, np.int64)
        self._so_far = np.zeros(0, np.int64)

    def grow(self, groups: int) -> None:
        """Have columns for at least this many groups."""
        self.totals.grow(groups)
        more = max(groups, 2 * len(self._step)) - len(self._step) if groups > len(self._step) else 0
        if more:
            self._step = np.concatenate([self._step, np.full(more, -1, np.int64)])
            self._so_far = np.concatenate([self._so_far, np.zeros(more, np.int64)])

    def add(self, group: Numbers, step: Numbers, duration: Numbers) -> None:
        """Add durations, each to its group and step; steps do not go back."""
        if not len(group):
            return
        step = np.maximum(step, self._step[group])  # a row that began in an earlier step counts for the one it ended in
        order = np.lexsort((step, group))
        group, step, duration = group[order], step[order], duration[order]
        first = np.flatnonzero(np.append(True, (group[1:] != group[:-1]) | (step[1:] != step[:-1])))
        group, step, total = group[first], step[first], np.add.reduceat(duration, first)
        goes_on = step == self._step[group]
        total[goes_on] += self._so_far[group[goes_on]]
        begins = np.append(True, group[1:] != group[:-1])
        ended = begins & ~goes_on & (self._step[group] >= 0)
        self.totals.add(group[ended], self._so_far[group[ended]])
        last = np.append(group[1:] != group[:-1], True)
        self.totals.add(group[~last], total[~last])
        self._step[group[last]], self._so_far[group[last]] = step[last], total[last]

    def finished(self) -> Totals:
        """The totals with the step under way counted as if it ended now."""
        totals = self.totals.copy()
        under_way = np.flatnonzero(self._step >= 0)
        totals.add(under_way, self._so_far[under_way])
        return totals

    def copy(self) -> StepTotals:
        """A copy that does not change when this one does."""
        copy = StepTotals()
        copy.totals, copy._step, copy._so_far = self.totals.copy(), self._step.copy(), self._so_far.copy()
        return copy
