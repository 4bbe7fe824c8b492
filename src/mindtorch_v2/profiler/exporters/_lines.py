"""Lines of text from columns of numbers: one template for all lines, filled in with NumPy instead of formatting.

A template is a matrix of bytes, one row per line. Numbers are written right-aligned with NUL in front, and all NULs are
taken out at the end, so that lines get the length they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Piece = bytes | Bytes

# The four digits of every number below 10,000, as one 32-bit word each.
_FOUR = np.frombuffer("".join(f"{i:04d}" for i in range(10_000)).encode(), np.uint8).reshape(-1, 4).copy()
_WORDS = _FOUR.view(np.uint32).reshape(-1)
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)


def _digits(values: NDArray[np.int64], groups: int) -> Bytes:
    """Decimal digits with leading zeros, 4 * groups of them."""
    words = np.empty((len(values), groups), np.uint32)
    rest = values
    for group in range(groups - 1, 0, -1):
        above = rest // 10_000
        words[:, group] = _WORDS[rest - above * 10_000]
        rest = above
    words[:, 0] = _WORDS[rest]
    return words.view(np.uint8).reshape(len(values), 4 * groups)


def _groups(values: NDArray[np.int64]) -> int:
    largest = int(values.max()) if len(values) else 0
    return max(1, -(-len(str(largest)) // 4))


def number(values: NDArray[Any]) -> Bytes:
    """Whole numbers, not negative."""
    values = values.astype(np.int64)
    made = _digits(values, _groups(values))
    width = made.shape[1]
    count = np.searchsorted(_POWERS[: width - 1], values, side="right") + 1
    made[np.arange(width) < (width - count)[:, None]] = 0
    return made


def signed(values: NDArray[Any]) -> Bytes:
    """Whole numbers with a minus sign where they are negative."""
    sign = np.where(values < 0, np.uint8(ord("-")), np.uint8(0))
    return np.hstack([sign[:, None], number(np.abs(values))])


def thousandths(values: NDArray[np.int64]) -> Bytes:
    """Thousandths as a decimal fraction with three places: 12345 as 12.345."""
    whole = values // 1000
    fraction = _FOUR[values - whole * 1000]  # 0345
    fraction[:, 0] = ord(".")
    return np.hstack([number(whole), fraction])


def where(shown: NDArray[np.bool_], piece: Bytes, other: bytes = b"") -> Bytes:
    """A piece in the lines where it is shown, some constant text in the others."""
    width = max(piece.shape[1], len(other))
    made = np.zeros((len(shown), width), np.uint8)
    made[:, : piece.shape[1]] = piece
    made[~shown] = np.frombuffer(other.ljust(width, b"\0"), np.uint8)
    return made


def together(pieces: Sequence[Piece], count: int) -> Bytes:
    """Pieces side by side; constant text is the same in every line."""
    width = sum(len(piece) if isinstance(piece, bytes) else piece.shape[1] for piece in pieces)
    made = np.empty((count, width), np.uint8)
    at = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            made[:, at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
        else:
            made[:, at : at + piece.shape[1]] = piece
            at += piece.shape[1]
    return made


def lines(pieces: Sequence[Piece], count: int) -> list[bytes]:
    """One bytes object per line. No piece may contain a newline."""
    if not count:
        return []
    text = together([*pieces, b"\n"], count).tobytes().translate(None, b"\0")
    made = text.split(b"\n")
    made.pop()
    return made


def chosen(table: Sequence[bytes], which: NDArray[Any]) -> list[bytes]:
    """table[i] for every i."""
    objects = np.empty(len(table), object)
    objects[:] = table
    found: list[bytes] = objects[which].tolist()
    return found


def woven(*columns: Sequence[bytes]) -> bytes:
    """The first of each column, then the second of each, and so on, in one piece."""
    width = len(columns)
    every: list[bytes] = [b""] * (width * len(columns[0]))
    for position, column in enumerate(columns):
        every[position::width] = column
    return b"".join(every)
