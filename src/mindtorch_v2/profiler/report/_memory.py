"""Pairs of allocations and frees, for the report."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..store.store import EventStore


def freed_by(store: EventStore) -> NDArray[np.int64]:
    """For each memory row, the row that frees its block; its own number for a free, and for a block that is not freed."""
    count = len(store.mem_time)
    freed = np.arange(count)
    if count < 2:
        return freed
    device = store.mem_device_type.astype(np.int64) << 32 | store.mem_device_index.astype(np.uint32)
    order = np.lexsort((freed, store.mem_addr, device))
    here, following = order[:-1], order[1:]
    same = (store.mem_addr[here] == store.mem_addr[following]) & (device[here] == device[following])
    ends = same & (store.mem_bytes[here] > 0) & (store.mem_bytes[following] < 0)
    freed[here[ends]] = following[ends]
    return freed
