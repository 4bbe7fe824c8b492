"""Time in which a thread only waits for its backward pass, which PyTorch runs on a thread of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.intervals import Intervals
from ..store.store import EventStore

_BETWEEN_NODES_NS = 1_000_000
_WAITING = (observer.SCOPE, observer.STEP, observer.PYTHON, observer.MODULE)


def backward_waits(store: EventStore) -> NDArray[np.int64]:
    """Of each row, how much of its self time passed while another thread ran the backward pass of this row's thread.

    That is not time of Python between ops: `self_ns - backward_waits` is. Rows of ops have none, since they work meanwhile.
    """
    waits = np.zeros(len(store), np.int64)
    engine = (store.kind == observer.ENGINE) & (store.fwd_tid >= 0) & (store.fwd_tid != store.tid) & (store.device_type == 0)
    for thread in np.unique(store.fwd_tid[engine]).tolist():
        passes = np.flatnonzero(engine & (store.fwd_tid == thread))
        running = Intervals(store.start[passes], store.end[passes])
        # Between two nodes the engine looks for the next one, and the thread still waits.
        first = np.append(True, running.start[1:] - running.end[:-1] > _BETWEEN_NODES_NS)
        whole = Intervals(running.start[first], running.end[np.append(first[1:], True)])
        rows = np.flatnonzero((store.host_tid == thread) & (store.kind != observer.MEMORY))
        covered = np.zeros(len(store), np.int64)
        covered[rows] = whole.covered(store.start[rows], store.nested_end[rows])
        alone = np.maximum(covered - tree.children_sums(store.parent, covered), 0)
        waiting = np.isin(store.kind[rows], _WAITING)
        waits[rows[waiting]] = alone[rows[waiting]]
    return np.minimum(waits, store.self_ns)
