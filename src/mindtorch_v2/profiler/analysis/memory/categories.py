"""The category of every memory row: computed for a live profile, stored in a saved one."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...store.memory_profile import Action, Category, MemoryBlocks
from ...store.store import EventStore

CATEGORIES = tuple(category.name for category in Category)
UNKNOWN = len(CATEGORIES)
_NUMBER = {category: number for number, category in enumerate(Category)}


class Uses(NamedTuple):
    """The category of every memory row, and the blocks of the CPU from before the recording."""

    category: NDArray[np.int64]
    before_bytes: list[int]
    before_category: list[int]
    before_freed: list[int]  # the memory row that freed the block, -1 if none did


def uses(store: EventStore, profile: MemoryBlocks) -> Uses:
    """The categories of a recording, by its memory profile."""
    wall = store.wall_start_ns - store.clock_start_ns
    times, addresses = store.mem_time.tolist(), store.mem_addr.tolist()
    rows = {place: row for row, place in enumerate(zip(times, addresses, strict=True))}
    category = np.full(len(times), UNKNOWN, np.int64)
    before: dict[Any, list[int]] = {}
    for time, action, (key, version), size in profile.timeline:
        known = profile._categories.get(key, version)
        number = UNKNOWN if known is None else _NUMBER[known]
        row = rows.get((time - wall, key.address))
        if action is Action.PREEXISTING and key.device == "cpu":
            before[key] = [size, number, -1]
        elif action is Action.CREATE and row is not None:
            category[row] = number
        elif action is Action.DESTROY and key in before and row is not None:
            before[key][2] = row
    sizes, numbers, freed = (list(part) for part in zip(*before.values(), strict=True)) if before else ([], [], [])
    return Uses(category, sizes, numbers, freed)


def encoded_uses(uses: Uses) -> dict[str, Any]:
    """Uses as plain values, for the options of a recording that is saved. `stored_uses` reads them."""
    text = base64.b64encode(zlib.compress(uses.category.astype(np.uint8).tobytes())).decode()
    return {"category": text, "before": [uses.before_bytes, uses.before_category, uses.before_freed]}


def stored_uses(store: EventStore) -> Uses | None:
    """The uses that a saved or streamed recording has; None if it has none, or they make no sense."""
    known = store.options.get("memory_uses")
    if known is None and store.storage_notes is not None and len(store.storage_notes.touched):
        try:
            return uses(store, MemoryBlocks(store, store.storage_notes))
        except (ArithmeticError, LookupError, TypeError, ValueError):  # of a damaged file
            return None
    if not isinstance(known, Mapping):
        return None
    try:
        unpacker = zlib.decompressobj()
        category = np.frombuffer(unpacker.decompress(base64.b64decode(known["category"]), len(store.mem_time) + 1), np.uint8)
        before = [[int(value) for value in part] for part in known["before"]]
    except (KeyError, TypeError, ValueError, zlib.error):
        return None
    if len(category) != len(store.mem_time) or len(before) != 3 or len({len(part) for part in before}) != 1:
        return None
    if (category > UNKNOWN).any() or any(not 0 <= number <= UNKNOWN for number in before[1]):
        return None
    if any(not -1 <= row < len(category) for row in before[2]):
        return None
    return Uses(category.astype(np.int64), *before)
