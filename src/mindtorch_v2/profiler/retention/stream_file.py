"""The file that a recording is streamed to."""

from __future__ import annotations

import os
import warnings

# Bytes that wait for a disk that is full. Beyond that, events are counted instead of kept.
_MOST_WAITING = 32 << 20


class StreamFile:
    """The file, written at a place that is known, so that what failed can be written again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = -1
        self._exists = False
        self._blocks: list[bytes] = []
        self.size = 0
        self.failure: OSError | None = None
        self.dropped = 0

    def open(self) -> None:
        """Make ready to write at the end."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._number = os.open(self._path, flags if self._exists else flags | os.O_TRUNC, 0o666)
        self._exists = True

    def add(self, blocks: list[bytes]) -> None:
        """Have something written by the next write()."""
        self._blocks += blocks

    def write(self) -> None:
        """Write what there is. If that fails it waits, and the file is whole up to its size."""
        data = b"".join(self._blocks)
        try:
            os.ftruncate(self._number, self.size)
            _write_at(self._number, data, self.size)
        except OSError as error:
            if self.failure is None:
                warnings.warn(f"the profile cannot be written to {self._path!r} for now: {error}", RuntimeWarning, stacklevel=2)
            self.failure = error
            self._blocks = [data]
            return
        self.size += len(data)
        self._blocks, self.failure = [], None

    def close(self, end: bytes) -> None:
        """Write the last frame of a complete file. Should more follow, it takes that frame's place."""
        if not self.waiting:
            try:
                _write_at(self._number, end, self.size)
            except OSError as error:
                self.failure = error
        os.close(self._number)
        self._number = -1

    @property
    def waiting(self) -> int:
        """Bytes that are not in the file yet."""
        return sum(map(len, self._blocks))

    @property
    def giving_up(self) -> bool:
        """Whether so much is waiting that no more can be taken."""
        return self.waiting > _MOST_WAITING


def _write_at(number: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(number, view, place)
        view, place = view[count:], place + count


def check_target(path: str) -> None:
    """An OSError that says why a file cannot be written there, if so."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"stream_to: there is no folder {folder!r}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"stream_to: {path!r} is a folder")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise PermissionError(f"stream_to: cannot write to {path!r}")
