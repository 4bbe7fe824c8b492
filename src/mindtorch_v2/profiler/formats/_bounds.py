"""Bounds on nesting and threads, beyond which a file is taken for an attack.

Trees are walked level by level and threads one by one, so their numbers decide how long every later query takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_LANES = 1 << 12
# Threads times rows: the rows of each thread are searched among all.
MOST_VISITS = 1 << 34
# Sum of the depths of all rows: some ten seconds of walking.
_MOST_LEVELS = 1_000_000_000
DEEPEST = 2048


def too_deep(tid: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows to leave out so that nesting stays within bounds: none, or all beyond some depth."""
    depth = np.zeros(len(start), np.int64)
    for thread in np.unique(tid):
        rows = np.flatnonzero(tid == thread)
        depth[rows] = nesting(start[rows], end[rows])
    beyond: NDArray[np.bool_] = depth > (DEEPEST if int(depth.sum()) > _MOST_LEVELS else len(start))
    return beyond


def nesting(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of its thread each row lies inside of, or more where rows overlap partially."""
    depth = np.empty(len(start), np.int64)
    order = np.lexsort((-end, start))
    depth[order] = np.arange(len(start)) - np.searchsorted(np.sort(end), start[order], side="right")
    return depth
