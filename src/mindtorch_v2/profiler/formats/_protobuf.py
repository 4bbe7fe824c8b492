"""Encodes and decodes protocol buffers: a field is its number and wire type, then a number or a length and bytes."""

from __future__ import annotations

from collections.abc import Iterator

from .._io.utf8 import utf8

_NUMBER, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """A number in groups of seven bits, lowest first; a negative one as the 64-bit number with those bits."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    """A field of type int or uint, 32 or 64 bits, bool or enum."""
    return varint(field << 3 | _NUMBER) + varint(value)


def fixed64(field: int, value: int) -> bytes:
    """A field of type fixed64."""
    return varint(field << 3 | _FIXED64) + value.to_bytes(8, "little")


def message(field: int, body: bytes) -> bytes:
    """A field of type bytes: a message, or packed numbers."""
    return varint(field << 3 | _BYTES) + varint(len(body)) + body


def text(field: int, value: str) -> bytes:
    """A field of type string; characters that UTF-8 cannot encode are replaced."""
    return message(field, utf8(value))


def packed(field: int, values: list[int]) -> bytes:
    """A repeated field of numbers."""
    return message(field, b"".join(map(varint, values)))


class Truncated(ValueError):
    """A message that ends within a field."""


def fields(body: bytes, at: int = 0) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message with their values: numbers, or bytes of texts and messages. Truncated if it breaks off."""
    end = len(body)
    while at < end:
        tag, at = _varint(body, at)
        kind = tag & 7
        if kind == _NUMBER:
            value, at = _varint(body, at)
            yield tag >> 3, value
            continue
        length = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            length, at = _varint(body, at)
        if length is None or at + length > end:
            raise Truncated(f"the field at byte {at} is no field or longer than what is left")
        part, at = body[at : at + length], at + length
        yield tag >> 3, part if kind == _BYTES else int.from_bytes(part, "little")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(body) and shift < 70:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Truncated(f"the number at byte {at} does not end")
