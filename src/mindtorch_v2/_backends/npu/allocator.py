"""The caching allocator: device memory comes in segments, is cut into blocks, and blocks are kept for the next request.

A block belongs to the stream it was allocated for. Work of one stream runs in order, so a block may be given out again
while the device still uses it, as long as the new user is the same stream; other users are named by `record_stream`.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_left, insort
from collections import deque
from contextlib import suppress
from typing import Any

from ..._dispatch import observer
from ..errors import OutOfMemoryError
from .devices import activate, memory_info
from .driver import driver
from .errors import OUT_OF_MEMORY, NPUDeviceLostError, NPUError
from .events import Event
from .signatures import MALLOC_HUGE_FIRST
from .streams import Stream, activate_quietly, streams_of

ROUND = 512  # every block is a multiple of this
SMALL = 1 << 20  # requests up to this size share segments of SMALL_SEGMENT bytes
SMALL_SEGMENT = 2 << 20
MIDDLE = 10 << 20  # requests below this size share segments of MIDDLE_SEGMENT bytes
MIDDLE_SEGMENT = 20 << 20


class _Piece:
    """A range of a segment: free, or under a Block. `before` and `after` are its neighbors in the segment."""

    __slots__ = ("address", "after", "before", "free", "pool", "size")

    def __init__(self, address: int, size: int, pool: _Pool) -> None:
        self.address = address
        self.size = size
        self.pool = pool
        self.before: _Piece | None = None
        self.after: _Piece | None = None
        self.free = True

    def __lt__(self, other: _Piece) -> bool:
        return (self.size, self.address) < (other.size, other.address)


class _Pool:
    """The free pieces of one stream, smallest first; small and large requests have pools of their own."""

    __slots__ = ("pieces", "small")

    def __init__(self, small: bool) -> None:
        self.small = small
        self.pieces: list[_Piece] = []

    def take(self, size: int) -> _Piece | None:
        """The smallest free piece that holds `size`, cut if enough is left over."""
        probe = _Piece(0, size, self)
        place = bisect_left(self.pieces, probe)
        if place == len(self.pieces):
            return None
        piece = self.pieces.pop(place)
        piece.free = False
        rest = piece.size - size
        if rest >= ROUND if self.small else rest > SMALL:
            left = _Piece(piece.address + size, rest, self)
            piece.size = size
            left.before, left.after = piece, piece.after
            if piece.after is not None:
                piece.after.before = left
            piece.after = left
            insort(self.pieces, left)
        return piece

    def give(self, piece: _Piece) -> None:
        """Take a piece back and join it with free neighbors."""
        for other in (piece.before, piece.after):
            if other is not None and other.free:
                del self.pieces[bisect_left(self.pieces, other)]
                first, second = (other, piece) if other is piece.before else (piece, other)
                first.size += second.size
                first.after = second.after
                if second.after is not None:
                    second.after.before = first
                piece = first
        piece.free = True
        insort(self.pieces, piece)


class Block:
    """Device memory that is in use; letting go of the last reference gives it back.

    NumPy makes an array of it (`np.asarray(block)`, bytes), which serves for shapes and strides: reading it would fault.
    """

    __slots__ = ("__weakref__", "_allocator", "_piece", "_users", "address", "device_index", "nbytes", "stream")

    def __init__(self, allocator: Allocator, piece: _Piece, nbytes: int, stream: Stream) -> None:
        self._allocator = allocator
        self._piece = piece
        self._users: set[Stream] | None = None
        self.address = piece.address
        self.nbytes = nbytes
        self.device_index = stream.device_index
        self.stream = stream

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False)}

    @property
    def size(self) -> int:
        """Bytes taken, `nbytes` rounded up."""
        return self._piece.size

    @property
    def reserved(self) -> int:
        """Bytes that the allocator holds on the block's device as of now, in blocks or not."""
        return self._allocator.reserved

    def record_stream(self, stream: Stream) -> None:
        """Say that another stream uses the block too: it is not given out again before that stream is done with it."""
        if stream is not self.stream:
            self._users = (self._users or set()) | {stream}

    def __del__(self) -> None:
        # May run in any thread and in the midst of an allocation: only note it, and let the next allocation look.
        self._allocator.returned.append((self._piece, self._users))
        listener = None if sys.is_finalizing() else observer.listeners.device
        if listener is not None:
            listener.memory_changed(self, -self._piece.size)


class Statistics:
    """Bytes of a device: in blocks, in segments, and the most there ever was of each."""

    __slots__ = ("allocated", "ooms", "peak_allocated", "peak_reserved", "reserved", "retries")

    def __init__(self) -> None:
        self.allocated = self.peak_allocated = self.reserved = self.peak_reserved = self.retries = self.ooms = 0

    def reset_peaks(self) -> None:
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved


