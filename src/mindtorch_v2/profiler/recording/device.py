"""Records what runs on a device: each launch gets a pair of timed events, which are read when the recording ends.

Nothing waits for the device before that. Then its clock is compared with the host's, and every kernel, copy and fill
becomes a row on the lane of its stream, beside the host's call that launched it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import get_native_id
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.strict_json import dumps
from ..store.store import RowDetails, ThreadInfo

NPU = 20  # torch's number of the device type PrivateUse1
_KINDS = {"kernel": observer.KERNEL, "copy": observer.COPY, "fill": observer.FILL}
_CALLS = {"kernel": "aclnn{}", "copy": "aclrtMemcpyAsync", "fill": "aclrtMemsetAsync"}
_NAMES = {"kernel": "{}", "copy": "Memcpy {}", "fill": "Memset"}


class _Launch(NamedTuple):
    kind: str
    name: str
    thread: int
    stream: Any
    began: int
    first: Any
    nbytes: int


class _Done(NamedTuple):
    launch: _Launch
    returned: int
    last: Any


class DeviceRecorder:
    """A device listener between start() and stop(); then `rows` has what ran on the NPU."""

    def __init__(self, clock: Callable[[], int], with_memory: bool) -> None:
        self._clock = clock
        self._with_memory = with_memory
        self._done: list[_Done] = []
        self._memory: list[tuple[int, int, int, int, int]] = []
        self.rows: list[tuple[Any, ...]] = []
        self.lost = 0
        self._launches = 0  # of windows before this one

    # ------------------------------------------------------------------ while recording

    def start(self) -> None:
        """Listen to the launches of all threads. There must be an NPU: see `available()`."""
        timing = observer.device_timing("npu")
        assert timing is not None
        self._timing = timing
        observer.add_device_listener(self)

    def launch_started(self, kind: str, name: str, stream: Any, nbytes: int) -> _Launch:
        """Put the first of two marks into the stream."""
        first = self._timing.new_event()
        began = self._clock()
        first.record(stream)
        return _Launch(kind, name, get_native_id(), stream, began, first, nbytes)

    def launch_ended(self, started: _Launch) -> None:
        """Put the second mark behind it."""
        last = self._timing.new_event()
        last.record(started.stream)
        self._done.append(_Done(started, self._clock(), last))

    def memory_changed(self, block: Any, change: int) -> None:
        """Note the block, for a recording of memory."""
        if self._with_memory:
            self._memory.append((self._clock(), change, block.address, get_native_id(), block.device_index))

    # ------------------------------------------------------------------ after the recording

    def stop(self) -> None:
        """Wait for what was launched and read when it ran. Launches of which a failed device tells nothing are counted.

        If that is interrupted, stop() can be called again.
        """
        self.withdraw()
        rows: list[tuple[Any, ...]] = []
        lost = 0
        offsets: dict[int, int] = {}
        failed: set[int] = set()  # a device that hangs is waited for once, not once for each launch
        floor: dict[Any, int] = {}
        # From 1: Kineto, CUPTI and MSPTI mean "none" by 0.
        for number, (launch, returned, last) in enumerate(self._done, self._launches + 1):
            stream = launch.stream
            if stream.device_index in failed:
                lost += 1
                continue
            try:
                if stream.device_index not in offsets:
                    self._timing.synchronize(stream.device_index)
                    offsets[stream.device_index] = self._timing.host_offset_ns(self._clock, stream)
                offset = offsets[stream.device_index]
                start = launch.first.timestamp_ns() + offset
                # The time between two marks is told in steps of some 20 ns, that of a mark in microseconds.
                length = round(launch.first.elapsed_time(last) * 1e6)
            except RuntimeError as error:
                if not lost:
                    warnings.warn(f"the device no longer tells when its work ran: {error}", RuntimeWarning, stacklevel=2)
                if stream.device_index not in offsets:
                    failed.add(stream.device_index)
                lost += 1
                continue
            # The device counts microseconds and the clocks are compared with an error of a few: no kernel runs before it was
            # launched, nor before the one ahead of it in its stream was done.
            start = max(start, launch.began, floor.get(stream, 0))
            end = floor[stream] = start + max(length, 0)
            rows.append((launch, returned, number, start, end))
        self.rows += rows
        self.lost += lost
        self._launches += len(self._done)
        self._done = []

    def withdraw(self) -> None:
        """Listen no longer."""
        observer.remove_device_listener(self)

    def add_to_columns(
        self,
        columns: dict[str, Any],
        threads: list[ThreadInfo],
        name: Callable[[str], int],
        detail: Callable[[RowDetails], int],
        step_of: Callable[[Any], Any],
    ) -> None:
        """Add rows to the columns of a recording: the host's calls, and the device's work on a lane for each stream.

        `name` and `detail` give the numbers of a name and of what else is told of a row: a copy's or fill's bytes.
        """
        numbers = {thread.ident: number for number, thread in enumerate(threads)}
        lanes: dict[Any, int] = {}
        device_columns: dict[str, list[int]] = {
            c: []
            for c in (
                "name",
                "kind",
                "tid",
                "start",
                "end",
                "device_type",
                "device_index",
                "correlation",
                "launch_tid",
                "launch_ns",
                "details",
            )
        }
        for launch, returned, number, start, end in self.rows:
            host = numbers.get(launch.thread)
            if host is None:  # a thread that is not recorded
                continue
            if launch.stream not in lanes:
                lanes[launch.stream] = len(threads)
                threads.append(ThreadInfo(launch.stream.number, f"stream {launch.stream.number}"))
            call, text = _CALLS[launch.kind].format(launch.name), _NAMES[launch.kind].format(launch.name)
            _append(device_columns, name(call), observer.RUNTIME, host, launch.began, returned, 0, -1, number, -1, -1, -1)
            details = -1 if launch.kind == "kernel" else detail(RowDetails("", dumps({"bytes": launch.nbytes})))
            _append(
                device_columns,
                name(text),
                _KINDS[launch.kind],
                lanes[launch.stream],
                start,
                end,
                NPU,
                launch.stream.device_index,
                number,
                host,
                launch.began,
                details,
            )
        self._add_rows(columns, {c: np.array(values, np.int64) for c, values in device_columns.items()}, step_of)
        if self._memory:
            _add_memory(columns, self._memory, numbers)

    def _add_rows(
        self, columns: dict[str, Any], device_columns: dict[str, NDArray[np.int64]], step_of: Callable[[Any], Any]
    ) -> None:
        count, before = len(device_columns["start"]), len(columns["start"])
        if not count:
            return
        device_columns["step"] = step_of(
            np.where(device_columns["launch_ns"] >= 0, device_columns["launch_ns"], device_columns["start"])
        )
        for column in {*columns, *device_columns}:
            if column.startswith("mem_"):
                continue
            missing = 0 if column in ("device_type", "flops") else -1
            old, new = columns.get(column, missing), device_columns.get(column, np.int64(missing))
            columns[column] = np.concatenate([np.broadcast_to(old, before), np.broadcast_to(new, count)])


def _append(columns: dict[str, list[int]], *values: int) -> None:
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


def _add_memory(columns: dict[str, Any], rows: list[tuple[int, int, int, int, int]], threads: dict[int, int]) -> None:
    """Add allocations and frees. As on the CPU, the free of a block from before the recording is left out."""
    known: set[tuple[int, int]] = set()
    kept = []
    for time, amount, address, ident, index in sorted(rows, key=lambda row: row[0]):
        tid = threads[ident if ident in threads else next(iter(threads))]
        if amount > 0:
            known.add((index, address))
        elif (index, address) not in known:
            continue
        else:
            known.remove((index, address))
        kept.append((time, amount, address, tid, NPU, index))
    names = ("mem_time", "mem_bytes", "mem_addr", "mem_tid", "mem_device_type", "mem_device_index")
    before = len(columns.get("mem_time", ()))
    for name, values in zip(names, np.array(kept, np.int64).reshape(-1, len(names)).T, strict=True):
        missing = {"mem_device_type": 0, "mem_device_index": -1}.get(name, 0)
        columns[name] = np.concatenate([np.broadcast_to(columns.get(name, missing), before), values])


def available() -> bool:
    """Whether an NPU can be recorded. Loads the device's code, so call it only where a device is wanted."""
    return observer.device_timing("npu") is not None
