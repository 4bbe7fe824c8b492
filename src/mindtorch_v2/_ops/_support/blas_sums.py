"""Sums over rows and channels, by BLAS where it has them: several times as fast as a ufunc's reduction."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np

_F32 = np.dtype(np.float32)
_BLAS = (_F32, np.dtype(np.float64))


@lru_cache(maxsize=64)
def _ones(count: int, dtype: np.dtype) -> np.ndarray:
    made = np.ones(count, dtype)
    made.flags.writeable = False
    return made


# For matrices this small, products with a matrix of ones beat reductions and broadcasting: every element of the result
# is its row's sum, so that the next step needs no broadcasting either, which would cost more than the sums.
FEW = 1024
_WIDEST = 64
_SUMS: dict[int, np.ndarray] = {}
_AVERAGES: dict[int, np.ndarray] = {}
# What was found out for shapes met before: asking an array for its shape and looking that up is less than working it out.
_FAMILIAR_SUMS: dict[tuple[int, ...], np.ndarray | None] = {}
_HANDFUL_SUMS: dict[tuple[int, ...], np.ndarray] = {}
_FAMILIAR_AVERAGES: dict[tuple[int, ...], np.ndarray | None] = {}
_MOST_SHAPES = 1024
_UNKNOWN = np.empty(0)
# Sums of squares up to here mean that no exponential overflows or vanishes, so that rows need not be centred first.
_TAME = 6400.0
# The same of each element by itself: the byte of a float32 that has its sign and most of its exponent, marked unless the
# number lies between -32 and 32. Looking at bytes is quicker than any arithmetic on a handful of elements.
_HANDFUL = 256
_TOP_BYTE = 3 if sys.byteorder == "little" else 0
_WILD = bytes(0 if b & 0x7F <= 65 else 0x80 for b in range(256))


def _remembered(familiar: dict[tuple[int, ...], np.ndarray | None], shape: tuple[int, ...], average: bool) -> Any:
    made = None
    if len(shape) == 2 and shape[0] * shape[1] <= FEW and shape[1] <= _WIDEST:
        squares, width = (_AVERAGES, shape[1]) if average else (_SUMS, shape[1])
        made = squares.get(width)
        if made is None:
            made = squares[width] = np.full((width, width), 1 / width if average and width else 1, np.float32)
            made.flags.writeable = False
    if len(familiar) < _MOST_SHAPES:
        familiar[shape] = made
    return made


def small_sums(rows: np.ndarray) -> np.ndarray | None:
    """The matrix that gives the sums of a small float32 matrix' rows when multiplied from the right; None for others."""
    if rows.dtype is not _F32:
        return None
    made = _FAMILIAR_SUMS.get(rows.shape, _UNKNOWN)
    return _remembered(_FAMILIAR_SUMS, rows.shape, False) if made is _UNKNOWN else made


def small_averages(rows: np.ndarray) -> np.ndarray | None:
    """As `small_sums`, for means."""
    if rows.dtype is not _F32:
        return None
    made = _FAMILIAR_AVERAGES.get(rows.shape, _UNKNOWN)
    return _remembered(_FAMILIAR_AVERAGES, rows.shape, True) if made is _UNKNOWN else made


def is_tame(handful: np.ndarray) -> bool:
    """Whether all elements of a handful of float32 numbers lie between -32 and 32."""
    return handful.tobytes()[_TOP_BYTE::4].translate(_WILD).isascii()


def tame_sums(rows: np.ndarray) -> np.ndarray | None:
    """As `small_sums`, and None as well where exponentials of the elements may overflow or vanish."""
    made = _HANDFUL_SUMS.get(rows.shape)
    if made is not None and rows.dtype is _F32:
        # `is_tame`, written out: the call would cost half as much again.
        return made if rows.tobytes()[_TOP_BYTE::4].translate(_WILD).isascii() else None
    made = small_sums(rows)
    if made is None:
        return None
    if rows.size <= _HANDFUL:
        if len(_HANDFUL_SUMS) < _MOST_SHAPES:
            _HANDFUL_SUMS[rows.shape] = made
        return made if is_tame(rows) else None
    flat = rows.reshape(-1)
    return made if flat.dot(flat) < _TAME else None


def row_sums(rows: np.ndarray) -> np.ndarray:
    """(n, 1) sums of an (n, m) array."""
    if rows.dtype in _BLAS:
        return np.dot(rows, _ones(rows.shape[1], rows.dtype))[:, None]
    return np.add.reduce(rows, 1, None, None, True)


def column_sums(rows: np.ndarray) -> np.ndarray:
    """(m,) sums of an (n, m) array."""
    if rows.dtype in _BLAS:
        return np.dot(_ones(rows.shape[0], rows.dtype), rows)
    return np.add.reduce(rows, 0)


def row_dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(n, 1) inner products of the rows of two (n, m) arrays."""
    return np.vecdot(left, right)[:, None]


def channel_sums(array: np.ndarray) -> np.ndarray:
    """(C,) sums of an (N, C, ...) array."""
    batch, channels = array.shape[:2]
    if array.size == batch * channels:
        return np.add.reduce(array.reshape(batch, channels), 0)
    return np.add.reduce(row_sums(array.reshape(batch * channels, -1)).reshape(batch, channels), 0)


def channel_dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(C,) inner products of two (N, C, ...) arrays."""
    batch, channels = left.shape[:2]
    if left.size == batch * channels:
        return np.add.reduce((left * right).reshape(batch, channels), 0)
    dots = row_dots(left.reshape(batch * channels, -1), right.reshape(batch * channels, -1))
    return np.add.reduce(dots.reshape(batch, channels), 0)
