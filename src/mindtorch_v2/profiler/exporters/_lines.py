"""Formats lines of text from columns of numbers with NumPy: one template for all lines, filled in column by column.

A template is a matrix of bytes, one row per line. Numbers are right-aligned in columns as wide as the largest needs,
with blanks in front, which JSON allows; so all lines have one length. Digits are written four at a time, as words that a
table has for every number below 10,000.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..store.distinct import distinct_values

Bytes = NDArray[np.uint8]


class Words(NamedTuple):
    """Text of one width for every line: offsets and parts, each an array with a word per line, or bytes for all lines."""

    width: int
    parts: list[tuple[int, NDArray[Any] | bytes]]


Piece = bytes | Bytes | Words

_BLANK = ord(" ")
# Groups of four characters: at n the digits of n with leading zeros, at _BLANKED + n with leading blanks, at _NOTHING
# blanks alone.
_BLANKED, _NOTHING = 10_000, 20_000
_FOUR = np.full((20_001, 4), _BLANK, np.uint8)
for _place in range(4):
    # Each digit at this place repeats for 10**(3 - place) numbers.
    _digits = np.tile(np.repeat(np.arange(ord("0"), ord("9") + 1, dtype=np.uint8), 10 ** (3 - _place)), 10**_place)
    _first = 10 ** (3 - _place) if _place < 3 else 0
    _FOUR[:_BLANKED, _place] = _digits
    _FOUR[_BLANKED + _first : _NOTHING, _place] = _digits[_first:]
_WORDS = _FOUR.view(np.uint32).reshape(-1)
_PAIRS = _FOUR.view(np.uint16)[:, 1].copy()
# By the number of digits in a number's first group, one to four: the parts of the group and their offsets.
_FIRST: dict[int, list[tuple[int, NDArray[Any]]]] = {
    1: [(0, _FOUR[:, 3].copy())],
    2: [(0, _PAIRS)],
    3: [(0, _FOUR[:, 1].copy()), (1, _PAIRS)],
    4: [(0, _WORDS)],
}
# .000 to .999
_POINT = _FOUR[:1000].copy()
_POINT[:, 0] = ord(".")
_FRACTIONS = _POINT.view(np.uint32).reshape(-1)


def number(values: NDArray[Any]) -> Words:
    """Whole numbers, not negative."""
    if not len(values):
        return Words(1, [])
    rest: NDArray[np.int64] = values.astype(np.int64, copy=False)
    low, high = int(rest.min()), int(rest.max())
    at = width = len(str(high))
    even = len(str(low)) == width  # no number is shorter than another
    parts: list[tuple[int, NDArray[Any] | bytes]] = []
    while at > 4 and low != high:
        above = rest // 10_000
        group = rest - above * 10_000
        if not even:
            group[above == 0] += _BLANKED
            if at < width:
                group[rest == 0] = _NOTHING
        at -= 4
        parts.append((at, _WORDS.take(group)))
        rest, low, high = above, low // 10_000, high // 10_000
    if low == high:  # all numbers begin with the same digits
        parts.append((0, b"%d" % low))
    else:
        group = rest + _BLANKED
        if not even and at < width:
            group[rest == 0] = _NOTHING
        parts += [(offset, table.take(group)) for offset, table in _FIRST[at]]
    return Words(width, parts)


def signed(values: NDArray[Any]) -> Piece:
    """Whole numbers with a minus sign where they are negative."""
    digits = number(np.abs(values))
    if (values >= 0).all():
        return digits
    table = side_by_side([b" ", digits], len(values))
    below = np.flatnonzero(values < 0)
    # The sign goes right before the first digit.
    table[below, (table[below] != _BLANK).argmax(axis=1) - 1] = ord("-")
    return table


def thousandths(values: NDArray[np.int64]) -> Words:
    """Thousandths as a decimal fraction with three places: 12345 as 12.345."""
    whole = values // 1000
    width, parts = number(whole)
    return Words(width + 4, [*parts, (width, _FRACTIONS.take(values - whole * 1000))])


def where(chosen: NDArray[np.bool_], piece: Words, other: bytes) -> Piece:
    """A piece in the chosen lines, a constant text in the others."""
    width = max(piece.width, len(other))
    moved = Words(width, [(width - piece.width + at, part) for at, part in piece.parts])
    if chosen.all():
        return moved
    filled = side_by_side([moved], len(chosen))
    filled[~chosen] = np.frombuffer(other.rjust(width), np.uint8)
    return filled


def side_by_side(pieces: Sequence[Piece], count: int) -> Bytes:
    """The filled template of some pieces, one after another; bytes are the same in every line."""
    same = bytearray()
    varying: list[tuple[int, NDArray[Any]]] = []
    for piece in pieces:
        at = len(same)
        if isinstance(piece, bytes):
            same += piece
        elif isinstance(piece, Words):
            same += b" " * piece.width
            for offset, part in piece.parts:
                if isinstance(part, bytes):
                    same[at + offset : at + offset + len(part)] = part
                else:
                    varying.append((at + offset, part))
        else:
            same += b" " * piece.shape[1]
            varying.append((at, piece))
    width = len(same)
    filled = np.empty((count, width), np.uint8)
    filled[:] = np.frombuffer(same, np.uint8)
    for at, part in varying if count else ():
        if part.ndim == 1:
            np.ndarray((count,), part.dtype, filled, at, (width,))[:] = part
        else:
            filled[:, at : at + part.shape[1]] = part
    return filled


def text(pieces: Sequence[Piece], count: int) -> bytes:
    """All lines, joined."""
    return side_by_side(pieces, count).tobytes()


def lines(pieces: Sequence[Piece], count: int) -> list[bytes]:
    """One bytes object per line."""
    if not count:
        return []
    table = side_by_side(pieces, count)
    texts: list[bytes] = table.view(f"S{table.shape[1]}").reshape(-1).tolist()
    return texts


def merged(chosen: NDArray[np.bool_], these: Sequence[bytes], others: Sequence[bytes]) -> list[bytes]:
    """One list of two: the next of `these` where chosen, the next of `others` where not."""
    if not len(others) or not len(these):
        return list(these or others)
    every = np.empty(len(chosen), object)
    every[chosen] = these
    every[~chosen] = others
    texts: list[bytes] = every.tolist()
    return texts


def picked(table: Sequence[bytes], which: NDArray[Any]) -> list[bytes]:
    """[table[i] for i in which]"""
    objects = np.empty(len(table), object)
    objects[:] = table
    texts: list[bytes] = objects.take(which).tolist()
    return texts


class Texts:
    """Texts by number, each formatted when its number first occurs."""

    _MOST = 1 << 20  # the largest lookup table by number

    def __init__(self, make: Callable[[int], bytes], size: int) -> None:
        """`make` writes the text of a number below `size`."""
        self._make = make
        self._place_of: dict[int, int] = {}  # number -> place in the list
        self._texts: list[bytes] = []
        self._places = np.full(size, -1, np.int32) if size <= self._MOST else None

    def of(self, numbers: NDArray[np.int64]) -> list[bytes]:
        """The texts of many numbers."""
        if self._places is None:
            distinct, which = np.unique(numbers, return_inverse=True)
            return picked([self[key] for key in distinct.tolist()], which)
        places = self._places.take(numbers)
        if len(places) and places.min() < 0:
            for key in distinct_values(numbers[places < 0]).tolist():
                self[key]
                self._places[key] = self._place_of[key]
            places = self._places.take(numbers)
        return picked(self._texts, places)

    def __getitem__(self, key: int) -> bytes:
        place = self._place_of.get(key)
        if place is None:
            place = self._place_of[key] = len(self._texts)
            self._texts.append(self._make(key))
        return self._texts[place]


def interleaved(*columns: Sequence[bytes]) -> bytes:
    """The first of each column, then the second of each, and so on, joined."""
    width = len(columns)
    every: list[bytes] = [b""] * (width * len(columns[0]))
    for position, column in enumerate(columns):
        every[position::width] = column
    return b"".join(every)
