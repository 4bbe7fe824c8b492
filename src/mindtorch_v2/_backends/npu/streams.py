"""Streams: queues of work on a device. Work of one stream runs in order, work of two may overlap."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any

from . import events
from .devices import activate, current_device, timeout_ms
from .driver import driver
from .errors import NPUDeviceLostError, NPUError
from .events import Event
from .signatures import STREAM_COMPLETE, STREAM_FAST_LAUNCH, STREAM_FAST_SYNC

_POOL_SIZE = 32  # of streams a device: `Stream()` hands them out in turn, as torch does


class Stream:
    """A queue of work on one device. `Stream()` takes the next of the device's pool; a queue has only one such object.

    `number` identifies it in profiles. What `keep` was given lives until the work before that call is done.
    """

    __slots__ = ("_kept", "device_index", "handle", "number")
    _kept: deque[tuple[Event, tuple[Any, ...]]]
    device_index: int
    handle: int
    number: int

    def __new__(cls, device: int | None = None) -> Stream:
        return _next_of_pool(current_device() if device is None else device)

    def query(self) -> bool:
        """Whether all work is done."""
        activate(self.device_index)
        return driver().call("aclrtStreamQuery", self.handle) == STREAM_COMPLETE

    def synchronize(self, milliseconds: int | None = None) -> None:
        """Wait until all work is done, at most as long as MINDTORCH_NPU_TIMEOUT_S says; raises what the work raised."""
        activate(self.device_index)
        limit = timeout_ms() if milliseconds is None else milliseconds
        driver().call("aclrtSynchronizeStreamWithTimeout", self.handle, limit)
        self._let_go()

    def wait_event(self, event: Event) -> None:
        """Let what follows in this stream wait for a mark in another."""
        if event.handle is not None:
            activate(self.device_index)
            driver().call("aclrtStreamWaitEvent", self.handle, event.handle)

    def wait_stream(self, stream: Stream) -> None:
        """Let what follows in this stream wait for what is in another."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark behind everything that is in the stream."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def keep(self, *objects: Any) -> None:
        """Hold objects, such as the source of a copy, until the work that is in the stream now is done."""
        self._let_go()
        with _kept_lock:  # so that threads which share the stream leave their marks in order
            self._kept.append((self.record_event(Event(waitable=False)), objects))

    def _let_go(self) -> None:
        """Drop what was kept for work that is done."""
        with _kept_lock:
            done = []
            while self._kept and self._kept[0][0].query():
                done.append(self._kept.popleft())
        del done  # outside of the lock: a finalizer that runs here may use a stream itself

    def __repr__(self) -> str:
        return f"<npu.Stream device=npu:{self.device_index} npu_stream={hex(self.handle)}>"


class _Thread(threading.local):
    """The current stream of each device in this thread; a device that is missing uses its default stream."""

    def __init__(self) -> None:
        self.current: dict[int, Stream] = {}


_thread = _Thread()
_lock = threading.Lock()
_kept_lock = threading.RLock()
_default: dict[int, Stream] = {}
_pools: dict[int, list[Stream]] = {}
_taken: dict[int, int] = {}
_for_clocks: dict[int, Stream] = {}


def _make(device: int) -> Stream:
    activate(device)
    stream: Stream = object.__new__(Stream)
    stream.device_index = device
    stream.handle = driver().call("aclrtCreateStreamWithConfig", 0, STREAM_FAST_LAUNCH | STREAM_FAST_SYNC)
    stream.number = driver().call("aclrtStreamGetId", stream.handle) if driver().has("aclrtStreamGetId") else stream.handle
    stream._kept = deque()
    return stream


def _next_of_pool(device: int) -> Stream:
    with _lock:
        pool = _pools.setdefault(device, [])
        turn = _taken[device] = _taken.get(device, -1) + 1
        if turn < _POOL_SIZE:
            pool.append(_make(device))
        return pool[turn % _POOL_SIZE]


def default_stream(device: int | None = None) -> Stream:
    """The stream that work goes to unless another was chosen."""
    return _made_once(_default, current_device() if device is None else device)


def clock_stream(device: int) -> Stream:
    """A stream that never has anything to do, so that a mark in it is passed at once: to compare clocks."""
    return _made_once(_for_clocks, device)


def _made_once(streams: dict[int, Stream], device: int) -> Stream:
    stream = streams.get(device)
    if stream is None:
        with _lock:
            stream = streams.get(device)
            if stream is None:
                stream = streams[device] = _make(device)
    return stream


def used_devices() -> list[int]:
    """The devices that have a stream for work."""
    return sorted({*_default, *_pools})


def current_stream(device: int | None = None) -> Stream:
    """The stream that this thread's work on a device goes to."""
    index = current_device() if device is None else device
    return _thread.current.get(index) or default_stream(index)


def set_current_stream(stream: Stream) -> None:
    """Send this thread's work on the stream's device to it."""
    _thread.current[stream.device_index] = stream


def streams_of(device: int) -> list[Stream]:
    """Every stream of a device that was made so far."""
    return [*(kind[device] for kind in (_default, _for_clocks) if device in kind), *_pools.get(device, [])]


def synchronize(device: int | None = None) -> None:
    """Wait for all work of a device; raises the first error among its streams."""
    index = current_device() if device is None else device
    limit = timeout_ms()
    end = time.monotonic() + limit / 1000
    first: NPUError | None = None
    for stream in streams_of(index):
        try:  # the time limit is for all streams together
            stream.synchronize(limit if limit < 0 else max(int((end - time.monotonic()) * 1000), 0))
        except NPUError as error:
            first = first or error
    if first is not None:
        raise first


def destroy_streams(device: int) -> None:
    """End every stream of a device, dropping what they still have to do."""
    activate_quietly(device)
    for stream in streams_of(device):
        stream._kept.clear()
        name = "aclrtDestroyStreamForce" if driver().has("aclrtDestroyStreamForce") else "aclrtDestroyStream"
        with suppress(NPUDeviceLostError):  # the stream went with its device
            driver().call(name, stream.handle)
        stream.handle = 0  # a Stream that is still referenced means CANN's default stream, not a dangling handle
    _default.pop(device, None)
    _for_clocks.pop(device, None)
    _pools.pop(device, None)
    _taken.pop(device, None)
    _thread.current.pop(device, None)


def activate_quietly(device: int) -> None:
    """As `activate`, without an error where the device is lost: for cleaning up."""
    with suppress(NPUDeviceLostError):
        activate(device)


events.current_stream = current_stream
