"""Allocations for the report: when each was freed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..store.store import EventStore


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
