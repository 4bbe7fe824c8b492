"""Memory that a step allocates and no later step gives back."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ...store.store import EventStore
from ..findings import Finding, size
from ..source.places import user_frame
from ._evidence import passes
from .growing_tensor import growing

_FEWEST_STEPS = 5
_LEAST_BYTES = 64 << 10
_STEADY = 0.8


def rule(store: EventStore) -> list[Finding]:
    """Fires when the bytes held at the end of a step grow in at least four of five steps; needs profile_memory."""
    which = passes(store).steps
    if len(which.start) < _FEWEST_STEPS or not len(store.mem_time):
        return []
    running = np.cumsum(store.mem_bytes)
    at = np.searchsorted(store.mem_time, which.end, side="right") - 1
    # The first step fills gradients and optimizer state; at the end of the last one what the program held may be gone.
    in_use = np.where(at >= 0, running[at], 0)[1:-1]
    growth = np.diff(in_use)
    grown = int(in_use[-1] - in_use[0])
    if grown < _LEAST_BYTES or (growth > 0).mean() < _STEADY:
        return []
    each = grown / len(growth)
    kept = _kept(store, int(which.end[0]), int(which.end[-2]))
    if _grows_in_place(store, kept):
        return []  # that has a rule of its own
    makers: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for row in kept.tolist():
        event, amount = int(store.mem_event[row]), int(store.mem_bytes[row])
        makers[store.names[store.name[event]] if event >= 0 else "outside of any op"] += amount
        stack = int(store.call_stack[event]) if event >= 0 else -1
        frame = user_frame(store.stacks[stack]) if stack >= 0 else None
        if frame:
            lines[frame] += amount
    return [
        Finding(
            "memory_growth",
            f"Memory grows by {size(each)} a step",
            "Something keeps results of earlier steps: a list of losses that are not detached (use loss.item() or "
            "loss.detach()), a cache, or a graph held by retain_graph=True.",
            (
                f"{size(grown)} more after {len(growth)} steps",
                *(f"{size(amount)} kept from {name}" for name, amount in makers.most_common(5)),
            ),
            lines.most_common(1)[0][0] if lines else None,
        )
    ]


def _grows_in_place(store: EventStore, kept: NDArray[np.intp]) -> bool:
    """Whether most of what is kept is one tensor that was put together piece by piece."""
    of_cats = np.isin(store.mem_event[kept], growing(store))
    return bool(store.mem_bytes[kept[of_cats]].sum() > store.mem_bytes[kept].sum() / 2)


def _kept(store: EventStore, after: int, before: int) -> NDArray[np.intp]:
    """Memory rows that allocate between two times and whose address on their device is not freed again."""
    last: dict[tuple[int, ...], int] = {}
    chosen = np.flatnonzero((store.mem_time > after) & (store.mem_time <= before))
    columns = (store.mem_device_type, store.mem_device_index, store.mem_addr, store.mem_bytes)
    for row, *place, amount in zip(chosen.tolist(), *(column[chosen].tolist() for column in columns), strict=True):
        if amount > 0:
            last[tuple(place)] = row
        else:
            last.pop(tuple(place), None)
    return np.array(sorted(last.values()), np.intp)
