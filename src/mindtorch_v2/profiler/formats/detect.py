"""Opens a recording by the contents of the file; its name does not matter."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib

from ..store.store import EventStore
from . import kineto, perfetto_reader, saved
from ._recovery import Recovery, TraceError
from ._source import BLOCK, GZIP_MAGIC, Pipe, Progress, opened
from .ascend import database, folder
from .saved_file.frames import MAGIC

_SQLITE = b"SQLite format 3"


def read_any(
    path: str | os.PathLike[str], progress: Progress | None = None, max_bytes: int | None = None
) -> tuple[EventStore, Recovery]:
    """Read a saved profile or a trace, gzipped or not, from a file or a pipe, or a folder or database of Ascend's profilers.

    The Recovery says how far it could be read.
    """
    if os.path.isdir(path):
        return folder.read(path, progress, max_bytes)
    with opened(path) as source:
        start = _start(source)
        if not start:
            raise TraceError("the file is empty: nothing was written to it")
        if start == _SQLITE[: len(start)] and not isinstance(source, Pipe):
            return database.read(os.fspath(source), progress, max_bytes)
        if start != MAGIC:
            read = perfetto_reader.read if perfetto_reader.is_trace(_unpacked_start(source, start)) else kineto.read
            return read(source, progress, max_bytes)
        if isinstance(source, Pipe):
            return _spooled(source, progress, max_bytes)
        return saved.read(source, progress, max_bytes)


def _start(source: str | os.PathLike[str]) -> bytes:
    if isinstance(source, Pipe):
        return source.peek(len(MAGIC))
    with open(source, "rb") as file:
        return file.read(len(MAGIC))


def _unpacked_start(source: str | os.PathLike[str], start: bytes) -> bytes:
    if start[:2] != GZIP_MAGIC or isinstance(source, Pipe):
        return start
    try:
        with gzip.open(source, "rb") as file:
            return file.read(len(start))
    except (OSError, EOFError, zlib.error):
        return b""  # its reader tells what is wrong


def _spooled(pipe: Pipe, progress: Progress | None, max_bytes: int | None) -> tuple[EventStore, Recovery]:
    """Read a saved profile from a pipe by way of a temporary file, since reading a damaged one needs to seek."""
    with tempfile.TemporaryDirectory(prefix="mtprof") as folder:
        path = os.path.join(folder, "from-a-pipe.mtp")
        size = 0
        with open(path, "wb") as file:
            while block := pipe.read(BLOCK):
                size += len(block)
                if max_bytes is not None and size > max_bytes:
                    raise TraceError(f"{os.fspath(pipe)!r} holds more than the {max_bytes} bytes that were allowed")
                file.write(block)
        return saved.read(path, progress, max_bytes)
