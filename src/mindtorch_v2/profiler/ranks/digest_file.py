"""Digests as bytes: a block for each rank, sorted, so that any merge of the same digests is the same file.

    file  = MAGIC (8 bytes), version u16, 0 u16, blocks
    block = length u32, crc32 u32, packed (zlib)
    a block unpacks to: length of the head u32, head (JSON), then the columns of each part, each: length u32, coded numbers
Columns are coded as in saved profiles. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import orjson

from ..formats._recovery import TraceError
from ..formats.saved_file import coding
from .collectives import Group
from .digest import PARTS, Digest
from .recorded_rows import Numbers

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

MAGIC = b"\x89MTRANK\n"
VERSION = 1
ENDING = ".mtranks"
_HEADER = struct.Struct("<8sHH")
_BLOCK = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
_LEVEL = 6
_MOST_BLOCK = 256 << 20
_HEAD_BYTES = 8192  # unpacked at first: most heads are shorter
_NONSENSE = (LookupError, TypeError, ValueError, struct.error, zlib.error)
_COLUMNS = {part: tuple(column.name for column in fields(kind)) for part, kind in PARTS.items()}
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


def _refusing(read: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Turns errors of damaged contents into TraceError."""

    @wraps(read)
    def reading(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return read(*args, **kwargs)
        except TraceError:
            raise
        except _NONSENSE as error:
            raise TraceError(f"a digest makes no sense: {error}") from None

    return reading


@dataclass
class Head:
    """What a block says before its columns, and the numbers of its steps: enough to tell what belongs to a job."""

    rank: int
    world_size: int
    host: str
    source: str
    to_wall: int
    events: int
    damage: str
    ops: list[str]
    device_ops: list[bool]
    groups: list[Group]
    counts: list[int]  # rows of each part
    step_numbers: Numbers


@_refusing
def read_head(block: bytes) -> Head:
    """The head of a block, without unpacking the rest; TraceError if the block is damaged."""
    length, checksum = _BLOCK.unpack_from(block)
    packed = memoryview(block)[_BLOCK.size :]
    if len(packed) != length or zlib.crc32(packed) != checksum:
        raise TraceError("a digest is damaged")
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(packed, _HEAD_BYTES)
    at = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    data = _longer(data, unpacker, at + _LENGTH.size)
    data = _longer(data, unpacker, at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0])
    head = _fields(data, at)
    return Head(**head, step_numbers=_column(data, at, head["counts"][0])[0])


class PartsReader:
    """Reads the parts of blocks whose heads have been read, one after another.

    Many columns are the same to the byte on rank after rank (kinds, groups, numbers of ops): those are decoded once, so columns
    are not to be written to.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[bytes, int, Numbers]] = {}

    @_refusing
    def read(self, block: bytes, counts: list[int]) -> dict[str, Any]:
        """The parts of a block, by name; TraceError if they make no sense."""
        data = zlib.decompressobj().decompress(memoryview(block)[_BLOCK.size :], _MOST_BLOCK)
        at = _LENGTH.size + _LENGTH.unpack_from(data)[0]
        parts = {}
        for (part, names), count in zip(_COLUMNS.items(), counts, strict=True):
            columns = {}
            for name in names:
                begin = at + _LENGTH.size
                at = begin + _LENGTH.unpack_from(data, at)[0]
                columns[name] = self._decoded((part, name), data[begin:at], count)
            parts[part] = PARTS[part](**columns)
        return parts

    def _decoded(self, name: tuple[str, str], data: bytes, count: int) -> Numbers:
        last = self._last.get(name)
        if last is not None and last[0] == data and last[1] == count:
            return last[2]
        values = coding.decode(data, count)
        self._last[name] = (data, count, values)
        return values


def decode(block: bytes) -> Digest:
    """The digest that encode() was called on; TraceError if the block is damaged."""
    head = read_head(block)
    scalars = {name: getattr(head, name) for name in (*_SCALARS, "groups")}
    return Digest(**scalars, **PartsReader().read(block, head.counts))


def _longer(data: bytes, unpacker: Any, wanted: int) -> bytes:
    """At least so many bytes of a block, if it has them."""
    if wanted > _MOST_BLOCK:
        raise ValueError("a head that is too long")
    if len(data) >= wanted:
        return data
    more: bytes = unpacker.decompress(unpacker.unconsumed_tail, wanted - len(data))
    return data + more


def _fields(data: bytes, end: int) -> dict[str, Any]:
    head: dict[str, Any] = orjson.loads(data[_LENGTH.size : end])
    head["groups"] = [Group(name, text, size, _decoded_ranks(ranks)) for name, text, size, ranks in head["groups"]]
    if len(head["counts"]) != len(PARTS):
        raise ValueError("another number of parts")
    return head


def _column(data: bytes, at: int, count: int) -> tuple[Numbers, int]:
    """The column that begins at an offset, and where it ends."""
    begin = at + _LENGTH.size
    end = begin + _LENGTH.unpack_from(data, at)[0]
    return coding.decode(data[begin:end], count), end


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
    head = read_head(block)
    return head.rank, head.source, block


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
