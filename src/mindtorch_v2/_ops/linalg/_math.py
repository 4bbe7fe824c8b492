"""Linear algebra on batches of NumPy matrices, where NumPy has no function for it or tells too little of failures."""

from __future__ import annotations

import math

import numpy as np


class LinAlgError(RuntimeError):
    """A matrix on which an operation cannot be carried out."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as torch calls it


def adjoint(a: np.ndarray) -> np.ndarray:
    """The conjugate transpose of each matrix."""
    turned = np.swapaxes(a, -1, -2)
    return np.conjugate(turned) if a.dtype.kind == "c" else turned


def turned_over(fresh: np.ndarray) -> np.ndarray:
    """The conjugate transpose of an array that nobody else holds, in the same memory."""
    if fresh.dtype.kind == "c":
        np.conjugate(fresh, out=fresh)
    return np.swapaxes(fresh, -1, -2)


def column_major(a: np.ndarray) -> np.ndarray:
    """A copy whose columns lie together in memory, which is how LAPACK leaves its results."""
    if a.ndim == 2:
        return np.array(a, order="F")
    return np.array(np.swapaxes(a, -1, -2), order="C").swapaxes(-1, -2)


def magnitude(a: np.ndarray) -> np.ndarray:
    """What LAPACK compares pivots by: the absolute value, of complex numbers the sum of those of both parts."""
    return np.abs(a.real) + np.abs(a.imag) if a.dtype.kind == "c" else np.abs(a)


def lu_factor(a: np.ndarray, pivot: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and U in one matrix, the rows exchanged (counted from 1), and the first zero on U's diagonal (0 if none)."""
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    rank = min(m, n)
    whole = column_major(a)
    if not batch:
        return whole, *_lu_of_one(whole, rank, pivot)
    # The columns lie together, so it is their order in memory that the batch dimensions can be joined in.
    lu = whole.swapaxes(-1, -2).reshape(math.prod(batch), n, m).swapaxes(1, 2)
    pivots = np.empty((lu.shape[0], rank), np.int32)
    info = np.zeros(lu.shape[0], np.int32)
    every = np.arange(lu.shape[0])
    for j in range(rank):
        chosen = magnitude(lu[:, j:, j]).argmax(1) + j if pivot else np.full(len(every), j)
        pivots[:, j] = chosen + 1
        if pivot:
            row = lu[every, j].copy()
            lu[every, j] = lu[every, chosen]
            lu[every, chosen] = row
        diagonal = lu[:, j, j]
        info[(diagonal == 0) & (info == 0)] = j + 1
        lu[:, j + 1 :, j] /= np.where(diagonal == 0, np.ones((), lu.dtype), diagonal)[:, None]
        lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return whole, pivots.reshape(*batch, rank), info.reshape(batch)


_PANEL = 32  # columns that are done one by one before the rest of the matrix is brought up to date, in one product


def _lu_of_one(lu: np.ndarray, rank: int, pivot: bool) -> tuple[np.ndarray, np.ndarray]:
    """The factors of a single matrix, in place; the rows exchanged, and the first zero on U's diagonal."""
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
            right = solve_triangular(lu[start:stop, start:stop], lu[start:stop, stop:], False, True)
            lu[start:stop, stop:] = right
            lu[stop:, stop:] -= lu[stop:, start:stop] @ right
    return pivots, np.array(info, np.int32)


def permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    """Row exchanges, one after the other, as the order of rows they lead to."""
    batch = pivots.shape[:-1]
    flat = pivots.reshape(math.prod(batch), pivots.shape[-1]).astype(np.int64) - 1
    order = np.tile(np.arange(size), (flat.shape[0], 1))
    every = np.arange(flat.shape[0])
    for j in range(flat.shape[1]):
        row = order[:, j].copy()
        order[:, j] = order[every, flat[:, j]]
        order[every, flat[:, j]] = row
    return order.reshape(*batch, size)


def permutation_matrix(pivots: np.ndarray, size: int, dtype: np.dtype) -> np.ndarray:
    """P of A = P L U."""
    made = np.zeros((*pivots.shape[:-1], size, size), dtype)
    np.put_along_axis(made, permutation(pivots, size)[..., None, :], 1, -2)
    return made


