"""Memory of a recording: what was in use at the start, at the peak and at the end, and which ops held it at the peak."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...store.store import EventStore
from ...views.events import DeviceType
from ..source.places import user_frame
from ..steps import steps
from .categories import CATEGORIES, Uses

EARLIER = "from before the recording"


class Holder(NamedTuple):
    """Memory at the peak that one op allocated in one line of the user's code; `blocks` is 0 if their number is not known."""

    name: str
    where: str | None
    blocks: int
    bytes: int


class MemoryUse(NamedTuple):
    """One device: what was allocated, what was in use when, and which ops held it at the peak. All sizes are bytes."""

    device: str
    allocations: int
    allocated: int
    before: int  # in use when the recording began
    before_known: bool  # False: only what was freed later is known of it, so there may have been more
    peak: int  # in use at the peak, with what was there before
    peak_before: int  # the part of the peak that was there before
    peak_ns: int
    peak_step: int | None
    left: int  # in use at the end
    holders: list[Holder]
    categories: dict[str, int]  # in use at the peak by what it was for; empty where that is not known


def memory_use(store: EventStore, uses: Uses | None = None) -> list[MemoryUse]:
    """The memory of each device in the recording, the CPU first."""
    devices = store.mem_device_type.astype(np.int64) << 32 | store.mem_device_index.astype(np.uint32)
    return [_use(store, np.flatnonzero(devices == device), uses) for device in np.unique(devices)]


def in_use_before(store: EventStore, rows: NDArray[np.intp], uses: Uses | None) -> tuple[int, bool]:
    """Bytes in use before the first of a device's memory rows, and whether these are all."""
    if uses is not None:
        return sum(uses.before_bytes), True
    totals = store.mem_total[rows]
    counted = int(totals[0] - store.mem_bytes[rows[0]])  # by a trace that counts all memory of the process
    return counted - min(0, int(totals.min())), counted > 0


def _use(store: EventStore, rows: NDArray[np.intp], uses: Uses | None) -> MemoryUse:
    kind, index = int(store.mem_device_type[rows[0]]), int(store.mem_device_index[rows[0]])
    known = uses if kind == 0 else None  # categories are known of the CPU only
    amounts = store.mem_bytes[rows]
    before, before_known = in_use_before(store, rows, known)
    # One more entry at the front, since the peak may be at the start.
    in_use = before + np.append(0, np.cumsum(amounts))
    at = int(np.argmax(in_use))
    when = int(store.mem_time[rows[at - 1]]) if at else store.clock_start_ns
    alive = _alive(store, rows[:at])
    earlier = _earlier(known, int(rows[at - 1]) if at else -1)
    since = int(store.mem_bytes[alive].sum())
    peak_before = max(int(in_use[at]) - since, 0) if known is None else sum(size for size, _ in earlier)
    which = steps(store)
    inside = np.flatnonzero((which.start <= when) & (when < which.end) & (len(which.start) > 1))
    return MemoryUse(
        tuple(DeviceType)[kind].lower() + (f":{index}" if index >= 0 else ""),
        int((amounts > 0).sum()),
        int(amounts[amounts > 0].sum()),
        before,
        before_known,
        int(in_use[at]),
        peak_before,
        when,
        int(which.number[inside[0]]) if len(inside) else None,
        int(in_use[-1]),
        _holders(store, alive, Holder(EARLIER, None, len(earlier), peak_before)),
        {} if known is None else _by_category(store, alive, earlier, known),
    )


def _earlier(uses: Uses | None, last: int) -> list[tuple[int, int]]:
    """(bytes, category) of what was there before the recording and is still in use after memory row `last`."""
    if uses is None:
        return []
    blocks = zip(uses.before_bytes, uses.before_category, uses.before_freed, strict=True)
    return [(size, category) for size, category, freed in blocks if not 0 <= freed <= last]


def _by_category(store: EventStore, alive: list[int], earlier: list[tuple[int, int]], uses: Uses) -> dict[str, int]:
    totals: dict[str, int] = {}
    for size, category in [*earlier, *((int(store.mem_bytes[row]), int(uses.category[row])) for row in alive)]:
        name = (*CATEGORIES, "UNKNOWN")[category]
        totals[name] = totals.get(name, 0) + size
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def _alive(store: EventStore, rows: NDArray[np.intp]) -> list[int]:
    """The memory rows whose blocks are not freed by any of `rows`."""
    alive: dict[int, None] = {}
    newest: dict[int, int] = {}
    for row, address, amount in zip(rows.tolist(), store.mem_addr[rows].tolist(), store.mem_bytes[rows].tolist(), strict=True):
        if amount > 0:
            newest[address] = row
            alive[row] = None
        elif address in newest:
            del alive[newest.pop(address)]
    return list(alive)


def _holders(store: EventStore, alive: list[int], earlier: Holder) -> list[Holder]:
    sizes_of: dict[tuple[str, str | None], list[int]] = {}
    for row in alive:
        event = int(store.mem_event[row])
        stack = int(store.call_stack[event]) if event >= 0 else -1
        name = store.labels[store.label[event]] if event >= 0 else "outside of any op"
        where = user_frame(store.stacks[stack]) if stack >= 0 else None
        sizes_of.setdefault((name, where), []).append(int(store.mem_bytes[row]))
    holders = [Holder(name, where, len(sizes), sum(sizes)) for (name, where), sizes in sizes_of.items()]
    return sorted([*holders, *([earlier] if earlier.bytes else [])], key=lambda holder: -holder.bytes)
