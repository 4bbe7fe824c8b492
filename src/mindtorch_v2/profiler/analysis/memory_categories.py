"""What memory was used for, row by row: worked out from a live profile, and kept in saved ones."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..store.memory_profile import Action, Category, MemoryProfile
from ..store.store import EventStore

CATEGORIES = tuple(category.name for category in Category)
UNKNOWN = len(CATEGORIES)
_NUMBER = {category: number for number, category in enumerate(Category)}


class Uses(NamedTuple):
    """What memory was used for: a category for every memory row, and what the CPU had before the recording."""

    category: NDArray[np.int64]
    before_bytes: list[int]
    before_category: list[int]
    before_freed: list[int]  # memory row that freed it, -1 if none did


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
        if action is Action.PREEXISTING and key.device == "cpu":
            before[key] = [size, number, -1]
        elif action is Action.CREATE and row is not None:
            category[row] = number
        elif action is Action.DESTROY and key in before and row is not None:
            before[key][2] = row
    sizes, numbers, freed = (list(part) for part in zip(*before.values(), strict=True)) if before else ([], [], [])
    return Uses(category, sizes, numbers, freed)


def packed(found: Uses) -> dict[str, Any]:
    """The same as plain values, to be put among the options of a recording that is saved."""
    text = base64.b64encode(zlib.compress(found.category.astype(np.uint8).tobytes())).decode()
    return {"category": text, "before": [found.before_bytes, found.before_category, found.before_freed]}


def kept_in(store: EventStore) -> Uses | None:
    """What a saved or streamed recording tells; None if it does not, or makes no sense."""
    known = store.options.get("memory_uses")
    if known is None and store.storage_notes is not None and len(store.storage_notes.touched):
        try:
            return uses(store, MemoryProfile(store, store.storage_notes))
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
