"""Factorizations and substitutions in NumPy alone, one column or row after the other.

They serve where LAPACK is not at hand or has no such routine, and large batches of small matrices, where one NumPy call on the
whole batch costs less than a call of LAPACK for each matrix. Matrices are changed in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

_PANEL = 32  # columns that LU eliminates one by one before one product updates the rest of the matrix
# Bunch and Kaufman's bound: with it, entries grow equally fast by a 1 by 1 and by a 2 by 2 pivot block.
_GROWTH_BOUND = (1 + math.sqrt(17)) / 8


def magnitude(a: np.ndarray) -> np.ndarray:
    """What LAPACK compares pivots by: the absolute value, for complex numbers the sum of those of both parts."""
    return np.abs(a.real) + np.abs(a.imag) if a.dtype.kind == "c" else np.abs(a)


def adjoint(a: np.ndarray) -> np.ndarray:
    """The conjugate transpose of each matrix, a view for real ones."""
    transposed = np.swapaxes(a, -1, -2)
    return np.conjugate(transposed) if a.dtype.kind == "c" else transposed


# ---------------------------------------------------------------- LU


def lu_of_batch(lu: np.ndarray, pivot: bool) -> tuple[np.ndarray, np.ndarray]:
    """LU factors of matrices (count, m, n), all at once; the rows exchanged and the first zero on U's diagonal, from 1."""
    count, rank = lu.shape[0], min(lu.shape[1:])
    pivots = np.empty((count, rank), np.int32)
    info = np.zeros(count, np.int32)
    every = np.arange(count)
    for j in range(rank):
        chosen = magnitude(lu[:, j:, j]).argmax(1) + j if pivot else np.full(count, j)
        pivots[:, j] = chosen + 1
        if pivot:
            row = lu[every, j].copy()
            lu[every, j] = lu[every, chosen]
            lu[every, chosen] = row
        diagonal = lu[:, j, j]
        info[(diagonal == 0) & (info == 0)] = j + 1
        lu[:, j + 1 :, j] /= np.where(diagonal == 0, np.ones((), lu.dtype), diagonal)[:, None]
        lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return pivots, info


def lu_of_matrix(lu: np.ndarray, pivot: bool) -> tuple[np.ndarray, int]:
    """LU factors of one matrix (m, n), by panels; the rows exchanged and the first zero on U's diagonal, from 1."""
    rank = min(lu.shape)
    pivots, info = np.arange(1, rank + 1, dtype=np.int32), 0
    for start in range(0, rank, _PANEL):
        stop = min(start + _PANEL, rank)
        for j in range(start, stop):
            chosen = j + int(magnitude(lu[j:, j]).argmax()) if pivot else j
            if chosen != j:
                pivots[j] = chosen + 1
                row = lu[j].copy()
                lu[j] = lu[chosen]
                lu[chosen] = row
            below = lu[j + 1 :, j]
            if lu[j, j] != 0:
                below /= lu[j, j]
            else:
                info = info or j + 1
            if j + 1 < stop:
                lu[j + 1 :, j + 1 : stop] -= below[:, None] * lu[j, j + 1 : stop]
        if stop < lu.shape[1]:
            right = lu[start:stop, stop:]
            substitute(lu[start:stop, start:stop], right, upper=False, unitriangular=True)
            lu[stop:, stop:] -= lu[stop:, start:stop] @ right
    return pivots, info


# ---------------------------------------------------------------- triangular systems and Cholesky


def substitute(a: np.ndarray, x: np.ndarray, upper: bool, unitriangular: bool) -> None:
    """Replace right-hand sides by solutions, row by row; only one triangle of a is read."""
    n = a.shape[-1]
    for k in range(n - 1, -1, -1) if upper else range(n):
        known = slice(k + 1, n) if upper else slice(0, k)
        if known.stop > known.start:
            x[..., k, :] -= np.matmul(a[..., k, None, known], x[..., known, :])[..., 0, :]
        if not unitriangular:
            x[..., k, :] /= a[..., k, k, None]


def cholesky_of_batch(lower: np.ndarray) -> np.ndarray:
    """Lower Cholesky factors of (count, n, n); the order of the first leading minor that is not positive, 0 if all are.

    A matrix that fails keeps the columns before that minor, and its pivot without the root.
    """
    info = np.zeros(lower.shape[0], np.int32)
    for j in range(lower.shape[-1]):
        going = info == 0
        row = lower[:, j, :j]
        pivot = lower[:, j, j].real - (row * np.conjugate(row)).sum(-1).real
        lower[going, j, j] = pivot[going]
        info[going & ~(pivot > 0)] = j + 1
        going = info == 0
        root = np.sqrt(pivot[going]).astype(lower.dtype)
        lower[going, j, j] = root
        below = lower[going, j + 1 :, j] - np.matmul(lower[going, j + 1 :, :j], np.conjugate(row[going])[..., None])[..., 0]
        lower[going, j + 1 :, j] = below / root[:, None]
    return info


# ---------------------------------------------------------------- L D Lᵀ


def _conjugation(dtype: np.dtype, hermitian: bool) -> Any:
    """What an entry becomes on the other side of the diagonal."""
    return np.conjugate if hermitian and dtype.kind == "c" else np.asarray


