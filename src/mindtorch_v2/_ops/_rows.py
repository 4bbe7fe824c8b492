"""Sums over rows of matrices, by BLAS where it has them: several times as fast as a ufunc's reduction."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_BLAS = (np.dtype(np.float32), np.dtype(np.float64))


@lru_cache(maxsize=64)
def _ones(count: int, dtype: np.dtype) -> np.ndarray:
    made = np.ones(count, dtype)
    made.flags.writeable = False
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
