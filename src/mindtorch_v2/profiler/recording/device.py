"""Records what runs on a device, read when the recording ends: nothing waits for the device before that.

Kernels are told by the device itself where it does (see `observer.DeviceActivities`). Copies and fills, and without that
kernels too, get a pair of timed events around the call that launches them. Then everything becomes a row on the lane of its
stream, beside the host's call that launched it.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from threading import get_native_id
from typing import Any

from ..._dispatch import observer
from ..store.store import RowDetails, ThreadInfo
from .device_clock import DeviceClock, WallClock
from .device_columns import Rows, add_memory
from .device_join import APART_NS, Call, Launch, Launched, Work, join

_KINDS = {"kernel": observer.KERNEL, "copy": observer.COPY, "fill": observer.FILL}
_NAMES = {"kernel": "{}", "copy": "Memcpy {}", "fill": "Memset"}
_LAUNCH_BYTES, _BLOCK_BYTES = 600, 250  # of memory that a launch takes, with its marks, and a block that is noted
_told: set[str] = set()  # why kernels are recorded by events, each said once


class DeviceRecorder:
    """A device listener between start() and stop(); then `add_to_columns` has what ran on the NPU.

    There must be one: see `config.device_available()`.
    """

    def __init__(self, clock: Callable[[], int], with_memory: bool) -> None:
        timing = observer.device_timing("npu")
        assert timing is not None
        self._timing = timing
        self._clock = clock
        self._with_memory = with_memory
        self._pending: list[Launched] = []
        self._memory: list[tuple[int, int, int, int, int, int]] = []
        self._activities: observer.DeviceActivities | None = None
        self._ended: int | None = None
        self.launched: list[Launched] = []
        self.work: list[Work] = []
        self.calls: list[Call] = []
        self._notes: list[str] = []

    # ------------------------------------------------------------------ while recording

    def start(self) -> None:
        """Listen to the launches of all threads."""
        self._device_clock = DeviceClock(self._clock, self._timing)
        self._ended = None
        try:
            activities = self._timing.activities()
            activities.start()
        except RuntimeError as error:
            self._activities = None
            if str(error) not in _told:
                _told.add(str(error))
                warnings.warn(f"kernels are recorded by pairs of events, one for each call: {error}", UserWarning, stacklevel=2)
        else:
            self._activities = activities
            self._wall_clock = WallClock(self._clock)
        self._began = self._clock()
        for index in self._timing.used_devices():
            self._device_clock.compare(index)
        observer.add_device_listener(self)

    def launch_started(self, kind: str, name: str, stream: Any, nbytes: int) -> Launch:
        """Put the first of two marks into the stream, unless the device itself tells of the launch."""
        if kind == "kernel" and self._activities is not None:
            return Launch(kind, name, get_native_id(), stream, self._clock(), None, nbytes)
        first = self._timing.new_event()
        began = self._clock()
        first.record(stream)
        return Launch(kind, name, get_native_id(), stream, began, first, nbytes)

    def launch_ended(self, started: Launch) -> None:
        """Put the second mark behind it."""
        last = None
        if started.first is not None:
            last = self._timing.new_event()
            last.record(started.stream)
        now = self._clock()
        self._pending.append(Launched(started, now, last))
        if self._device_clock.is_due(started.stream.device_index, now):
            self._device_clock.compare(started.stream.device_index)

    def memory_changed(self, block: Any, change: int) -> None:
        """Note the block, for a recording of memory."""
        if self._with_memory:
            place = block.address, get_native_id(), block.device_index
            self._memory.append((self._clock(), change, *place, block.reserved))

    @property
    def nbytes(self) -> int:
        """About how much memory the launches take that were recorded so far, and what the device told of them."""
        told = 0 if self._activities is None else self._activities.nbytes
        return _LAUNCH_BYTES * len(self._pending) + _BLOCK_BYTES * len(self._memory) + told

    def drop_before(self, until: int) -> int:
        """Forget what was done before a time; returns how many launches that were."""
        old = bisect_left(self._pending, until, key=lambda each: each.returned)
        if old:
            self._began = max(self._began, self._pending[old - 1].returned)
        del self._pending[:old]
        del self._memory[: bisect_left(self._memory, until, key=lambda row: row[0])]
        if self._activities is not None:
            self._activities.drop_before(self._wall_clock.wall_time(until))
        return old

    # ------------------------------------------------------------------ after the recording

    def stop(self) -> None:
        """Wait for what was launched and read when it ran. Launches of which a failed device tells nothing are counted.

        If that is interrupted, stop() can be called again.
        """
        self.withdraw()
        if self._activities is None and not self._pending:
            return
        failed = self._synchronize()
        work: list[Work] = []
        if self._activities is not None:
            streams = {each.launch.stream for each in self._pending if each.launch.stream.device_index not in failed}
            records = self._activities.stop([*streams], bool(failed))
            self._wall_clock.compare()
            told = join(self._pending, records, self._wall_clock.host_times, self._began, self._ended)
            work, self.calls = told.work, told.calls
            self._notes += told.notes
        work += self._timed(failed, work)
        self.work, self.launched, self._pending = work, self._pending, []
        self._activities = None

    def _synchronize(self) -> set[int]:
        """Wait for the devices and compare clocks a last time; returns those that failed."""
        failed = set()
        for index in sorted({each.launch.stream.device_index for each in self._pending}):
            try:
                self._timing.synchronize(index)
                self._device_clock.compare(index, patient=True)
            except RuntimeError as error:
                failed.add(index)
                warnings.warn(f"the device no longer tells when its work ran: {error}", RuntimeWarning, stacklevel=3)
        return failed

    def _timed(self, failed: set[int], told: list[Work]) -> list[Work]:
        """What has a pair of events. A stream's work keeps its order, whatever the clocks' error."""
        lanes = _lanes_of(told)
        floor: dict[tuple[int, int], int] = {}
        work, lost = [], 0
        for at, (launch, _, last) in enumerate(self._pending):
            if launch.first is None:
                continue
            stream = launch.stream
            if stream.device_index in failed:
                lost += 1
                continue
            try:
                start = self._device_clock.host_time(stream.device_index, launch.first.timestamp_ns())
                # The time between two marks is told in steps of some 20 ns, that of a mark in microseconds.
                length = max(round(launch.first.elapsed_time(last) * 1e6), 0)
            except RuntimeError as error:
                if not lost:
                    warnings.warn(f"the device no longer tells when its work ran: {error}", RuntimeWarning, stacklevel=3)
                lost += 1
                continue
            place = stream.device_index, stream.number
            low, high = lanes[place].gap(at) if place in lanes else (0, None)
            low = max(low, launch.began, floor.get(place, 0))
            if high is not None:
                high = max(high, low)
                start, length = min(start, high - length), min(length, high - low)
            start = max(start, low)
            end = start + length
            floor[place] = end + APART_NS
            name, details = _NAMES[launch.kind].format(launch.name), {}
            if launch.kind != "kernel":
                details = {"bytes": launch.nbytes}
                if end > start:
                    details["memory bandwidth (GB/s)"] = launch.nbytes / (end - start)
            work.append(Work(_KINDS[launch.kind], name, *place, start, end, at, details))
        if lost:
            self._notes.append(f"the device did not tell when {lost} of {len(self._pending)} launches ran")
        return work

    def take_notes(self) -> list[str]:
        """What the device did not tell, once."""
        notes, self._notes = self._notes, []
        return notes

    def withdraw(self) -> None:
        """Listen no longer."""
        observer.remove_device_listener(self)
        if self._ended is None:
            self._ended = self._clock()

    def abandon(self) -> None:
        """Listen no longer, and let go of what was recorded."""
        self.withdraw()
        if self._activities is not None:
            self._activities.withdraw()
            self._activities = None
        self._pending = []

    @property
    def properties(self) -> list[dict[str, Any]]:
        """What traces tell of the devices that are in use."""
        found = []
        for index in self._timing.used_devices():
            with suppress(RuntimeError):  # a device that is lost tells nothing of itself
                found.append(self._timing.properties(index))
        return found

    def add_to_columns(
        self,
        columns: dict[str, Any],
        threads: list[ThreadInfo],
        name: Callable[[str], int],
        detail: Callable[[RowDetails], int],
        step_of: Callable[[Any], Any],
    ) -> None:
        """Add rows to the columns of a recording: the host's calls, and the device's work on a lane for each stream.

        `name` and `detail` give the numbers of a name and of what else is told of a row.
        """
        numbers = {thread.ident: number for number, thread in enumerate(threads)}
        rows = Rows(threads, name, detail)
        first = 1  # Kineto, CUPTI and MSPTI mean "none" by 0
        rows.add_launches(self.launched, first)
        rows.add_calls(self.calls, first + len(self.launched))
        rows.add_work(self.work, self.launched, first)
        rows.add_to(columns, step_of)
        if self._memory:
            add_memory(columns, self._memory, numbers)


class _Lane:
    """The work of a stream whose times are known, by the place of its launch."""

    def __init__(self, work: list[Work]) -> None:
        work.sort(key=lambda each: each.launch)
        self._launches = [each.launch for each in work]
        self._ends = [0, *accumulate((each.end for each in work), max)]
        self._starts = [*accumulate((each.start for each in reversed(work)), min)]

    def gap(self, launch: int) -> tuple[int, int | None]:
        """When the work launched before was done, and when that launched later began."""
        place = bisect_left(self._launches, launch)
        later = len(self._launches) - place
        return self._ends[place] + APART_NS, self._starts[later - 1] - APART_NS if later else None


def _lanes_of(work: list[Work]) -> dict[tuple[int, int], _Lane]:
    by_place: dict[tuple[int, int], list[Work]] = {}
    for each in work:
        if each.launch >= 0:
            by_place.setdefault((each.device, each.stream), []).append(each)
    return {place: _Lane(some) for place, some in by_place.items()}
