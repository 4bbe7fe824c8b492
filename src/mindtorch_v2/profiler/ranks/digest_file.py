"""Digests as bytes: a block for each rank, sorted, so that any merge of the same digests is the same file.

    file  = MAGIC (8 bytes), version u16, 0 u16, blocks
    block = length u32, crc32 u32, packed (zlib)
    a block unpacks to: length of the head u32, head (JSON), then the columns of each part, each: length u32, coded numbers
Columns are coded as in saved profiles. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from ..formats._recovery import TraceError
from ..formats.saved_file import coding
from .collectives import Group
from .digest import PARTS, Digest

MAGIC = b"\x89MTRANK\n"
VERSION = 1
ENDING = ".mtranks"
_HEADER = struct.Struct("<8sHH")
_BLOCK = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
_LEVEL = 6
_MOST_BLOCK = 256 << 20
_SCALARS = ("rank", "world_size", "host", "source", "to_wall", "events", "damage", "ops", "device_ops")


def encode(digest: Digest) -> bytes:
    """The block of one digest."""
    head: dict[str, Any] = {name: getattr(digest, name) for name in _SCALARS}
    head["groups"] = [[group.name, group.description, group.size, _coded_ranks(group.ranks)] for group in digest.groups]
    head["counts"] = [len(getattr(getattr(digest, part), fields(kind)[0].name)) for part, kind in PARTS.items()]
    text = orjson.dumps(head)
    pieces = [_LENGTH.pack(len(text)), text]
    for part, kind in PARTS.items():
        for column in fields(kind):
            data = coding.encode(getattr(getattr(digest, part), column.name))
            pieces += [_LENGTH.pack(len(data)), data]
    packed = zlib.compress(b"".join(pieces), _LEVEL)
    return _BLOCK.pack(len(packed), zlib.crc32(packed)) + packed


def decode(block: bytes) -> Digest:
    """The digest that encode() was called on; TraceError if the block is damaged."""
    try:
        length, checksum = _BLOCK.unpack_from(block)
        packed = memoryview(block)[_BLOCK.size :]
        if len(packed) != length or zlib.crc32(packed) != checksum:
            raise TraceError("a digest is damaged")
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, _MOST_BLOCK)
        at = _LENGTH.size + _LENGTH.unpack_from(data)[0]
        head = orjson.loads(data[_LENGTH.size : at])
        parts = {}
        for (part, kind), count in zip(PARTS.items(), head.pop("counts"), strict=True):
            columns = {}
            for column in fields(kind):
                size = _LENGTH.unpack_from(data, at)[0]
                at += _LENGTH.size
                columns[column.name] = coding.decode(data[at : at + size], count)
                at += size
            parts[part] = kind(**columns)
        head["groups"] = [Group(name, text, size, _decoded_ranks(ranks)) for name, text, size, ranks in head["groups"]]
        return Digest(**head, **parts)
    except (LookupError, TypeError, ValueError, struct.error, zlib.error) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError(f"a digest makes no sense: {error}") from None


def write_digests(blocks: Iterable[bytes]) -> bytes:
    """A file of some blocks; the same blocks in any order, or twice, make the same file."""
    return _HEADER.pack(MAGIC, VERSION, 0) + b"".join(block for *_, block in sorted(map(_order, set(blocks))))


def read_blocks(data: bytes) -> Iterator[bytes]:
    """The blocks of a file; TraceError if it is none, or where it is damaged."""
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise TraceError("the file has no digests")
    version = _HEADER.unpack_from(data)[1]
    if version != VERSION:
        raise TraceError(f"the digests are of version {version} of the format; this is version {VERSION}")
    at = _HEADER.size
    while at < len(data):
        if len(data) - at < _BLOCK.size:
            raise TraceError("the last digest is torn")
        end = at + _BLOCK.size + _BLOCK.unpack_from(data, at)[0]
        if end > len(data):
            raise TraceError("the last digest is torn")
        yield data[at:end]
        at = end


def _order(block: bytes) -> tuple[int, str, bytes]:
    digest = decode(block)
    return digest.rank, digest.source, block


def _coded_ranks(ranks: tuple[int, ...]) -> list[int] | str:
    """Ranks as a list, or as "first:stride:count" where that is all there is to say."""
    steps = np.diff(ranks)
    if len(ranks) > 3 and (steps == steps[0]).all() and steps[0] > 0:
        return f"{ranks[0]}:{int(steps[0])}:{len(ranks)}"
    return list(ranks)


def _decoded_ranks(ranks: list[int] | str) -> tuple[int, ...]:
    return _range(ranks) if isinstance(ranks, str) else tuple(ranks)


@lru_cache(1 << 12)  # ten thousand digests name the same group of ten thousand ranks: it is one tuple in memory
def _range(text: str) -> tuple[int, ...]:
    first, stride, count = map(int, text.split(":"))
    if not 0 < count < 1 << 24:
        raise ValueError("a group of too many ranks")
    return tuple(range(first, first + stride * count, stride))
