"""The bytes of a file, plain or gzipped, block by block and within bounds."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from ._recovery import Recovery, TraceError

Progress = Callable[[int, int], object]

BLOCK = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
_ANY_GZIP = 31  # zlib's window bits for a gzip header and trailer
# Traces shrink to a tenth or a thirtieth. What shrinks to a 250th of a lot is not a trace but an attack.
MOST_RATIO = 250
_STEP = 1 << 10
_FREE_BYTES = 64 << 20  # the ratio is not looked at below this


def blocks(
    path: str | os.PathLike[str],
    recovery: Recovery,
    progress: Progress | None = None,
    max_bytes: int | None = None,
) -> Iterator[bytes]:
    """The contents of a file, unpacked if it is gzipped.

    progress(bytes done, bytes in all) is told about the file itself. A gzip stream that breaks off or is damaged
    gives what can be had of it and is noted in `recovery`. TraceError: more than max_bytes of contents, or a gzip
    stream that grows out of proportion.
    """
    total = os.path.getsize(path)
    done = 0
    with open(path, "rb") as file:
        first = file.read(BLOCK)
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
            block = file.read(BLOCK)
        if unpack and not unpack.ended:
            recovery.complete = False
            recovery.note("the gzip stream is damaged" if unpack.broken else "the gzip stream breaks off")


class _Unpacker:
    """One gzip stream after another, unpacked in pieces of bounded size."""

    def __init__(self, recovery: Recovery) -> None:
        self._unpack = zlib.decompressobj(_ANY_GZIP)
        self._recovery = recovery
        self.ended = False
        self.broken = False

    def pieces(self, block: bytes) -> Iterator[bytes]:
        """What a further block of the file unpacks to."""
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


def _up_to_the_damage(unpack: Any, block: bytes) -> bytes:
    """What a block gives before the place where it is damaged: byte by byte, so that no good one is lost."""
    made = []
    for at in range(0, len(block), _STEP):
        before = unpack.copy()
        try:
            made.append(unpack.decompress(block[at : at + _STEP]))
        except zlib.error:
            for single in range(at, at + _STEP):
                try:
                    made.append(before.decompress(block[single : single + 1]))
                except zlib.error:
                    break
            break
    return b"".join(made)
