"""Memory of a recording: its peak on each device, and who had allocated what was held then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._store import EventStore
from ..events import DeviceType
from .memory_categories import CATEGORIES, Uses
from .places import user_frame
from .steps import steps


class Holder(NamedTuple):
    """Blocks alive at the peak that one op allocated for one line of the user's code."""

    name: str
    where: str | None
    blocks: int
    bytes: int


class MemoryUse(NamedTuple):
    """One device: counts, bytes allocated in all, the peak above the start and when it was, and the holders then."""

    device: str
    allocations: int
    allocated: int
    left: int
    peak: int
    peak_ns: int
    peak_step: int | None
    holders: list[Holder]
    categories: dict[str, int]  # bytes held at the peak by what they were for; empty where that is not known


def memory_use(store: EventStore, uses: Uses | None = None) -> list[MemoryUse]:
    """The devices in the recording, the CPU first."""
    device = store.mem_device_type.astype(np.int64) << 32 | store.mem_device_index.astype(np.uint32)
    return [_use(store, np.flatnonzero(device == one), uses) for one in np.unique(device)]


def _use(store: EventStore, rows: NDArray[np.intp], uses: Uses | None) -> MemoryUse:
    amounts = store.mem_bytes[rows]
    running = np.cumsum(amounts)
    at = int(np.argmax(running))
    when = int(store.mem_time[rows[at]])
    kind, index = int(store.mem_device_type[rows[0]]), int(store.mem_device_index[rows[0]])
    which = steps(store)
    alive = _alive(store, rows[: at + 1])
    inside = np.flatnonzero((which.start <= when) & (when < which.end) & (len(which.start) > 1))
    return MemoryUse(
        tuple(DeviceType)[kind].lower() + (f":{index}" if index >= 0 else ""),
        int((amounts > 0).sum()),
        int(amounts[amounts > 0].sum()),
        int(running[-1]),
        int(running[at]),
        when,
        int(which.number[inside[0]]) if len(inside) else None,
        _holders(store, alive),
        {} if uses is None else _by_category(store, alive, uses),
    )


def _by_category(store: EventStore, alive: list[int], uses: Uses) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in alive:
        name = (*CATEGORIES, "UNKNOWN")[uses.category[row]]
        found[name] = found.get(name, 0) + int(store.mem_bytes[row])
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _alive(store: EventStore, rows: NDArray[np.intp]) -> list[int]:
    """The memory rows whose blocks are still held after all of `rows`."""
    alive: dict[int, int] = {}
    for row, address, amount in zip(rows.tolist(), store.mem_addr[rows].tolist(), store.mem_bytes[rows].tolist(), strict=True):
        if amount > 0:
            alive[address] = row
        else:
            alive.pop(address, None)
    return list(alive.values())


def _holders(store: EventStore, alive: list[int]) -> list[Holder]:
    found: dict[tuple[str, str | None], list[int]] = {}
    for row in alive:
        event = int(store.mem_event[row])
        stack = int(store.call_stack[event]) if event >= 0 else -1
        name = store.labels[store.label[event]] if event >= 0 else "outside of any op"
        where = user_frame(store.stacks[stack]) if stack >= 0 else None
        found.setdefault((name, where), []).append(int(store.mem_bytes[row]))
    holders = [Holder(name, where, len(sizes), sum(sizes)) for (name, where), sizes in found.items()]
    return sorted(holders, key=lambda holder: -holder.bytes)


