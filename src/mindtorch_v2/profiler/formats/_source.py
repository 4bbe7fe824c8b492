"""Reads files and pipes, plain or gzipped, block by block and within bounds."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from ._recovery import Recovery, TraceError

Progress = Callable[[int, int], object]

BLOCK = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
_ANY_GZIP = 31  # zlib's window bits for a gzip header and trailer
# Traces shrink to a tenth or a thirtieth. What shrinks to a 250th of a lot is not a trace but an attack.
MOST_RATIO = 250
_STEP = 1 << 10
_FREE_BYTES = 64 << 20  # below this the ratio does not matter


class Pipe(os.PathLike[str]):
    """A stream that can be read once, such as standard input, in place of a path. `peek` leaves the bytes to `read`."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._seen = b""

    def __fspath__(self) -> str:
        return self._name

    def peek(self, count: int) -> bytes:
        """The next bytes, which stay to be read; fewer only at the end."""
        while len(self._seen) < count and (more := self._file.read(count - len(self._seen))):
            self._seen += more
        return self._seen[:count]

    def read(self, count: int) -> bytes:
        """The next bytes; fewer only at the end."""
        taken, self._seen = self._seen[:count], self._seen[count:]
        while len(taken) < count and (more := self._file.read(count - len(taken))):
            taken += more
        return taken


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[str | os.PathLike[str]]:
    """The path, or a Pipe of it if it is neither a regular file nor a folder."""
    if isinstance(path, Pipe) or stat.S_ISREG(mode := os.stat(path).st_mode) or stat.S_ISDIR(mode):
        yield path
        return
    with open(path, "rb") as file:
        yield Pipe(file, os.fspath(path))


@contextmanager
def _reader(path: str | os.PathLike[str]) -> Iterator[tuple[Callable[[int], bytes], int]]:
    """A function that reads the next bytes, and the size of the file, 0 for a pipe."""
    if isinstance(path, Pipe):
        yield path.read, 0
        return
    with open(path, "rb") as file:
        yield file.read, os.path.getsize(path)


def blocks(
    path: str | os.PathLike[str],
    recovery: Recovery,
    progress: Progress | None = None,
    max_bytes: int | None = None,
) -> Iterator[bytes]:
    """The contents of a file, unpacked if it is gzipped.

    progress(bytes done, bytes in all) counts bytes of the file itself; a pipe has no more in all than is done. A gzip
    stream that breaks off or is damaged is read as far as possible and noted in `recovery`. TraceError: more than
    max_bytes of contents, or a gzip stream that grows out of proportion.
    """
    done = 0
    with _reader(path) as (read, total):
        first = read(BLOCK)
        unpack = _Unpacker(recovery) if first[:2] == GZIP_MAGIC else None
        block = first
        while block:
            done += len(block)
            for piece in unpack.pieces(block) if unpack else (block,):
                recovery.bytes_read += len(piece)
                if max_bytes is not None and recovery.bytes_read > max_bytes:
                    raise TraceError(f"{os.fspath(path)!r} holds more than the {max_bytes} bytes that were allowed")
                if unpack and recovery.bytes_read > max(_FREE_BYTES, MOST_RATIO * done):
                    raise TraceError(f"{os.fspath(path)!r} unpacks to more than {MOST_RATIO} times its size")
                yield piece
            if progress is not None:
                progress(done, max(total, done))
            if unpack and unpack.broken:
                break
            block = read(BLOCK)
        if unpack and not unpack.ended:
            recovery.complete = False
            recovery.note("the gzip stream is damaged" if unpack.broken else "the gzip stream breaks off")


class _Unpacker:
    """Unpacks concatenated gzip streams in pieces of bounded size."""

    def __init__(self, recovery: Recovery) -> None:
        self._unpack = zlib.decompressobj(_ANY_GZIP)
        self._recovery = recovery
        self.ended = False
        self.broken = False

    def pieces(self, block: bytes) -> Iterator[bytes]:
        """Unpack a further block of the file."""
        while block:
            if self.ended:
                block = block.lstrip(b"\0")  # padding between or after streams
                if not block:
                    return
                if block[:2] != GZIP_MAGIC[: len(block)]:
                    self._recovery.bytes_dropped += len(block)
                    self._recovery.note("there is something else after the gzip stream")
                    return
                self._unpack, self.ended = zlib.decompressobj(_ANY_GZIP), False
            before = self._unpack.copy()
            try:
                piece = self._unpack.decompress(block, BLOCK)
            except zlib.error:
                self.broken = True
                yield _up_to_the_damage(before, block)
                return
            if piece:
                yield piece
            self.ended = self._unpack.eof
            block = self._unpack.unused_data if self.ended else self._unpack.unconsumed_tail


def _up_to_the_damage(unpack: zlib._Decompress, block: bytes) -> bytes:
    """The contents of a block up to the damage: the damaged step is unpacked byte by byte, so that no good one is lost."""
    unpacked = []
    for at in range(0, len(block), _STEP):
        before = unpack.copy()
        try:
            unpacked.append(unpack.decompress(block[at : at + _STEP]))
        except zlib.error:
            for single in range(at, at + _STEP):
                try:
                    unpacked.append(before.decompress(block[single : single + 1]))
                except zlib.error:
                    break
            break
    return b"".join(unpacked)
