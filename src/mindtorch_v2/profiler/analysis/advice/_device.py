"""What a device did in the passes of the main loop: when it worked, when it idled, and what the host waited for."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.store import EventStore
from ._evidence import Rows, passes

_BUSY = 0.9  # of the time: from there on the device is what limits a program

Spans = NDArray[np.int64]  # rows of start and end, in order and apart from each other


class DeviceUse(NamedTuple):
    """The stretches of the passes, and those of them in which the device that works most worked, idled, or copied only."""

    passes: Spans
    busy: Spans
    idle: Spans
    kernels: Rows
    copies: Rows

    @property
    def idle_share(self) -> float:
        """The part of the passes in which the device had nothing to do."""
        return length(self.idle) / max(1, length(self.passes))

    @property
    def is_limit(self) -> bool:
        """Whether the device works nearly all the time, so that nothing the host does costs any."""
        return self.idle_share <= 1 - _BUSY


_known: WeakKeyDictionary[EventStore, DeviceUse] = WeakKeyDictionary()


def device_use(store: EventStore) -> DeviceUse | None:
    """How the busiest device was used; None if nothing ran on one."""
    if not store.has_device_rows or not store.is_work.any():
        return None
    known = _known.get(store)
    if known is None:
        known = _known[store] = _use(store)
    return known


def _use(store: EventStore) -> DeviceUse:
    work = np.flatnonzero(store.is_work)
    devices, which = np.unique(store.device_type[work].astype(np.int64) * 1024 + store.device_index[work], return_inverse=True)
    most = int(np.argmax(np.bincount(which, weights=store.duration[work]))) if len(devices) > 1 else 0
    work = work[which == most]
    found = passes(store).steps
    whole = union(found.start, found.end)
    busy = common(union(store.start[work], store.end[work]), whole)
    within = overlapping(store.start[work], store.end[work], whole)
    return DeviceUse(
        whole,
        busy,
        without(whole, busy),
        work[within & (store.kind[work] == observer.KERNEL)],
        work[within & (store.kind[work] == observer.COPY)],
    )


def waits(store: EventStore) -> Rows:
    """Calls of the device's runtime that return when the device has done its work."""
    names = [number for number, name in enumerate(store.names) if "ynchronize" in name]
    return np.flatnonzero((store.kind == observer.RUNTIME) & np.isin(store.name, names) & (passes(store).of_row >= 0))


# ------------------------------------------------------------------------------ stretches of time


def union(start: NDArray[np.int64], end: NDArray[np.int64]) -> Spans:
    """The stretches that at least one of the ranges covers."""
    if not len(start):
        return np.empty((0, 2), np.int64)
    order = np.argsort(start, kind="stable")
    start, reached = start[order], np.maximum.accumulate(end[order])
    begins = np.append(True, start[1:] > reached[:-1])
    ends = np.append(np.flatnonzero(begins)[1:] - 1, len(start) - 1)
    return np.stack([start[begins], reached[ends]], axis=1)


def length(spans: Spans) -> int:
    """Nanoseconds of all stretches."""
    return int((spans[:, 1] - spans[:, 0]).sum())


def without(spans: Spans, others: Spans) -> Spans:
    """The parts of stretches that others do not cover."""
    edges = np.concatenate([spans[:, 0], spans[:, 1], others[:, 0], others[:, 1]])
    inside = np.repeat([1, -1, 0, 0], [len(spans), len(spans), len(others), len(others)])
    covered = np.repeat([0, 0, 1, -1], [len(spans), len(spans), len(others), len(others)])
    order = np.argsort(edges, kind="stable")
    edges, inside, covered = edges[order], np.cumsum(inside[order]), np.cumsum(covered[order])
    free = (inside[:-1] > 0) & (covered[:-1] == 0) & (edges[1:] > edges[:-1])
    return np.stack([edges[:-1][free], edges[1:][free]], axis=1)


def common(spans: Spans, others: Spans) -> Spans:
    """The parts of stretches that others cover, too."""
    return without(spans, without(spans, others))


def overlapping(start: NDArray[np.int64], end: NDArray[np.int64], spans: Spans) -> NDArray[np.bool_]:
    """Whether each range has a part in a stretch."""
    at = np.searchsorted(spans[:, 1], start, side="right")
    known = at < len(spans)
    result = np.zeros(len(start), np.bool_)
    result[known] = spans[at[known], 0] < end[known]
    return result
