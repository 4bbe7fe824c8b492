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
    ones = np.ones(count, dtype)
    ones.flags.writeable = False
    return ones


# For matrices this small, a product with a matrix of ones is faster than a reduction: every element of the result is its
# row's sum, so that the next step needs no broadcasting either, which would cost more than the sums.
FEW = 1024
_WIDEST = 64
_SUMS: dict[int, np.ndarray] = {}
_AVERAGES: dict[int, np.ndarray] = {}
# The matrix for each shape seen so far: looking up a shape is faster than working out what it needs.
_SUMS_BY_SHAPE: dict[tuple[int, ...], np.ndarray | None] = {}
_TINY_SUMS_BY_SHAPE: dict[tuple[int, ...], np.ndarray] = {}
_AVERAGES_BY_SHAPE: dict[tuple[int, ...], np.ndarray | None] = {}
_MOST_SHAPES = 1024
_UNKNOWN = np.empty(0)
# Up to this sum of squares no exponential overflows or vanishes, so that rows need not be centered first.
_SAFE_SQUARES = 6400.0
# The same for each element by itself: the byte of a float32 with its sign and most of its exponent, marked unless the
# number lies between -32 and 32. On so few elements, looking at bytes is faster than any arithmetic.
_TINY = 256
_TOP_BYTE = 3 if sys.byteorder == "little" else 0
_UNSAFE = bytes(0 if b & 0x7F <= 65 else 0x80 for b in range(256))


def _remember(by_shape: dict[tuple[int, ...], np.ndarray | None], shape: tuple[int, ...], average: bool) -> Any:
    matrix = None
    if len(shape) == 2 and shape[0] * shape[1] <= FEW and shape[1] <= _WIDEST:
        squares, width = (_AVERAGES, shape[1]) if average else (_SUMS, shape[1])
        matrix = squares.get(width)
        if matrix is None:
            matrix = squares[width] = np.full((width, width), 1 / width if average and width else 1, np.float32)
            matrix.flags.writeable = False
    if len(by_shape) < _MOST_SHAPES:
        by_shape[shape] = matrix
    return matrix


def small_sums(rows: np.ndarray) -> np.ndarray | None:
    """The matrix that turns a small float32 matrix into its row sums when multiplied from the right; None for others."""
    if rows.dtype is not _F32:
        return None
    matrix = _SUMS_BY_SHAPE.get(rows.shape, _UNKNOWN)
    return _remember(_SUMS_BY_SHAPE, rows.shape, False) if matrix is _UNKNOWN else matrix


def small_averages(rows: np.ndarray) -> np.ndarray | None:
    """As `small_sums`, for means."""
    if rows.dtype is not _F32:
        return None
    matrix = _AVERAGES_BY_SHAPE.get(rows.shape, _UNKNOWN)
    return _remember(_AVERAGES_BY_SHAPE, rows.shape, True) if matrix is _UNKNOWN else matrix


def exp_is_safe(few: np.ndarray) -> bool:
    """Whether all of a few float32 numbers lie between -32 and 32, so that no exponential overflows or vanishes."""
    return few.tobytes()[_TOP_BYTE::4].translate(_UNSAFE).isascii()


def exp_safe_sums(rows: np.ndarray) -> np.ndarray | None:
    """As `small_sums`, and None as well where exponentials of the elements may overflow or vanish."""
    matrix = _TINY_SUMS_BY_SHAPE.get(rows.shape)
    if matrix is not None and rows.dtype is _F32:
        # `exp_is_safe`, written out: the call would cost half as much again.
        return matrix if rows.tobytes()[_TOP_BYTE::4].translate(_UNSAFE).isascii() else None
    matrix = small_sums(rows)
    if matrix is None:
        return None
    if rows.size <= _TINY:
        if len(_TINY_SUMS_BY_SHAPE) < _MOST_SHAPES:
            _TINY_SUMS_BY_SHAPE[rows.shape] = matrix
        return matrix if exp_is_safe(rows) else None
    flat = rows.reshape(-1)
    return matrix if flat.dot(flat) < _SAFE_SQUARES else None


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
