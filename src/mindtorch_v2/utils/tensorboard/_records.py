"""The bytes of an event file: protocol buffer fields, and records with their checksums."""

from __future__ import annotations

import struct
from collections.abc import Iterable


def _table() -> list[int]:
    made = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        made.append(value)
    return made


_CRC = _table()


def masked_crc(data: bytes) -> int:
    """The CRC-32C of some bytes, rotated and shifted as record files have it."""
    value = 0xFFFFFFFF
    table = _CRC
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """One record: length, its checksum, the data, its checksum."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def varint(number: int) -> bytes:
    """An integer in groups of seven bits; negative ones as 64-bit two's complement."""
    number &= 0xFFFFFFFFFFFFFFFF
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


def message(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def doubles(field: int, values: Iterable[float]) -> bytes:
    numbers = list(values)
    return message(field, struct.pack(f"<{len(numbers)}d", *numbers))