def ldl_of_matrix(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, int]:
    """L and D of one matrix, in its lower triangle; the rows exchanged, and the first column that is all 0, from 1.

    As in LAPACK, a pivot k > 0 is a 1 by 1 block of D whose row was exchanged with row k, twice a pivot -k is a 2 by 2 block
    whose second row was. The columns before the block are not exchanged.
    """
    n = a.shape[0]
    pivots, info, k = np.empty(n, np.int32), 0, 0
    diagonal: Any
    off_diagonal: Any
    conjugate = _conjugation(a.dtype, hermitian)
    rows = np.arange(n)
    while k < n:
        if hermitian:  # as in LAPACK: imaginary parts that stood there, or are left by rounding, would grow
            a[rows[k:], rows[k:]] = a.diagonal()[k:].real
        diagonal, off_diagonal, chosen, width = magnitude(a[k, k]), 0.0, k, 1
        below = magnitude(a[k + 1 :, k])
        if below.size:
            row = k + 1 + int(below.argmax())
            off_diagonal = below[row - k - 1]
        if not max(diagonal, off_diagonal) > 0:
            info = info or k + 1
        elif diagonal < _GROWTH_BOUND * off_diagonal:
            largest = max(magnitude(a[row, k:row]).max(), magnitude(a[row + 1 :, row]).max(initial=0))
            if diagonal < _GROWTH_BOUND * off_diagonal * (off_diagonal / largest):
                candidate = a[row, row].real if hermitian else a[row, row]
                chosen, width = row, 1 if magnitude(candidate) >= _GROWTH_BOUND * largest else 2
        last = k + width - 1
        if chosen != last:
            _exchange(a, k, last, chosen, conjugate)
        if max(diagonal, off_diagonal) > 0:
            _eliminate(a, k, width, conjugate)
        pivots[k : k + width] = chosen + 1 if width == 1 else -chosen - 1
        k += width
    return pivots, info


def _exchange(a: np.ndarray, k: int, i: int, j: int, conjugate: Any) -> None:
    """Exchange rows and columns i < j of the part from k on, of which the lower triangle is stored."""
    a[[i, j], [i, j]] = a[[j, i], [j, i]]
    a[j + 1 :, [i, j]] = a[j + 1 :, [j, i]]
    between = conjugate(a[i + 1 : j, i].copy())
    a[i + 1 : j, i] = conjugate(a[j, i + 1 : j])
    a[j, i + 1 : j] = between
    a[j, i] = conjugate(a[j, i])
    if i > k:
        a[[i, j], k] = a[[j, i], k]


def _pivot_block(a: np.ndarray, k: int, width: int, conjugate: Any) -> np.ndarray:
    """The block of D at k, with both of its triangles."""
    if width == 1:
        return a[k : k + 1, k : k + 1]
    return np.array([[a[k, k], conjugate(a[k + 1, k])], [a[k + 1, k], a[k + 1, k + 1]]])


def _eliminate(a: np.ndarray, k: int, width: int, conjugate: Any) -> None:
    """Subtract the block at k and its columns from the part below, and leave L in these columns."""
    below = a[k + width :, k : k + width]
    if not below.size:
        return
    block = _pivot_block(a, k, width, conjugate)
    factors = np.linalg.solve(block.T, below.T).T if width == 2 else below / a[k, k]
    a[k + width :, k + width :] -= np.tril(factors @ conjugate(below).T)
    a[k + width :, k : k + width] = factors


def _pivot_blocks(pivots: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """The blocks of D from the top: first row, number of rows, and the row that the last of them was exchanged with."""
    k = 0
    while k < len(pivots):
        width = 1 if pivots[k] > 0 else 2
        yield k, width, abs(int(pivots[k])) - 1
        k += width


def ldl_solve_matrix(a: np.ndarray, pivots: np.ndarray, x: np.ndarray, hermitian: bool) -> None:
    """Replace the right-hand sides x of one matrix by solutions: with L and D downwards, then with Lᵀ upwards."""
    conjugate = _conjugation(a.dtype, hermitian)
    blocks = list(_pivot_blocks(pivots))
    for k, width, other in blocks:
        last, end = k + width - 1, k + width
        x[[last, other]] = x[[other, last]]
        x[end:] -= a[end:, k:end] @ x[k:end]
        x[k:end] = np.linalg.solve(_pivot_block(a, k, width, conjugate), x[k:end]) if width == 2 else x[k:end] / a[k, k]
    for k, width, other in reversed(blocks):
        last, end = k + width - 1, k + width
        x[k:end] -= conjugate(a[end:, k:end]).T @ x[end:]
        x[[last, other]] = x[[other, last]]


# ---------------------------------------------------------------- reflections


def reflect(vectors: np.ndarray, weights: np.ndarray, x: np.ndarray, adjoint_: bool) -> None:
    """Replace x by Q x, or Qᴴ x, for Q the product of the reflections I - tau v vᴴ, each v below a column's diagonal."""
    count = weights.shape[-1]
    if adjoint_:
        weights = np.conjugate(weights)
    for i in range(count) if adjoint_ else reversed(range(count)):
        # v starts with a 1 at row i, which is not stored; above that it is 0.
        v, below = vectors[..., i + 1 :, i, None], x[..., i + 1 :, :]
        along = x[..., i, None, :] + np.matmul(adjoint(v), below)
        along *= weights[..., i, None, None]
        x[..., i, :] -= along[..., 0, :]
        below -= v * along
