"""How much nesting and how many threads a file may hold before it is taken for an attack.

Trees are walked level by level and threads one by one, so their numbers decide how long every later question takes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_LANES = 1 << 12
# Levels of all rows together: some ten seconds of walking.
_MOST_LEVELS = 1_000_000_000
_DEEPEST = 2048


def too_deep(tid: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows to leave out so that nesting stays within bounds: none, or all beyond some depth."""
    depth = np.zeros(len(start), np.int64)
    for thread in np.unique(tid):
        rows = np.flatnonzero(tid == thread)
        rows = rows[np.lexsort((-end[rows], start[rows]))]
        depth[rows] = np.arange(len(rows)) - np.searchsorted(np.sort(end[rows]), start[rows], side="right")
    found: NDArray[np.bool_] = depth > (_DEEPEST if int(depth.sum()) > _MOST_LEVELS else len(start))
    return found