def unpack(lu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L with ones on its diagonal, and U."""
    m, n = lu.shape[-2:]
    rank = min(m, n)
    lower = np.tril(lu[..., :, :rank], -1)
    lower[..., np.arange(rank), np.arange(rank)] = 1
    return lower, np.triu(lu[..., :rank, :])


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool = False, rows: bool = False) -> np.ndarray:
    """x of a x = b by substitution; only one triangle of a is read. x is column-major, with `rows` row-major."""
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    x = np.array(x, order="C") if rows else column_major(x)
    for k in range(n - 1, -1, -1) if upper else range(n):
        known = slice(k + 1, n) if upper else slice(0, k)
        if known.stop > known.start:
            x[..., k, :] -= np.matmul(a[..., k, None, known], x[..., known, :])[..., 0, :]
        if not unitriangular:
            x[..., k, :] /= a[..., k, k, None]
    return x


def lu_solve(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, adjoint_: bool) -> np.ndarray:
    """x of a x = b, or of aᴴ x = b, for a given by its factors."""
    order = permutation(pivots, lu.shape[-1])
    batch = np.broadcast_shapes(order.shape[:-1], b.shape[:-2])
    order = np.broadcast_to(order, (*batch, order.shape[-1]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    if not adjoint_:
        exchanged = np.take_along_axis(b, order[..., None], -2)
        return solve_triangular(lu, solve_triangular(lu, exchanged, False, True), True)
    turned = adjoint(lu)
    x = solve_triangular(turned, solve_triangular(turned, b, False), True, True)
    made = np.empty((*batch, x.shape[-1], x.shape[-2]), x.dtype).swapaxes(-1, -2)
    np.put_along_axis(made, np.broadcast_to(order[..., None], x.shape), x, -2)
    return made


def parity(pivots: np.ndarray) -> np.ndarray:
    """+1 for an even number of row exchanges, -1 for an odd one."""
    return 1 - 2 * ((pivots != np.arange(1, pivots.shape[-1] + 1)).sum(-1) % 2)


def cholesky(a: np.ndarray, upper: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The lower (upper) factor, column-major, and the order of the first leading minor that is not positive (0 if all are).

    The lower factor of a is the upper one of its transpose, turned: so that NumPy's rows become the columns here.
    """
    turned = np.swapaxes(a, -1, -2)
    try:
        return np.linalg.cholesky(turned, upper=not upper).swapaxes(-1, -2), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        pass
    batch, n = a.shape[:-2], a.shape[-1]
    made = np.tril(turned if upper else a).reshape(math.prod(batch), n, n)
    info = np.zeros(made.shape[0], np.int32)
    for j in range(n):
        # A matrix that failed stays as it was then, its last pivot without a root.
        going = info == 0
        row = made[:, j, :j]
        rest = made[:, j, j].real - (row * np.conjugate(row)).sum(-1).real
        made[going, j, j] = rest[going]
        info[going & ~(rest > 0)] = j + 1
        going = info == 0
        root = np.sqrt(rest[going]).astype(made.dtype)
        made[going, j, j] = root
        below = made[going, j + 1 :, j] - np.matmul(made[going, j + 1 :, :j], np.conjugate(row[going])[..., None])[..., 0]
        made[going, j + 1 :, j] = below / root[:, None]
    made = made.reshape(a.shape)
    return made.swapaxes(-1, -2) if upper else column_major(made), info.reshape(batch)


# The numerator of the [13/13] Padé approximant of exp, whose denominator has alternating signs.
_PADE = tuple(math.factorial(26 - j) * math.factorial(13) // (math.factorial(13 - j) * math.factorial(j)) for j in range(14))


def matrix_exp(a: np.ndarray) -> np.ndarray:
    """exp of each matrix: halved until its norm is below 5.4, where the approximant is exact, then squared back."""
    if not a.size:
        return a.copy()
    work = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    norm = np.abs(work).sum(-2).max(-1)
    halvings = np.maximum(np.ceil(np.log2(np.maximum(norm, 1e-300) / 5.371920351148152)), 0)
    halvings = np.where(np.isfinite(halvings), halvings, 0).astype(int)
    x = work / (2.0**halvings)[..., None, None]
    identity = np.eye(a.shape[-1])
    b = [c / _PADE[0] for c in _PADE]
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * identity)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * identity
    made = np.linalg.solve(even - odd, even + odd)
    for step in range(int(halvings.max())):
        made = np.where((step < halvings)[..., None, None], made @ made, made)
    return made.astype(a.dtype)
