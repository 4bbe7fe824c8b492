"""Encodes columns of whole numbers: a constant, offsets from the smallest, or differences from row to row.

A coded column is: coding u8, then by coding
    CONSTANT  value i64
    OFFSETS   base i64, width u8, one unsigned number of that many bytes per row
    STEPS     first i64, base i64, width u8, one number per row but the first: its difference to the row before
All numbers are little-endian. The bytes of the numbers are transposed, all lowest bytes first: planes of similar bytes
compress well.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONSTANT, OFFSETS, STEPS = range(3)
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_CONSTANT = struct.Struct("<Bq")
_OFFSETS = struct.Struct("<BqB")
_STEPS = struct.Struct("<BqqB")
_SMALLEST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def encode(values: NDArray[Any]) -> bytes:
    """Encode a column in the coding that needs the narrowest numbers."""
    numbers = values.astype(np.int64)
    if not len(numbers):
        return _CONSTANT.pack(CONSTANT, 0)
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        return _CONSTANT.pack(CONSTANT, low)
    width = _width(high - low)
    if width > 1 and high - low <= _LARGEST:
        steps = np.diff(numbers)
        least = int(steps.min())
        narrow = _width(int(steps.max()) - least)
        if narrow < width:
            return _STEPS.pack(STEPS, int(numbers[0]), least, narrow) + _planes(steps, least, narrow)
    return _OFFSETS.pack(OFFSETS, low, width) + _planes(numbers, low, width)


def decode(data: bytes, count: int) -> NDArray[np.int64]:
    """Decode a column of `count` rows; ValueError if the data is none. A constant is broadcast from a single number."""
    if is_constant(data):
        return np.ndarray((count,), "<i8", data, 1, (0,))  # a tenth of the time of broadcast_to
    values = np.empty(count, np.int64)
    decode_into(data, values)
    return values


def is_constant(data: bytes) -> bool:
    """Whether this is a column of equal numbers."""
    return len(data) == _CONSTANT.size and data[0] == CONSTANT


def decode_into(data: bytes, values: NDArray[np.int64]) -> None:
    """Decode a column into an array of its length; ValueError if the data is none."""
    try:
        if data[0] == CONSTANT:
            if len(data) != _CONSTANT.size:
                raise ValueError("a constant of the wrong length")
            values[:] = _CONSTANT.unpack(data)[1]
        elif data[0] == OFFSETS:
            _, base, width = _OFFSETS.unpack_from(data)
            _fill(data, _OFFSETS.size, base, width, values)
        elif data[0] == STEPS and len(values):
            _, values[0], base, width = _STEPS.unpack_from(data)
            _fill(data, _STEPS.size, base, width, values[1:])
            np.cumsum(values, out=values)
        else:
            raise ValueError("unknown coding of a column")
    except (IndexError, struct.error) as error:
        raise ValueError(str(error)) from None


def _width(span: int) -> int:
    return next(width for width in _WIDTHS if span < 1 << 8 * width)


def _planes(numbers: NDArray[np.int64], base: int, width: int) -> bytes:
    # Unsigned and modulo 2**64, so that any two int64 have a difference.
    offsets = (numbers.view(np.uint64) - np.uint64(base & 0xFFFF_FFFF_FFFF_FFFF)).astype(_WIDTHS[width])
    return np.ascontiguousarray(offsets.view(np.uint8).reshape(-1, width).T).tobytes()


def _fill(data: bytes, at: int, base: int, width: int, values: NDArray[np.int64]) -> None:
    """Numbers of `width` bytes, in planes from an offset of the data on, added to the base."""
    if width not in _WIDTHS or len(data) - at != width * len(values):
        raise ValueError("a column of the wrong length")
    numbers = np.frombuffer(data, np.uint8, offset=at)
    if width > 1:
        numbers = numbers.reshape(width, len(values)).T.copy().reshape(-1).view(_WIDTHS[width])
    values[:] = numbers
    values += base  # modulo 2**64, as they were encoded
