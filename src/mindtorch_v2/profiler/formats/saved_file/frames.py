"""The frames of a saved profile: each is complete in itself and has a checksum, so that a file may end anywhere.

    file    = header, frame, frame ...
    header  = MAGIC (8 bytes), version u16, 0 u16
    frame   = kind u8, length u32, crc32 u32 (of kind, length and payload), payload
    payload = packing u8 (0: none, 1: zlib), length when unpacked u32, data
All numbers are little-endian.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from .._recovery import Recovery, TraceError

MAGIC = b"\x89MTPROF\n"
VERSION = 2
_READABLE = (1, 2)  # version 1 has each stack as a list of frames
HEADER = struct.Struct("<8sHH")
_HEAD = struct.Struct("<BII")
_CHECKED = struct.Struct("<BI")
_PACKING = struct.Struct("<BI")
PLAIN, ZLIB = 0, 1
# Measured on real recordings: level 9 takes three times as long for 1 % fewer bytes, lzma ten times as long for 11 %.
_LEVEL = 6
MOST_PAYLOAD = 64 << 20

# Kinds of frames.
META, TABLE, ROWS, MEMORY, END, LOG = 1, 2, 3, 4, 5, 6


def header() -> bytes:
    """The bytes that a file begins with."""
    return HEADER.pack(MAGIC, VERSION, 0)


def frame(kind: int, body: bytes) -> bytes:
    """Encode a frame of some contents, compressed if that makes it smaller."""
    if len(body) > MOST_PAYLOAD:
        raise ValueError(f"a frame holds at most {MOST_PAYLOAD} bytes, not {len(body)}")
    packed = zlib.compress(body, _LEVEL)
    packing, data = (ZLIB, packed) if len(packed) < len(body) else (PLAIN, body)
    payload = _PACKING.pack(packing, len(body)) + data
    return _HEAD.pack(kind, len(payload), _checksum(kind, payload)) + payload


def frames(file: BinaryIO, recovery: Recovery, part: tuple[int, int] | None = None) -> Iterator[tuple[int, bytes]]:
    """Kind and contents of each whole frame. Damaged and incomplete frames are left out and counted in `recovery`.

    A damaged frame is skipped if a whole one follows where its length says; else the rest of the file is lost.
    part: the offsets between which to read; of the file before them only meta data and tables are read.
    """
    start = file.read(HEADER.size)
    if len(start) < HEADER.size or start[: len(MAGIC)] != MAGIC:
        raise TraceError("the file is not a saved profile")
    version = HEADER.unpack(start)[1]
    if version not in _READABLE:
        raise TraceError(f"the profile was saved in version {version} of the format; this is version {VERSION}")
    size = os.fstat(file.fileno()).st_size if part is None else part[1]
    at = recovery.bytes_read = HEADER.size
    damaged = 0  # size of the damaged frame just skipped
    while at < size:
        file.seek(at)
        if part is not None and at < part[0]:
            kind, length, _ = _HEAD.unpack(file.read(_HEAD.size))
            if kind not in (META, TABLE):
                at += _HEAD.size + length
                continue
            file.seek(at)
        whole = _frame_at(file, size - at)
        if whole is None:
            file.seek(at)
            head = file.read(_HEAD.size)
            length = _HEAD.unpack(head)[1] + _HEAD.size if len(head) == _HEAD.size else size
            if damaged or at + length >= size:
                recovery.complete = False
                recovery.bytes_dropped += damaged + size - at
                recovery.note("the last frame is torn" if not damaged else "the rest of the file is damaged")
                return
            damaged = length
            at += length
            continue
        if damaged:
            recovery.bytes_dropped += damaged
            recovery.skip("damaged frame")
            damaged = 0
        kind, body, length = whole
        at += length
        recovery.bytes_read += length
        recovery.frames += 1
        yield kind, body


def _frame_at(file: BinaryIO, rest: int) -> tuple[int, bytes, int] | None:
    """Kind, contents and length of the frame that begins here; None if it is not whole."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length, checksum = _HEAD.unpack(head)
    if length > min(MOST_PAYLOAD + _PACKING.size, rest - _HEAD.size) or length < _PACKING.size:
        return None
    payload = file.read(length)
    if len(payload) < length or _checksum(kind, payload) != checksum:
        return None
    packing, size = _PACKING.unpack_from(payload)
    body = payload[_PACKING.size :]
    if packing == ZLIB and size <= MOST_PAYLOAD:
        try:
            body = zlib.decompressobj().decompress(body, size + 1)
        except zlib.error:
            return None
    elif packing != PLAIN:
        return None
    return (kind, body, length + _HEAD.size) if len(body) == size else None


def _checksum(kind: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_CHECKED.pack(kind, len(payload))))
