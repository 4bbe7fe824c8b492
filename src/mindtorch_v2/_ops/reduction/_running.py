"""Running sums, products and extremes of large arrays, several times as fast as `ufunc.accumulate`.

That computes one element after another, each from the one that it has just written, which takes some 3 ns for each; along other
dims than the last one it also walks through memory in large steps. Here a ufunc computes many elements that do not depend on
each other at a time.
"""

from __future__ import annotations

import math

import numpy as np

from ..._core import parallel

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_FEW = 1 << 14  # elements that `accumulate` goes over sooner
_STEP = 256  # elements of a step along a dim from which on a call for each step takes less time
_LINE = 64  # of which so many lie side by side
# Elements of a part of a row. No product of so many float32 numbers leaves the range of float64, in which they are multiplied.
_PART = 8
_BLOCK = 1 << 17  # elements of rows that a thread works on at a time


def accumulate(ufunc: np.ufunc, array: np.ndarray, dim: int, kind: np.dtype) -> np.ndarray:
    """`ufunc.accumulate(array, dim, kind)`. Many sums and products of float32 along the last dim are carried in float64."""
    n = array.shape[dim]
    if dim < array.ndim - 1:
        is_wide = math.prod(array.shape[dim + 1 :]) >= _LINE and array.size >= _STEP * n
        return _step_by_step(ufunc, array, dim, kind) if is_wide else ufunc.accumulate(array, dim, kind)
    carried = kind
    if ufunc is np.add or ufunc is np.multiply:
        carried = _FLOAT64 if kind == _FLOAT32 else None  # the others are fast or have to be added up in order, as torch does
    elif (ufunc is not np.maximum and ufunc is not np.minimum) or kind.kind not in "fiu":
        carried = None
    if array.size < _FEW or carried is None:
        return ufunc.accumulate(array, dim, kind)
    rows = array.reshape(-1, n)
    result = np.empty(rows.shape, kind)
    step = max(_BLOCK // n, 1)
    parallel.blocks(len(rows), step, lambda part: _along_rows(ufunc, rows[part], result[part], carried))
    return result.reshape(array.shape)


def _step_by_step(ufunc, array, dim, kind):
    """One call for each step along a dim: with the elements of all lines, which come in the same order as `accumulate`'s."""
    result = np.empty(array.shape, kind)
    lead = (slice(None),) * dim
    result[(*lead, 0)] = array[(*lead, 0)]
    for k in range(1, array.shape[dim]):
        ufunc(result[(*lead, k - 1)], array[(*lead, k)], out=result[(*lead, k)])
    return result


def _along_rows(ufunc, rows, out, carried):
    """Scan the rows of a matrix: short parts of all of them at once, then their totals, which join the parts."""
    count, n = rows.shape
    if rows.size < _FEW:
        out[...] = ufunc.accumulate(rows, 1, carried)
        return
    width = n if n <= 2 * _PART else _PART
    whole = n // width * width
    parts = np.empty((width, count, whole // width), carried)
    parts[...] = rows[:, :whole].reshape(count, -1, width).transpose(2, 0, 1)
    for k in range(1, width):
        ufunc(parts[k - 1], parts[k], out=parts[k])
    totals = parts[-1]
    if whole > width:
        totals = np.empty(totals.shape, carried)
        _along_rows(ufunc, parts[-1], totals, carried)
        ufunc(totals[:, :-1], parts[:, :, 1:], out=parts[:, :, 1:])
    out[:, :whole].reshape(count, -1, width)[...] = parts.transpose(1, 2, 0)
    total = totals[:, -1]
    for k in range(whole, n):
        total = ufunc(total, rows[:, k].astype(carried, copy=False))
        out[:, k] = total
