"""What Ascend's tools want to know of a recording, from the columns of its store: for text files and databases alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store import tree
from ...store.intervals import Intervals
from ...store.store import EventStore
from . import kinds

Rows = NDArray[np.intp]

_MEMORY_DEVICE = 20  # torch's number of the device type
_AS_OPS = (observer.OP, observer.BACKWARD, observer.ENGINE, observer.SCOPE, observer.STEP)


class Step(NamedTuple):
    """A step as step_trace_time.csv has it, in nanoseconds."""

    number: int
    computing: int
    exposed: int  # communication while nothing was computed
    communication: int
    stage: int  # from the first work of the device to the last
    preparing: int  # from the start of the step to the first work

    @property
    def free(self) -> int:
        """While the device neither computed nor communicated."""
        return self.stage - self.computing - self.exposed


class Block(NamedTuple):
    """Memory of a device: nanoseconds and bytes, None for what the recording does not have."""

    name: str
    device: int
    size: int
    allocated: int
    released: int | None
    total: int
    reserved: int
    released_total: int | None
    released_reserved: int | None

    def moments(self) -> list[tuple[int, int | None, int | None]]:
        """When it was allocated and released, with what was in use and reserved then."""
        allocated = (self.allocated, self.total, self.reserved)
        return [allocated, *([] if self.released is None else [(self.released, self.released_total, self.released_reserved)])]


class Contents:
    """Rows by what they are, on the clock of the wall."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.offset_ns = store.wall_start_ns - store.clock_start_ns
        work = store.is_work
        self.kernels: Rows = np.flatnonzero(work & (store.kind == observer.KERNEL) & ~store.is_collective)
        self.collectives: Rows = np.flatnonzero(work & store.is_collective)
        self.copies: Rows = np.flatnonzero(work & np.isin(store.kind, (observer.COPY, observer.FILL)))
        self.ranges: Rows = np.flatnonzero((store.device_type != 0) & (store.kind == observer.SCOPE) & ~store.is_collective)
        host = (store.device_type == 0) & ~store.is_async
        self.ops: Rows = np.flatnonzero(host & np.isin(store.kind, _AS_OPS))
        self.calls: Rows = np.flatnonzero(host & store.is_python)
        self.runtime: Rows = np.flatnonzero(host & (store.kind == observer.RUNTIME))

    def wall(self, time: int) -> int:
        """A time of the store as nanoseconds since 1970."""
        return int(time) + self.offset_ns

    def name(self, row: int) -> str:
        """The name of a row."""
        name: str = self.store.names[self.store.name[row]]
        return name

    def details(self, row: int) -> dict[str, Any]:
        """What the store knows of a row beyond its columns."""
        at = int(self.store.details[row])
        return self._details[at] if at >= 0 else {}

    @cached_property
    def _details(self) -> list[dict[str, Any]]:
        return [json.loads(details.arguments) for details in self.store.row_details]

    def device(self, row: int) -> int:
        """The number of a row's device; the process ids of these traces have room for 32."""
        return max(int(self.store.device_index[row]), 0) & 31

    def lane(self, row: int) -> int:
        """The number of a row's thread or stream."""
        ident: int = self.store.threads[self.store.tid[row]].ident
        return ident

    def kernel_type(self, row: int) -> str:
        """The kind of op that a kernel is: what the recording says, else the one in its name."""
        told = self.details(row).get("Type")
        return str(told) if told else kinds.kernel_type(self.name(row))

    def core(self, row: int) -> str:
        """The unit that a kernel ran on. What is not known is taken as a vector core's, as most kernels are."""
        return str(self.details(row).get("Accelerator Core") or "AI_VECTOR_CORE")

    @cached_property
    def time_on_cores(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of each host row the time of the kernels on AI cores that it launched, alone and with its descendants.

        What torch_npu calls "With AICore": without collectives, copies, AI CPUs and kernels on both kinds of cores at once.
        """
        rows = self.kernels[[self.core(row) in kinds.AI_CORES for row in self.kernels.tolist()]]
        alone = tree.sums(self.store.launcher[rows], self.store.duration[rows], len(self.store))
        return alone, tree.subtree_sums(self.store.parent, alone)

    def level(self, row: int) -> str:
        """The layer of CANN that a call of the host belongs to: of calls that this project recorded, its C interface."""
        return str(self.details(row).get("level") or "acl")

    def connection(self, row: int) -> int | None:
        """The number that a launch and what it launched have in common."""
        number = int(self.store.correlation[row])
        return number if number >= 0 else None

    @cached_property
    def rank(self) -> int | None:
        """The rank of the process, if there were several."""
        info = self.store.metadata.get("distributedInfo")
        rank = info.get("rank") if isinstance(info, dict) else None
        return rank if type(rank) is int else None

    @cached_property
    def groups(self) -> dict[int, int]:
        """Lanes of collectives, numbered."""
        return {lane: number for number, lane in enumerate(np.unique(self.store.tid[self.collectives]).tolist())}

    def group_name(self, row: int) -> str:
        """The process group of a collective."""
        return str(self.details(row).get("Process Group Name") or self.groups[int(self.store.tid[row])])

    def collective_name(self, row: int) -> str:
        """The name of a collective in CANN's form, which tools take apart."""
        name = self.name(row)
        if kinds.collective(name) is not None:
            return name
        details = self.details(row)
        number = details.get("Seq")
        kind = str(details.get("Collective name") or "collective").lstrip("_")
        if kind.startswith("Hccl"):
            kind = kind[4:5].lower() + kind[5:]  # HcclAllReduce, as the runtime calls it
        return f"hcom_{kind}__{self.groups[int(self.store.tid[row])]:03}_{number if type(number) is int else int(row)}_1"

    @cached_property
    def devices(self) -> list[int]:
        """The devices that did something."""
        rows = np.concatenate([self.kernels, self.collectives, self.copies])
        devices: list[int] = np.unique(np.maximum(self.store.device_index[rows], 0) & 31).tolist()
        return devices

    def computing(self, device: int | None = None) -> Intervals:
        """When at least one kernel computed, on one device or on any."""
        return self._union(self.kernels, device)

    def communicating(self, device: int | None = None) -> Intervals:
        """When at least one collective ran."""
        return self._union(self.collectives, device)

    def _union(self, rows: Rows, device: int | None) -> Intervals:
        if device is not None:
            rows = rows[(np.maximum(self.store.device_index[rows], 0) & 31) == device]
        return Intervals(self.store.start[rows], self.store.end[rows])

    @cached_property
    def steps(self) -> list[Step]:
        """The steps that have work on the device; the whole recording is one if it has none."""
        store = self.store
        work = np.concatenate([self.kernels, self.collectives])
        if not len(work):
            return []
        marks = np.flatnonzero(store.kind == observer.STEP)
        computing, communicating = self.computing(), self.communicating()
        found = []
        for number in np.unique(store.step[work]).tolist():
            rows = work[store.step[work] == number]
            first, last = int(store.start[rows].min()), int(store.end[rows].max())
            begins = store.start[marks[store.step[marks] == number]]
            begin = int(begins.min()) if len(begins) else first
            spans = (np.array([first]), np.array([last]))
            computed, talked, either = (
                int(spent.covered(*spans)[0]) for spent in (computing, communicating, computing | communicating)
            )
            found.append(Step(number, computed, either - computed, talked, last - first, max(first - begin, 0)))
        return found

    @cached_property
    def collections(self) -> list[tuple[int, int]]:
        """Start and end of garbage collections, where the options ask for those of a length."""
        config = self.store.metadata.get("ascend_config")
        experimental = config.get("experimental_config") if isinstance(config, dict) else None
        least = experimental.get("_gc_detect_threshold") if isinstance(experimental, dict) else None
        if not isinstance(least, int | float):
            return []
        pauses = self.store.options.get("gc_pauses") or ()
        return [(self.wall(start), self.wall(end)) for start, end, *_ in pauses if end - start >= least * 1e6]

    def blocks(self) -> Iterator[Block]:
        """Blocks of the device's memory. One that was there before the recording, and only freed in it, is not among them."""
        store = self.store
        open_blocks: dict[tuple[int, int], tuple[int, ...]] = {}
        rows = np.flatnonzero(store.mem_device_type == _MEMORY_DEVICE)
        order = rows[np.argsort(store.mem_time[rows], kind="stable")]
        for row in order.tolist():
            key = (int(store.mem_device_index[row]), int(store.mem_addr[row]))
            now = (self.wall(store.mem_time[row]), int(store.mem_total[row]), int(store.mem_reserved[row]))
            if store.mem_bytes[row] >= 0:
                open_blocks[key] = (row, *now)
            elif key in open_blocks:
                yield self._block(key[0], open_blocks.pop(key), now)
        for (device, _), begun in open_blocks.items():
            yield self._block(device, begun, None)

    def moments(self) -> list[tuple[int, int | None, int | None, int]]:
        """In order of time how much memory of a device was in use and reserved: (time, in use, reserved, device)."""
        found = ((*moment, block.device) for block in self.blocks() for moment in block.moments())
        return sorted(found, key=lambda moment: moment[0])

    def _block(self, device: int, begun: tuple[int, ...], ended: tuple[int, int, int] | None) -> Block:
        row, time, total, reserved = begun
        event = int(self.store.mem_event[row])
        name = self.name(event) if event >= 0 else ""
        after = (None, None, None) if ended is None else ended
        size = int(self.store.mem_bytes[row])
        return Block(name, max(device, 0), size, time, after[0], total, reserved, after[1], after[2])
