"""Memory of a recording: what was in use at the start, at the peak and at the end, and who held it at the peak."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..store.store import EventStore
from ..views.events import DeviceType
from .memory_categories import CATEGORIES, Uses
from .places import user_frame
from .steps import steps

EARLIER = "from before the recording"


class Holder(NamedTuple):
    """Blocks in use at the peak that one op allocated for one line of the user's code; `blocks` is 0 where nobody counted."""

    name: str
    where: str | None
    blocks: int
    bytes: int


class MemoryUse(NamedTuple):
    """One device: what was allocated, what was in use when, and who held it at the peak. All sizes are bytes."""

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
    """The devices in the recording, the CPU first."""
    device = store.mem_device_type.astype(np.int64) << 32 | store.mem_device_index.astype(np.uint32)
    return [_use(store, np.flatnonzero(device == one), uses) for one in np.unique(device)]


def in_use_before(store: EventStore, rows: NDArray[np.intp], uses: Uses | None) -> tuple[int, bool]:
    """Bytes that a device's memory rows say were in use before the first of them, and whether that is all there was."""
    if uses is not None:
        return sum(uses.before_bytes), True
    totals = store.mem_total[rows]
    told = int(totals[0] - store.mem_bytes[rows[0]])  # by a trace that counts all of the process's memory
    return told - min(0, int(totals.min())), told > 0


def _use(store: EventStore, rows: NDArray[np.intp], uses: Uses | None) -> MemoryUse:
    kind, index = int(store.mem_device_type[rows[0]]), int(store.mem_device_index[rows[0]])
    known = uses if kind == 0 else None  # what memory was used for is worked out on the CPU only
    amounts = store.mem_bytes[rows]
    before, before_known = in_use_before(store, rows, known)
    # One more at the front: where all that follows is freed, the most was in use at the start.
    held = before + np.append(0, np.cumsum(amounts))
    at = int(np.argmax(held))
    when = int(store.mem_time[rows[at - 1]]) if at else store.clock_start_ns
    alive = _alive(store, rows[:at])
    earlier = _earlier(known, int(rows[at - 1]) if at else -1)
    since = int(store.mem_bytes[alive].sum())
    peak_before = max(int(held[at]) - since, 0) if known is None else sum(size for size, _ in earlier)
    which = steps(store)
    inside = np.flatnonzero((which.start <= when) & (when < which.end) & (len(which.start) > 1))
    return MemoryUse(
        tuple(DeviceType)[kind].lower() + (f":{index}" if index >= 0 else ""),
        int((amounts > 0).sum()),
        int(amounts[amounts > 0].sum()),
        before,
        before_known,
        int(held[at]),
        peak_before,
        when,
        int(which.number[inside[0]]) if len(inside) else None,
        int(held[-1]),
        _holders(store, alive, Holder(EARLIER, None, len(earlier), peak_before)),
        {} if known is None else _by_category(store, alive, earlier, known),
    )


def _earlier(uses: Uses | None, last: int) -> list[tuple[int, int]]:
    """(bytes, category) of what was there before the recording and is still held after memory row `last`."""
    if uses is None:
        return []
    blocks = zip(uses.before_bytes, uses.before_category, uses.before_freed, strict=True)
    return [(size, category) for size, category, freed in blocks if not 0 <= freed <= last]


def _by_category(store: EventStore, alive: list[int], earlier: list[tuple[int, int]], uses: Uses) -> dict[str, int]:
    found: dict[str, int] = {}
    for size, category in [*earlier, *((int(store.mem_bytes[row]), int(uses.category[row])) for row in alive)]:
        name = (*CATEGORIES, "UNKNOWN")[category]
        found[name] = found.get(name, 0) + size
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _alive(store: EventStore, rows: NDArray[np.intp]) -> list[int]:
    """The memory rows whose blocks are still held after all of `rows`: as in the totals, what was not freed is."""
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
    found: dict[tuple[str, str | None], list[int]] = {}
    for row in alive:
        event = int(store.mem_event[row])
        stack = int(store.call_stack[event]) if event >= 0 else -1
        name = store.labels[store.label[event]] if event >= 0 else "outside of any op"
        where = user_frame(store.stacks[stack]) if stack >= 0 else None
        found.setdefault((name, where), []).append(int(store.mem_bytes[row]))
    holders = [Holder(name, where, len(sizes), sum(sizes)) for (name, where), sizes in found.items()]
    return sorted([*holders, *([earlier] if earlier.bytes else [])], key=lambda holder: -holder.bytes)
