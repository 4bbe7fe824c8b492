"""Estimates what recording itself cost, and times without that cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.store import EventStore
from .findings import duration


class Calibration(NamedTuple):
    """Nanoseconds that one recorded event adds, by kind; `inside` is the part that falls between its own clock readings."""

    op: float
    scope: float
    python: float
    inside: float


@dataclass(frozen=True)
class Overhead:
    """The recorder's share of a recording, estimated as events times the cost of one.

    duration_ns and self_ns are the recording's columns without the cost of the events in them.
    """

    calibration: Calibration
    events: int
    total_ns: int
    covered_ns: int
    duration_ns: NDArray[np.int64]
    self_ns: NDArray[np.int64]

    @property
    def share(self) -> float:
        """The part of the covered time that was spent on recording, at most 1."""
        return min(1.0, self.total_ns / self.covered_ns) if self.covered_ns else 0.0

    @property
    def per_event_ns(self) -> float:
        """Nanoseconds per event, on average."""
        return self.total_ns / self.events if self.events else 0.0

    def __str__(self) -> str:
        return (
            f"Profiler overhead: about {duration(self.total_ns)} in {self.events:,} events "
            f"({self.per_event_ns:.0f} ns each), {self.share:.1%} of the recorded time"
        )


def calibration_of(store: EventStore) -> Calibration | None:
    """The calibration that a recording was saved with; None if it has none."""
    known = store.options.get("calibration")
    if not isinstance(known, Mapping) or set(known) != set(Calibration._fields):
        return None
    return Calibration(**{name: float(value) for name, value in known.items()})


def estimate(store: EventStore, calibration: Calibration) -> Overhead:
    """The overhead in a recording whose events cost what the calibration says."""
    cost = _cost(store, calibration)
    inside = np.where(cost > 0, np.int64(round(calibration.inside)), 0)
    # A row's duration includes the whole cost of every event below it, and the inside part of its own.
    below = tree.subtree_sums(store.parent, cost) - cost
    corrected = np.maximum(store.duration - below - inside, 0)
    children = tree.children_sums(store.parent, corrected)
    roots = (store.parent < 0) & (store.device_type == 0)
    return Overhead(
        calibration,
        int((cost > 0).sum()),
        int(cost.sum()),
        int(store.duration[roots].sum()),
        corrected,
        np.maximum(corrected - children, 0),
    )


def _cost(store: EventStore, calibration: Calibration) -> NDArray[np.int64]:
    by_kind = np.full(max(observer.RUNTIME, observer.MEMORY) + 1, calibration.op)
    by_kind[[observer.SCOPE, observer.STEP, observer.MODULE]] = calibration.scope
    by_kind[observer.PYTHON] = calibration.python
    by_kind[[observer.MEMORY, observer.KERNEL, observer.COPY, observer.FILL]] = 0  # not recorded by the recorder
    cost: NDArray[np.int64] = np.rint(by_kind[store.kind]).astype(np.int64)
    return cost
