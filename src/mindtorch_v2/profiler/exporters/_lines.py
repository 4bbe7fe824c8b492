"""Lines of text from columns of numbers: one template for all lines, filled in with NumPy instead of formatting.

A template is a matrix of bytes, one row per line. Numbers are right-aligned in columns as wide as the largest needs,
with blanks in front, which JSON allows; so all lines have one length and nothing has to be moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Piece = bytes | Bytes

# The four digits of every number below 10,000, as one 32-bit word each.
_FOUR = (np.arange(10_000)[:, None] // (1000, 100, 10, 1) % 10 + ord("0")).astype(np.uint8)
_WORDS = _FOUR.view(np.uint32).reshape(-1)
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)
_BLANK = ord(" ")


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


def number(values: NDArray[Any]) -> Bytes:
    """Whole numbers, not negative."""
    values = values.astype(np.int64)
    width = len(str(int(values.max()))) if len(values) else 1
    made = _digits(values, -(-width // 4))[:, -width:]
    # Column by column from the left: a digit is blank where the number does not reach it.
    for column in range(width - 1):
        made[values < _POWERS[width - 2 - column], column] = _BLANK
    return made


def signed(values: NDArray[Any]) -> Bytes:
    """Whole numbers with a minus sign where they are negative."""
    made = number(np.abs(values))
    if (values >= 0).all():
        return made
    made = np.hstack([np.full((len(values), 1), _BLANK, np.uint8), made])
    below = np.flatnonzero(values < 0)
    # Right before the first digit.
    made[below, (made[below] != _BLANK).argmax(axis=1) - 1] = ord("-")
    return made


def thousandths(values: NDArray[np.int64]) -> Bytes:
    """Thousandths as a decimal fraction with three places: 12345 as 12.345."""
    whole = values // 1000
    fraction = _FOUR[values - whole * 1000]  # 0345
    fraction[:, 0] = ord(".")
    return np.hstack([number(whole), fraction])


def where(shown: NDArray[np.bool_], piece: Bytes, other: bytes = b"") -> Bytes:
    """A piece in the lines where it is shown, some constant text in the others."""
    width = max(piece.shape[1], len(other))
    made = np.full((len(shown), width), _BLANK, np.uint8)
    made[:, width - piece.shape[1] :] = piece
    made[~shown] = np.frombuffer(other.rjust(width), np.uint8)
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
    """One bytes object per line."""
    if not count:
        return []
    table = together(pieces, count)
    made: list[bytes] = table.view(f"S{table.shape[1]}").reshape(-1).tolist()
    return made


def merged(chosen: NDArray[np.bool_], these: Sequence[bytes], others: Sequence[bytes]) -> list[bytes]:
    """One list of two: the next of `these` where chosen, the next of `others` where not."""
    if not len(others) or not len(these):
        return list(these or others)
    every = np.empty(len(chosen), object)
    every[chosen] = these
    every[~chosen] = others
    found: list[bytes] = every.tolist()
    return found


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
