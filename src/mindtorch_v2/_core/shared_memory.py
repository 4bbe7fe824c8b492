"""Memory that several processes see: segments without a name, handed over as a file descriptor, or with one.

A segment without a name lives as long as a process has it open or mapped, so that nothing is left when processes are killed.
A segment with a name counts the processes that use it in its first bytes; the last one removes the name. Should processes be
killed before, multiprocessing's resource tracker removes it when all processes of the program have ended.
"""

from __future__ import annotations

import itertools
import mmap
import os
import sys
import weakref
from typing import Any, ClassVar

import numpy as np

try:
    import fcntl
except ImportError:  # not on this system: no names there
    fcntl = None  # type: ignore[assignment]

_HEADER = 64  # of segments with a name: the count, and room so that data is aligned
_numbers = itertools.count()
_TRACKED: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}


class _Strategy:
    """How storages are shared from now on."""

    name = "file_descriptor" if sys.platform == "linux" else "file_system"


def strategies() -> set[str]:
    """The ways in which memory can be shared here."""
    return {"file_descriptor", "file_system"} if sys.platform == "linux" else {"file_system"}


def get_strategy() -> str:
    """The way that is used for memory that is shared next."""
    return _Strategy.name


def set_strategy(name: str) -> None:
    """Choose the way for memory that is shared next; AssertionError for one that is not there."""
    if name not in strategies():
        raise AssertionError(f"invalid sharing strategy {name!r}, expected one of {strategies()}")
    if name == "file_system":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # before processes are forked, so that all have the same one
    _Strategy.name = name


class Segment(mmap.mmap):
    """Mapped memory that other processes can map, too. `descriptor` and `name` say how; one of them is None."""

    descriptor: int | None
    name: str | None
    nbytes: int
    _owner_process: int

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __new__(cls, descriptor: int, size: int, name: str | None = None) -> Segment:
        """Map an open file, and take it over: it is closed with the mapping."""
        header = 0 if name is None else _HEADER
        segment = super().__new__(cls, descriptor, max(size, 1) + header, **_TRACKED)
        segment.nbytes, segment.name = size, name
        segment._owner_process = os.getpid()
        if name is not None and fcntl is None:
            os.close(descriptor)
            segment.descriptor = None
        else:
            segment.descriptor = descriptor
        return segment

    @property
    def data(self) -> np.ndarray:
        """The bytes as an array, whose base is the segment."""
        return np.ndarray((self.nbytes,), np.uint8, self, 0 if self.name is None else _HEADER)  # type: ignore[arg-type]

    def count(self, change: int) -> int:
        """Change the number of processes that use a segment with a name; the number then."""
        if self.name is None:
            return 0
        if fcntl is not None and self.descriptor is not None:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        try:
            total = int.from_bytes(self[:8], "little") + change
            self[:8] = max(total, 0).to_bytes(8, "little")
        finally:
            if fcntl is not None and self.descriptor is not None:
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        return total

    def __del__(self) -> None:
        self._give_up()
        descriptor = getattr(self, "descriptor", None)
        if descriptor is not None:
            os.close(descriptor)

    def _give_up(self) -> None:
        """This process does not count any more. A forked child has its parent's mappings without having been counted."""
        name = getattr(self, "name", None)
        if name is not None and self._owner_process == os.getpid():
            self._owner_process = 0
            if self.count(-1) <= 0:
                _unlink(name)


class _Named:
    """The segments with a name that this process is counted for. Given up when it ends: children end without `__del__`."""

    process = 0
    segments: ClassVar[weakref.WeakSet[Segment]] = weakref.WeakSet()

    @classmethod
    def add(cls, segment: Segment) -> None:
        if cls.process != os.getpid():
            from multiprocessing import util

            cls.process, cls.segments = os.getpid(), weakref.WeakSet()
            util.Finalize(None, cls.give_up, exitpriority=0)
        cls.segments.add(segment)

    @classmethod
    def give_up(cls) -> None:
        for segment in list(cls.segments):
            segment._give_up()


def new_segment(size: int) -> Segment:
    """Fresh shared memory, zeroed, by the strategy that is set."""
    if _Strategy.name == "file_system":
        return _named(size)
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("torch_shared", os.MFD_CLOEXEC)
    else:
        import tempfile  # here, because it is large and hardly any system needs it

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    return _of_size(descriptor, size)


def _of_size(descriptor: int, size: int, name: str | None = None) -> Segment:
    try:
        os.ftruncate(descriptor, max(size, 1) + (0 if name is None else _HEADER))
        return Segment(descriptor, size, name)
    except BaseException:
        os.close(descriptor)
        raise


def _named(size: int) -> Segment:
    import _posixshmem  # type: ignore[import-not-found]
    from multiprocessing import resource_tracker

    name = f"/torch_{os.getpid()}_{int.from_bytes(os.urandom(4), 'little')}_{next(_numbers)}"
    descriptor = _posixshmem.shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode=0o600)
    resource_tracker.register(name, "shared_memory")
    segment = _of_size(descriptor, size, name)
    segment.count(1)
    _Named.add(segment)
    return segment


def _unlink(name: str) -> None:
    try:
        import _posixshmem
        from multiprocessing import resource_tracker

        _posixshmem.shm_unlink(name)
        resource_tracker.unregister(name, "shared_memory")
    except (ImportError, OSError, TypeError, AttributeError):
        pass  # another process was first, or the interpreter ends


def open_named(name: str, size: int) -> Segment:
    """The segment of that name, which another process made, and which this one is counted for now."""
    import _posixshmem

    segment = Segment(_posixshmem.shm_open(name, os.O_RDWR, mode=0o600), size, name)
    segment.count(1)
    _Named.add(segment)
    return segment


def open_descriptor(descriptor: int, size: int) -> Segment:
    """The segment behind a file descriptor, of which a duplicate is kept."""
    return Segment(os.dup(descriptor), size)


def segment_of(owner: Any) -> Segment | None:
    """The segment that an array's memory is, None for other memory."""
    base = owner.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, Segment) else None
