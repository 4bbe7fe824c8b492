"""How the memory of recordings differs: the peak of each device, and what is allocated in a step."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...exporters.table import format_memory
from ...store.store import EventStore
from ..findings import relative_change
from ..steps import training_steps
from .categories import stored_uses
from .use import memory_use


@dataclass(frozen=True)
class MemoryChange:
    """One figure of memory, in bytes, of each recording before and after."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]

    @property
    def ratio(self) -> float:
        """The median after, as a part of that before."""
        before, after = statistics.median(self.a), statistics.median(self.b)
        return after / before if before else float("inf") if after else 1.0

    def grown_by(self, limit: float) -> bool:
        """Whether it grew by more than `limit`, a part of it, and every recording after has more than any before."""
        return self.ratio > 1 + limit and min(self.b) > max(self.a)

    def __str__(self) -> str:
        before, after = round(statistics.median(self.a)), round(statistics.median(self.b))
        change = relative_change(self.ratio) if before else "new"
        return f"{self.name}: {format_memory(before)} -> {format_memory(after)} ({change})"

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return {"name": self.name, "a_bytes": list(self.a), "b_bytes": list(self.b)}


def memory_figures(store: EventStore, *, with_uses: bool = True) -> dict[str, int]:
    """Bytes by name: the peak of each device, and what is allocated in a step; {} if no memory was recorded.

    with_uses: count what was there before the recording, as far as a saved profile knows it.
    """
    used = memory_use(store, stored_uses(store) if with_uses else None)
    figures = {f"peak of memory, {use.device}": use.peak for use in used}
    if used:
        which = training_steps(store)
        at = np.searchsorted(which.start, store.mem_time, side="right") - 1
        inside = (at >= 0) & (store.mem_time < which.end[at]) & (store.mem_bytes > 0)
        by_step = np.bincount(at[inside], weights=store.mem_bytes[inside], minlength=len(which.start))
        figures["memory allocated in a step"] = int(np.median(by_step))
    return figures


def memory_changes(a: Sequence[EventStore], b: Sequence[EventStore]) -> list[MemoryChange]:
    """The figures that all recordings have."""
    known = all(stored_uses(store) is not None for store in (*a, *b))
    before, after = ([memory_figures(store, with_uses=known) for store in side] for side in (a, b))
    names = [name for name in before[0] if all(name in figures for figures in (*before, *after))]
    return [
        MemoryChange(name, tuple(figures[name] for figures in before), tuple(figures[name] for figures in after))
        for name in names
    ]
