"""Sums over rows and channels, by BLAS where it has them: several times as fast as a ufunc's reduction."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_BLAS = (np.dtype(np.float32), np.dtype(np.float64))


@lru_cache(maxsize=64)
def _ones(count: int, dtype: np.dtype) -> np.ndarray:
    made = np.ones(count, dtype)
    made.flags.writeable = False
    return made


# For matrices this small, products with a matrix of ones beat reductions and broadcasting: every element of the result
# is its row's sum, so that the next step needs no broadcasting either, which would cost more than the sums.
FEW = 1024
_SQUARES: dict[tuple[int, bool], np.ndarray] = {}


def small_square(width: int, average: bool = False) -> np.ndarray | None:
    """The float32 (width, width) matrix that gives row sums or means when multiplied from the right; None if large."""
    if width > 64:
        return None
    made = _SQUARES.get((width, average))
    if made is None:
        made = np.full((width, width), 1 / width if average and width else 1, np.float32)
        made.flags.writeable = False
        _SQUARES[width, average] = made
    return made


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
