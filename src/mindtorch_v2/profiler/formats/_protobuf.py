"""Encodes protocol buffers: a field is its number and wire type, then a number or a length and bytes."""

from __future__ import annotations

from .._io.utf8 import utf8

_NUMBER, _FIXED64, _BYTES = 0, 1, 2


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
