"""Protocol buffers, written by hand: a field is its number and wire type, then a number or a length and bytes."""

from __future__ import annotations

_NUMBER, _FIXED64, _BYTES = 0, 1, 2


def varint(value: int) -> bytes:
    """A number in groups of seven bits, lowest first; a negative one as the 64-bit number with those bits."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    if value < 0x80:
        return bytes((value,))
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def number(field: int, value: int) -> bytes:
    """A field with a number in it."""
    return varint(field << 3 | _NUMBER) + varint(value)


def fixed64(field: int, value: int) -> bytes:
    """A field with a number of exactly eight bytes."""
    return varint(field << 3 | _FIXED64) + value.to_bytes(8, "little")


def message(field: int, body: bytes) -> bytes:
    """A field with bytes in it: a message, or packed numbers."""
    return varint(field << 3 | _BYTES) + varint(len(body)) + body


def text(field: int, value: str) -> bytes:
    """A field with a text in it; what UTF-8 cannot hold is replaced."""
    return message(field, value.encode("utf-8", "replace"))


def packed(field: int, values: list[int]) -> bytes:
    """A field with several numbers in it."""
    return message(field, b"".join(map(varint, values)))
