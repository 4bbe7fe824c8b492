"""Allocations for the report: when each was freed, by whom it was made and, where it is known, what it was for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._memory_profiler import Action, Category, MemoryProfile
from .._store import EventStore

CATEGORIES = tuple(category.name for category in Category)
UNKNOWN = len(CATEGORIES)
_NUMBER = {category: number for number, category in enumerate(Category)}


class Uses(NamedTuple):
    """What memory was used for: a category for every memory row, and what was there before the recording."""

    category: NDArray[np.int64]
    before_bytes: list[int]
    before_category: list[int]
    before_freed: list[int]  # memory row that freed it, -1 if none did


def freed_by(store: EventStore) -> NDArray[np.int64]:
    """For each memory row the row that frees what it allocated; its own number for a free and for what stays."""
    count = len(store.mem_time)
    found = np.arange(count)
    if count < 2:
        return found
    device = store.mem_device_type.astype(np.int64) << 32 | store.mem_device_index.astype(np.uint32)
    order = np.lexsort((found, store.mem_addr, device))
    here, following = order[:-1], order[1:]
    same = (store.mem_addr[here] == store.mem_addr[following]) & (device[here] == device[following])
    ends = same & (store.mem_bytes[here] > 0) & (store.mem_bytes[following] < 0)
    found[here[ends]] = following[ends]
    return found


def uses(store: EventStore, profile: MemoryProfile) -> Uses:
    """The categories that the memory profile of the same recording knows."""
    wall = store.wall_start_ns - store.clock_start_ns
    moments, addresses = store.mem_time.tolist(), store.mem_addr.tolist()
    rows = {place: row for row, place in enumerate(zip(moments, addresses, strict=True))}
    category = np.full(len(rows) and len(moments), UNKNOWN, np.int64)
    before: dict[Any, list[int]] = {}
    for moment, action, (key, version), size in profile.timeline:
        known = profile._categories.get(key, version)
        number = UNKNOWN if known is None else _NUMBER[known]
        row = rows.get((moment - wall, key.address))
        if action is Action.PREEXISTING:
            before[key] = [size, number, -1]
        elif action is Action.CREATE and row is not None:
            category[row] = number
        elif action is Action.DESTROY and key in before and row is not None:
            before[key][2] = row
    sizes, numbers, freed = (list(part) for part in zip(*before.values(), strict=True)) if before else ([], [], [])
    return Uses(category, sizes, numbers, freed)
