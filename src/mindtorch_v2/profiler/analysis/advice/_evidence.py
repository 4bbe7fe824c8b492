"""Queries that rules share: rows by name, rows below others, shares of the time, the least cost of a call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.store import EventStore
from ..steps import steps

Rows = NDArray[np.intp]

_FAR = 10  # times the median of an op: a call that took longer was interrupted, if
_FEW = 0.05  # of the op's calls, or fewer, did


def rows_named(store: EventStore, matches: Callable[[str], bool]) -> Rows:
    """Host rows, except Python calls, whose name satisfies a condition."""
    names = [number for number, name in enumerate(store.names) if matches(name)]
    return np.flatnonzero(np.isin(store.name, names) & (store.device_type == 0) & ~store.is_python)


def under(store: EventStore, tops: Rows) -> NDArray[np.bool_]:
    """Whether each row has an ancestor among `tops`."""
    is_top = np.zeros(len(store) + 1, np.bool_)
    is_top[tops] = True
    below = np.zeros(len(store) + 1, np.bool_)
    above = store.parent.astype(np.int64)
    pending = np.arange(len(store))[above >= 0]
    above = above[above >= 0]
    while len(pending):
        hit = is_top[above]
        below[pending[hit]] = True
        pending, above = pending[~hit], store.parent[above[~hit]].astype(np.int64)
        pending, above = pending[above >= 0], above[above >= 0]
    return below[:-1]


def outermost(store: EventStore, rows: Rows) -> Rows:
    """Those of `rows` without an ancestor among them, so that their durations can be added up."""
    return rows[~under(store, rows)[rows]]


def recorded_ns(store: EventStore) -> int:
    """Sum of the durations of all steps."""
    return int(steps(store).duration.sum())


def share(ns: float, store: EventStore) -> float | None:
    """A time as a part of that of all steps, at most 1; None if that is 0."""
    whole = recorded_ns(store)
    return min(1.0, ns / whole) if whole else None


def call_cost_ns(store: EventStore) -> int:
    """The least cost of an op in this recording, of any size: the tenth percentile of self times."""
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0))
    return int(np.quantile(store.self_ns[ops], 0.1)) if len(ops) else 0


def undisturbed_self_ns(store: EventStore, rows: Rows) -> NDArray[np.int64]:
    """Self times of the rows; one that is far above the median of its op, as few of that op are, counts as the median."""
    own = store.self_ns[rows].astype(np.int64)
    order = np.lexsort((own, store.label[rows]))
    _, first, counts = np.unique(store.label[rows][order], return_index=True, return_counts=True)
    sorted_own = own[order]
    for at, count in zip(first.tolist(), counts.tolist(), strict=True):
        of_label = sorted_own[at : at + count]
        median = int(of_label[count // 2])
        above = int(np.searchsorted(of_label, _FAR * median, side="right"))
        if count - above <= _FEW * count:
            own[order[at + above : at + count]] = median
    return own


def top_names(
    store: EventStore, rows: Rows, limit: int = 5, own: NDArray[np.int64] | None = None
) -> list[tuple[str, int, int]]:
    """(name, calls, self nanoseconds) of the rows, most time first; `own` are their self times if not as recorded."""
    labels, which = np.unique(store.label[rows], return_inverse=True)
    counts = np.bincount(which)
    times = np.bincount(which, weights=store.self_ns[rows] if own is None else own).astype(np.int64)
    order = np.argsort(-times)[:limit].tolist()
    return [(store.labels[int(labels[at])], int(counts[at]), int(times[at])) for at in order]
