"""The file that a recording is streamed to: frames go in, and what a full disk refuses is written later."""

from __future__ import annotations

import os
import warnings

# Bytes that wait while the disk is full. Beyond that, events are counted as dropped.
_MOST_WAITING = 32 << 20


class StreamFile:
    """A file that is written at its known end, so that a write that failed half-way can be repeated."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = -1
        self._exists = False
        self._blocks: list[bytes] = []
        self.size = 0
        self.failure: OSError | None = None
        self.dropped = 0

    def open(self) -> None:
        """Open the file to write at its end; the first time it is created or emptied."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._number = os.open(self._path, flags if self._exists else flags | os.O_TRUNC, 0o666)
        self._exists = True

    def add(self, blocks: list[bytes]) -> None:
        """Queue blocks for the next write()."""
        self._blocks += blocks

    def write(self) -> None:
        """Write the queued blocks. If that fails they stay queued, and the file is intact up to `size`."""
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
        """Write the last frame of a complete file and close it. If more follows, it overwrites that frame."""
        if not self.waiting:
            try:
                _write_at(self._number, end, self.size)
            except OSError as error:
                self.failure = error
        os.close(self._number)
        self._number = -1

    @property
    def waiting(self) -> int:
        """Bytes that are queued and not in the file yet."""
        return sum(map(len, self._blocks))

    @property
    def giving_up(self) -> bool:
        """Whether so much is queued that further events are to be dropped."""
        return self.waiting > _MOST_WAITING


def _write_at(number: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(number, view, place)
        view, place = view[count:], place + count


def check_target(path: str) -> None:
    """Raise an OSError that says why no file can be written at `path`, if that is so."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"stream_to: there is no folder {folder!r}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"stream_to: {path!r} is a folder")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise PermissionError(f"stream_to: cannot write to {path!r}")
