"""What ran on a device as columns of a recording: a lane for each stream, and the host's calls on those of their threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._dispatch import observer
from .._io.strict_json import dumps
from ..store.store import RowDetails, ThreadInfo
from .device_join import Call, Launched, Work

NPU = 20  # torch's number of the device type PrivateUse1
_CALLS = {"kernel": "aclnn{}", "copy": "aclrtMemcpyAsync", "fill": "aclrtMemsetAsync"}
_COLUMNS = (
    "name", "kind", "tid", "start", "end", "device_type", "device_index", "correlation", "launch_tid", "launch_ns", "details",
)  # fmt: skip


class Rows:
    """Rows to be added to a recording's columns. `name` and `detail` give the numbers of a name and of a row's details."""

    def __init__(self, threads: list[ThreadInfo], name: Callable[[str], int], detail: Callable[[RowDetails], int]) -> None:
        self._threads, self._name, self._detail = threads, name, detail
        self._hosts = {thread.ident: number for number, thread in enumerate(threads)}
        self._lanes: dict[tuple[int, int], int] = {}
        self._rows: list[tuple[int, ...]] = []
        self._known: dict[tuple[Any, ...], int] = {}  # numbers of details

    def add_launches(self, launched: Sequence[Launched], first: int) -> None:
        """Add the host's calls; `first` is the correlation number of the first of them."""
        for number, (launch, returned, _) in enumerate(launched, first):
            host = self._hosts.get(launch.thread)
            if host is not None:
                call = self._name(_CALLS[launch.kind].format(launch.name))
                self._rows.append((call, observer.RUNTIME, host, launch.began, returned, 0, -1, number, -1, -1, -1))

    def add_calls(self, calls: Sequence[Call], first: int) -> None:
        """Add calls that launched nothing; readers expect that they have correlation numbers, too."""
        for number, (name, thread, start, end) in enumerate(calls, first):
            host = self._hosts.get(thread)
            if host is not None:
                self._rows.append((self._name(name), observer.RUNTIME, host, start, end, 0, -1, number, -1, -1, -1))

    def add_work(self, work: Sequence[Work], launched: Sequence[Launched], first: int) -> None:
        """Add the device's work; that of a thread which is not recorded is left out."""
        for kind, name, device, stream, start, end, at, details in work:
            launch = launched[at].launch if at >= 0 else None
            host = -1 if launch is None else self._hosts.get(launch.thread)
            if host is None:
                continue
            lane = self._lanes.get((device, stream))
            if lane is None:
                lane = self._lanes[device, stream] = len(self._threads)
                self._threads.append(ThreadInfo(stream, f"stream {stream}"))
            told = self._numbered(device, stream, details) if details else -1
            linked = (-1, host, -1) if launch is None else (first + at, host, launch.began)
            self._rows.append((self._name(name), kind, lane, start, end, NPU, device, *linked, told))

    def _numbered(self, device: int, stream: int, details: dict[str, Any]) -> int:
        """The number of details, with the place of the work: a trace has either details or that. Most kernels share theirs."""
        key = (device, stream, *details.items())
        number = self._known.get(key)
        if number is None:
            text = dumps({"device": device, "stream": stream, **details})
            number = self._known[key] = self._detail(RowDetails("", text))
        return number

    def add_to(self, columns: dict[str, Any], step_of: Callable[[Any], Any]) -> None:
        """Append the rows to the columns; `step_of` gives the step of a time."""
        count, before = len(self._rows), len(columns["start"])
        if not count:
            return
        added = dict(zip(_COLUMNS, np.array(self._rows, np.int64).T, strict=True))
        added["step"] = step_of(np.where(added["launch_ns"] >= 0, added["launch_ns"], added["start"]))
        for column in {*columns, *added}:
            if column.startswith("mem_"):
                continue
            missing = 0 if column in ("device_type", "flops") else -1
            old, new = columns.get(column, missing), added.get(column, np.int64(missing))
            columns[column] = np.concatenate([np.broadcast_to(old, before), np.broadcast_to(new, count)])


def add_memory(columns: dict[str, Any], rows: list[tuple[int, int, int, int, int, int]], threads: dict[int, int]) -> None:
    """Add allocations and frees: time, bytes, address, thread, device, what the allocator holds.

    As on the CPU, the free of a block from before the recording is left out.
    """
    known: set[tuple[int, int]] = set()
    kept = []
    for time, amount, address, ident, index, reserved in sorted(rows, key=lambda row: row[0]):
        tid = threads[ident if ident in threads else next(iter(threads))]
        if amount > 0:
            known.add((index, address))
        elif (index, address) not in known:
            continue
        else:
            known.remove((index, address))
        kept.append((time, amount, address, tid, NPU, index, reserved))
    names = ("mem_time", "mem_bytes", "mem_addr", "mem_tid", "mem_device_type", "mem_device_index", "mem_reserved")
    before = len(columns.get("mem_time", ()))
    for name, values in zip(names, np.array(kept, np.int64).reshape(-1, len(names)).T, strict=True):
        missing = {"mem_device_type": 0, "mem_device_index": -1}.get(name, 0)
        columns[name] = np.concatenate([np.broadcast_to(columns.get(name, missing), before), values])