class Allocator:
    """The memory of one device."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.returned: deque[tuple[_Piece, set[Stream] | None]] = deque()
        self._lock = threading.Lock()
        self._pools: dict[tuple[Stream, bool], _Pool] = {}
        self._waiting: list[tuple[_Piece, list[Event]]] = []
        self._segments: dict[int, int] = {}  # address: size
        self._statistics = Statistics()

    @property
    def reserved(self) -> int:
        """Bytes that were taken from the device and not given back."""
        return self._statistics.reserved

    def allocate(self, nbytes: int, stream: Stream) -> Block:
        """A block of at least `nbytes` for work of a stream."""
        size = max(-(-nbytes // ROUND), 1) * ROUND
        with self._lock:
            self._collect()
            small = size <= SMALL
            pool = self._pools.get((stream, small))
            if pool is None:
                pool = self._pools[stream, small] = _Pool(small)
            piece = pool.take(size)
            if piece is None:
                self._add_segment(pool, size)
                piece = pool.take(size)
                assert piece is not None
            statistics = self._statistics
            statistics.allocated += piece.size
            statistics.peak_allocated = max(statistics.peak_allocated, statistics.allocated)
        block = Block(self, piece, nbytes, stream)
        listener = observer.listeners.device
        if listener is not None:
            listener.memory_changed(block, piece.size)
        return block

    def statistics(self) -> Statistics:
        """The figures as of now."""
        # Not waiting for the lock: a finalizer may ask while this very thread allocates.
        if self._lock.acquire(blocking=False):
            try:
                self._collect()
            finally:
                self._lock.release()
        return self._statistics

    def empty_cache(self) -> None:
        """Give segments without a block in use back to the device, once the device is done with them."""
        with self._lock:
            self._collect()
            self._release()

    def abandon(self) -> None:
        """Give every free segment back without waiting: for a device whose streams are gone."""
        with self._lock:
            self._waiting, waiting = [], self._waiting
            self._collect()
            for piece, _ in waiting:
                piece.pool.give(piece)
            self._free_segments()

    # ------------------------------------------------------------------ with the lock held

    def _collect(self) -> None:
        """Put blocks that came back into their pools, unless another stream still uses them."""
        returned = self.returned
        while returned:
            piece, users = returned.popleft()
            self._statistics.allocated -= piece.size
            events = self._marks(users) if users else []
            if events:
                self._waiting.append((piece, events))
            else:
                piece.pool.give(piece)
        if self._waiting:
            still = []
            for piece, events in self._waiting:
                if all(event.query() for event in events):
                    piece.pool.give(piece)
                else:
                    still.append((piece, events))
            self._waiting = still

    def _marks(self, users: set[Stream]) -> list[Event]:
        try:
            return [stream.record_event() for stream in users]
        except NPUDeviceLostError:
            return []  # no stream of a lost device uses its memory any more

    def _add_segment(self, pool: _Pool, size: int) -> None:
        wanted = SMALL_SEGMENT if pool.small else MIDDLE_SEGMENT if size < MIDDLE else -(-size // SMALL_SEGMENT) * SMALL_SEGMENT
        activate(self.device)
        try:
            address = driver().call("aclrtMalloc", wanted, MALLOC_HUGE_FIRST)
        except NPUError as error:
            if error.error_code not in OUT_OF_MEMORY:
                raise
            self._statistics.retries += 1
            self._release()
            wanted = size
            try:
                address = driver().call("aclrtMalloc", wanted, MALLOC_HUGE_FIRST)
            except NPUError as again:
                if again.error_code not in OUT_OF_MEMORY:
                    raise
                self._statistics.ooms += 1
                raise OutOfMemoryError(self._out_of_memory(size)) from again
        self._segments[address] = wanted
        statistics = self._statistics
        statistics.reserved += wanted
        statistics.peak_reserved = max(statistics.peak_reserved, statistics.reserved)
        pool.give(_Piece(address, wanted, pool))

    def _release(self) -> None:
        try:
            for stream in streams_of(self.device):
                stream.synchronize()
        except NPUDeviceLostError:
            pass
        self._collect()
        self._free_segments()

    def _free_segments(self) -> None:
        activate_quietly(self.device)
        for pool in self._pools.values():
            for piece in [piece for piece in pool.pieces if piece.before is None and piece.after is None]:
                pool.pieces.remove(piece)
                self._statistics.reserved -= self._segments.pop(piece.address)
                with suppress(NPUDeviceLostError):  # the memory went with its device
                    driver().call("aclrtFree", piece.address)

    def _out_of_memory(self, size: int) -> str:
        unused, total = memory_info(self.device)
        statistics = self._statistics
        cached = statistics.reserved - statistics.allocated
        return (
            f"NPU out of memory. Tried to allocate {_readable(size)}. NPU {self.device} has a total capacity of "
            f"{_readable(total)} of which {_readable(unused)} is free. {_readable(statistics.allocated)} is allocated, "
            f"and {_readable(cached)} is reserved but unallocated."
        )


def _readable(nbytes: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} bytes"


_allocators: dict[int, Allocator] = {}
_lock = threading.Lock()


def allocator_of(device: int) -> Allocator:
    """The allocator of a device, made at the first call."""
    allocator = _allocators.get(device)
    if allocator is None:
        with _lock:
            allocator = _allocators.setdefault(device, Allocator(device))
    return allocator
