"""Statistics of a finished recording, as mode="aggregate" has them of one that is not kept."""

from __future__ import annotations

import numpy as np

from ..store import tree
from ..store.store import EventStore
from .stats import AggregateRow, AggregateStats
from .totals import Totals


def stats_of(store: EventStore) -> AggregateStats:
    """The statistics of a recording by name. Python calls are left out: their time counts for the row around them."""
    counted = np.flatnonzero(~store.is_python & (store.device_type == 0))
    label, size = store.label[counted].astype(np.int64), len(store.labels)
    calls, steps = Totals(), Totals()
    calls.grow(size)
    steps.grow(size)
    calls.add(label, store.duration[counted])
    numbers, at = np.unique(store.step[counted], return_inverse=True)
    cell = label * max(len(numbers), 1) + at
    times = tree.sums(cell, store.duration[counted], size * max(len(numbers), 1)).reshape(size, -1)
    seen = np.bincount(cell, minlength=times.size).reshape(times.shape) > 0
    group, column = np.nonzero(seen)
    steps.add(group, times[group, column])
    self_ns = tree.sums(label, store.work_ns[counted], size)
    flops = tree.sums(label, store.flops[counted], size)
    rows = [
        AggregateRow(name, "", "", int(self_ns[number]), int(flops[number]), calls.summary(number), steps.summary(number))
        for number, name in enumerate(store.labels)
        if calls.summary(number).count
    ]
    return AggregateStats(rows, len(numbers))
