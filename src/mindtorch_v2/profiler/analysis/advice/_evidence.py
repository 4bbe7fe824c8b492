"""What the rules look at: rows by name, rows below others, what a call costs at least."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.store import EventStore
from ..steps import steps

Rows = NDArray[np.intp]


def rows_named(store: EventStore, wanted: Callable[[str], bool]) -> Rows:
    """Host rows whose name satisfies a condition, Python calls aside."""
    names = [number for number, name in enumerate(store.names) if wanted(name)]
    return np.flatnonzero(np.isin(store.name, names) & (store.device_type == 0) & ~store.is_python)


def under(store: EventStore, tops: Rows) -> NDArray[np.bool_]:
    """Whether a row lies below one of `tops` (not counting those)."""
    wanted = np.zeros(len(store) + 1, np.bool_)
    wanted[tops] = True
    found = np.zeros(len(store) + 1, np.bool_)
    above = store.parent.astype(np.int64)
    looking = np.arange(len(store))[above >= 0]
    above = above[above >= 0]
    while len(looking):
        hit = wanted[above]
        found[looking[hit]] = True
        looking, above = looking[~hit], store.parent[above[~hit]].astype(np.int64)
        looking, above = looking[above >= 0], above[above >= 0]
    return found[:-1]


def outermost(store: EventStore, rows: Rows) -> Rows:
    """Those of `rows` that lie in no other of them: their durations can be added up."""
    return rows[~under(store, rows)[rows]]


def recorded_ns(store: EventStore) -> int:
    """Time of all steps together."""
    return int(steps(store).duration.sum())


def share(ns: float, store: EventStore) -> float | None:
    """A time as a part of all steps, at most 1; None when there are none."""
    whole = recorded_ns(store)
    return min(1.0, ns / whole) if whole else None


def call_cost_ns(store: EventStore) -> int:
    """What an op costs at least in this recording, whatever its size: the self time that one op in ten stays below."""
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0))
    return int(np.quantile(store.self_ns[ops], 0.1)) if len(ops) else 0


def top_names(store: EventStore, rows: Rows, limit: int = 5) -> list[tuple[str, int, int]]:
    """(name, calls, self nanoseconds) of the rows, most time first."""
    labels, which = np.unique(store.label[rows], return_inverse=True)
    counts = np.bincount(which)
    times = np.bincount(which, weights=store.self_ns[rows]).astype(np.int64)
    order = np.argsort(-times)[:limit].tolist()
    return [(store.labels[int(labels[at])], int(counts[at]), int(times[at])) for at in order]
