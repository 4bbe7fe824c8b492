"""Events: marks in a stream that can be waited for and, with timing, record when the device passed them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .devices import activate, timeout_ms
from .driver import driver, loaded_driver
from .errors import NPUError
from .signatures import EVENT_CAPTURE_STREAM_PROGRESS, EVENT_RECORDED_COMPLETE, EVENT_SYNC, EVENT_TIME_LINE

# Gives this thread's current stream; streams.py, which builds on this file, sets it.
current_stream: Callable[[], Any] = None  # type: ignore[assignment]

_MOST_SPINS, _FEW_SPINS = 100_000, 200

# Handles of events that are over, by (device, flags), for reuse: creating one costs a driver call.
_spare: dict[tuple[int, int], list[int]] = {}


class Event:
    """A mark in a stream. `enable_timing=True` for `elapsed_time` and `timestamp_ns`.

    A device has 65,536 events that streams can wait for (1,023 on some), and recording one more than that blocks; with
    `waitable=False` only the host can wait, and there may be as many as one likes.
    """

    __slots__ = ("__weakref__", "_complete", "_flags", "device_index", "enable_timing", "handle", "stream")

    def __init__(self, enable_timing: bool = False, *, waitable: bool = True) -> None:
        self.enable_timing = enable_timing
        self.handle: int | None = None  # made by the first record, on the device of its stream
        self.device_index = -1
        self.stream: Any = None
        self._flags = EVENT_SYNC if waitable else EVENT_CAPTURE_STREAM_PROGRESS
        if enable_timing:
            self._flags |= EVENT_TIME_LINE
        self._complete = False

    def record(self, stream: Any = None) -> None:
        """Put the mark behind everything that is in the stream (default: the current one)."""
        stream = current_stream() if stream is None else stream
        if self.handle is None:
            self.device_index = stream.device_index
            activate(self.device_index)
            try:
                self.handle = _spare[self.device_index, self._flags].pop()
            except (KeyError, IndexError):
                self.handle = driver().call("aclrtCreateEventExWithFlag", self._flags)
        elif self.device_index != stream.device_index:
            raise RuntimeError(
                f"Event device index {self.device_index} does not match recording stream's device index {stream.device_index}."
            )
        activate(self.device_index)
        self._complete = False
        self.stream = stream
        driver().call("aclrtRecordEvent", self.handle, stream.handle)

    def wait(self, stream: Any = None) -> None:
        """Have a stream (default: the current one) wait for the mark; the host goes on."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether the device has passed the mark, or there is none."""
        if self.handle is not None and not self._complete:
            activate(self.device_index)
            self._complete = driver().call("aclrtQueryEventStatus", self.handle) == EVENT_RECORDED_COMPLETE
        return self.handle is None or self._complete

    def synchronize(self) -> None:
        """Wait until the device has passed the mark, at most as long as MINDTORCH_NPU_TIMEOUT_S says."""
        if self.handle is not None:
            activate(self.device_index)
            driver().call("aclrtSynchronizeEventWithTimeout", self.handle, timeout_ms())
            self._complete = True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this mark to another."""
        if not (self.enable_timing and end.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.handle is None or end.handle is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        activate(self.device_index)
        return driver().call("aclrtEventElapsedTime", self.handle, end.handle)

    def timestamp_ns(self) -> int:
        """When the device passed the mark, on the device's own clock (which counts microseconds)."""
        if not self.enable_timing:
            raise ValueError("The event must be created with argument 'enable_timing=True'.")
        activate(self.device_index)
        return driver().call("aclrtEventGetTimestamp", self.handle) * 1000

    def __del__(self) -> None:
        handle, self.handle = self.handle, None
        if handle is None or sys.is_finalizing():
            return
        if self._complete:
            _spare.setdefault((self.device_index, self._flags), []).append(handle)
        else:
            _destroy(handle)  # CANN allows this for an event that is still pending

    def __repr__(self) -> str:
        return f"<npu.Event {'uninitialized' if self.handle is None else hex(self.handle)}>"


def _destroy(handle: int) -> None:
    loaded = loaded_driver()
    if loaded is not None:
        with suppress(NPUError):  # of a lost device: the event went with it
            loaded.call("aclrtDestroyEvent", handle)


def release_spare_events() -> None:
    """Give the kept handles back to CANN."""
    for handles in list(_spare.values()):  # other threads may release events meanwhile
        while handles:
            _destroy(handles.pop())


def host_offset_ns(clock: Callable[[], int], stream: Any, patient: bool = True, tries: int = 8) -> int | None:
    """What to add to `timestamp_ns` of a device to get the host's `clock`, found on a stream with nothing to do.

    A mark was passed between two readings of the host's clock, the second taken as soon as the device tells so: waiting in the
    driver would add the time to wake up. All tries bracket the same offset, so that it lies where they overlap. None if the
    device does not tell soon and the caller is not `patient`.
    """
    low, high = -(1 << 63), 1 << 63
    for _ in range(tries):
        mark = Event(enable_timing=True, waitable=False)
        start = clock()
        mark.record(stream)
        for _ in range(_MOST_SPINS if patient else _FEW_SPINS):
            if mark.query():
                break
        else:
            if not patient:
                return None
            mark.synchronize()  # raises if the device hangs
        end = clock()
        passed = mark.timestamp_ns()  # cut off to whole microseconds
        first, last = start - passed - 1000, end - passed
        if max(low, first) <= min(high, last):
            low, high = max(low, first), min(high, last)
        else:  # the clocks ran apart meanwhile, or one was set: the newest bracket counts
            low, high = first, last
    return (low + high) // 2
