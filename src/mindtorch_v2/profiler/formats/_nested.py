"""Rows in the forms that writers share: lanes, properly nested beginnings and ends, call paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.store import EventStore


class Lane(NamedTuple):
    """A thread, or a stream of a device, and its rows in order of start."""

    number: int
    name: str
    device_type: int
    device_index: int
    rows: NDArray[np.intp]


def lanes(store: EventStore) -> list[Lane]:
    """All rows except those of memory, by thread and stream."""
    all_lanes = []
    spans = store.kind != observer.MEMORY
    for number in np.unique(store.tid[spans]).tolist():
        rows = np.flatnonzero(spans & (store.tid == number))
        rows = rows[np.argsort(store.start[rows], kind="stable")]  # rows of joined recordings are not in order
        first = int(rows[0])
        all_lanes.append(
            Lane(number, lane_name(store, number, first), int(store.device_type[first]), int(store.device_index[first]), rows)
        )
    return all_lanes


def lane_name(store: EventStore, number: int, row: int) -> str:
    """The name of a lane; that of a stream includes the device."""
    thread = store.threads[number]
    if store.device_type[row]:
        return f"device {int(store.device_index[row])} {thread.name}"
    return f"{thread.name} ({thread.ident})"


def beginnings_and_ends(store: EventStore, rows: NDArray[np.intp]) -> Iterator[tuple[bool, int, int]]:
    """(whether it begins, row, time) for rows of one lane in order of start, each inside the open ones.

    Times never go back. Where two rows overlap and neither is inside the other, the earlier one ends where the
    later begins.
    """
    open_rows: list[int] = []
    open_ends: list[int] = []
    parents = store.parent[rows]
    if len(rows) and store.device_type[rows[0]]:  # device rows have no parent, but labels enclose kernels
        parents = np.append(rows, -1)[tree.parents(store.tid[rows], store.start[rows], store.end[rows])]
    columns = (rows, store.start[rows], store.end[rows], parents)
    now = int(columns[1][0]) if len(rows) else 0
    for row, recorded_start, end, parent in zip(*(column.tolist() for column in columns), strict=True):
        start = max(recorded_start, now)
        while open_rows and (open_rows[-1] != parent or open_ends[-1] <= start):
            now = max(now, min(open_ends.pop(), start))
            yield False, open_rows.pop(), now
        yield True, row, start
        now = start
        open_rows.append(row)
        open_ends.append(max(end, start) if not open_ends else min(max(end, start), open_ends[-1]))
    while open_rows:
        now = max(now, open_ends.pop())
        yield False, open_rows.pop(), now


def call_paths(parent: NDArray[Any], name: NDArray[Any]) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
    """The number of each row's call path, which is the names from its root to it, and (path above, name) of each path.

    A parent comes before its children; -1 is the path above a root.
    """
    known: dict[tuple[int, int], int] = {}
    paths: list[int] = []
    for above, own in zip(parent.tolist(), name.tolist(), strict=True):
        paths.append(known.setdefault((paths[above] if above >= 0 else -1, own), len(known)))
    return np.array(paths, np.int64), list(known)
