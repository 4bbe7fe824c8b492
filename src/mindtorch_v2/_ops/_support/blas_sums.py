"""Sums over rows and channels, by BLAS where it has them: several times as fast as a ufunc's reduction."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .split_products import dot_with_vector

_F32 = np.dtype(np.float32)
_BLAS = (_F32, np.dtype(np.float64))


@lru_cache(maxsize=64)
def _ones(count: int, dtype: np.dtype) -> np.ndarray:
    made = np.ones(count, dtype)
    made.flags.writeable = False
    return made


# BLAS adds float32 elements of a row one after another in a few lanes; of more elements than this the sum drifts, and NumPy's
# sum by halves takes its place.
_LONG = 1 << 17

# Rows of up to so many float32 elements are short: a product with one of these matrices gives an array with the sum, or the
# mean, of each row in all its places. It takes less time than a column of sums and broadcasting that: to divide elements by
# the sums of their rows takes 0.8 us in place of 1.6 us for 4 rows of 4, and 11 us in place of 18 us for 1024 rows of 16.
_SHORT = 16
_SUMS = [np.ones((width, width), np.float32) for width in range(_SHORT + 1)]
_MEANS = [np.full((width, width), 1 / max(width, 1), np.float32) for width in range(_SHORT + 1)]


def total(values: np.ndarray) -> Any:
    """The sum of all elements, as a number of their dtype."""
    flat = values.ravel()
    return dot_with_vector(flat, _ones(flat.size, flat.dtype)) if flat.dtype in _BLAS else np.add.reduce(flat)


def row_sums(rows: np.ndarray) -> np.ndarray:
    """(n, 1) sums of an (n, m) array."""
    if rows.dtype in _BLAS and rows.shape[1] <= _LONG:
        return dot_with_vector(rows, _ones(rows.shape[1], rows.dtype))[:, None]
    return np.add.reduce(rows, 1, None, None, True)


def weighted_row_sums(rows: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """(n, 1) sums of an (n, m) array whose columns count by (m,) weights, or equally."""
    if weights is None:
        return row_sums(rows)
    return dot_with_vector(rows, weights)[:, None] if rows.shape[1] <= _LONG else row_sums(rows * weights)


def spread_row_sums(rows: np.ndarray) -> np.ndarray:
    """The sums of the rows of an (n, m) array, for computing with its elements: (n, 1), or (n, m) for short rows."""
    width = rows.shape[1]
    if 0 < width <= _SHORT and rows.dtype is _F32:
        return rows.dot(_SUMS[width])
    return row_sums(rows)


def spread_row_means(rows: np.ndarray) -> np.ndarray:
    """The means of the rows of an (n, m) array, in the shapes of `spread_row_sums`."""
    width = rows.shape[1]
    if 0 < width <= _SHORT and rows.dtype is _F32:
        return rows.dot(_MEANS[width])
    means = row_sums(rows)
    means *= rows.dtype.type(1 / max(width, 1))
    return means


def spread_mean_squares(rows: np.ndarray) -> np.ndarray:
    """The means of the squares of each row of an (n, m) array, in the shapes of `spread_row_sums`."""
    width = rows.shape[1]
    if 0 < width <= _SHORT and rows.dtype is _F32:
        return np.square(rows).dot(_MEANS[width])
    means = row_dots(rows, rows)
    means *= rows.dtype.type(1 / max(width, 1))
    return means


def column_sums(rows: np.ndarray) -> np.ndarray:
    """(m,) sums of an (n, m) array."""
    if rows.dtype in _BLAS:
        return dot_with_vector(_ones(rows.shape[0], rows.dtype), rows)
    return np.add.reduce(rows, 0)


def row_dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(n, 1) inner products of the rows of two (n, m) arrays."""
    if left.shape[1] <= _LONG:
        return np.vecdot(left, right)[:, None]
    return np.add.reduce(np.multiply(left, right), 1, None, None, True)


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
