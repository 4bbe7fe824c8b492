"""Linear algebra on batches of NumPy matrices: LU, triangular systems, Cholesky, L D Lᵀ, reflections and the exponential.

Each factorization is LAPACK's where NumPy's OpenBLAS has the routine, and otherwise that of `_unblocked`. Results are
column-major, as LAPACK leaves them and torch shows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _lapack as lapack
from . import _unblocked as unblocked
from ._unblocked import adjoint as adjoint


class LinAlgError(RuntimeError):
    """A matrix on which an operation cannot be carried out."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # as torch calls it

# ---------------------------------------------------------------- LAPACK's iterations

# LAPACK need not come back from a matrix with nan or infinities, so these are refused before it is called.


def _iterated(name: str, kinds: str, function: Callable[..., Any], matrices: np.ndarray, *args: Any, **options: Any) -> Any:
    """A decomposition that LAPACK finds by iteration; LinAlgError, in torch's words, where that cannot or does not converge."""
    finite = np.isfinite(matrices).all((-2, -1)).reshape(-1)
    where, why = "", f"is ill-conditioned or has too many repeated {kinds}."
    try:
        if finite.all():
            return function(matrices, *args, **options)
        where = "" if matrices.ndim == 2 else f"(Batch element {int(np.flatnonzero(~finite)[0])}): "
        why = "contained non-finite values."
    except np.linalg.LinAlgError:
        pass
    raise LinAlgError(f"{name}: {where}The algorithm failed to converge because the input matrix {why}")


def svd(matrices: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, the singular values and the adjoint of V."""
    return _iterated("linalg.svd", "singular values", np.linalg.svd, matrices, full_matrices)


def singular_values(matrices: np.ndarray) -> np.ndarray:
    """The singular values alone."""
    return _iterated("linalg.svd", "singular values", np.linalg.svd, matrices, compute_uv=False)


def eigh(matrices: np.ndarray, triangle: str = "L") -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read."""
    return _iterated("linalg.eigh", "eigenvalues", np.linalg.eigh, matrices, triangle)


def eigvalsh(matrices: np.ndarray, triangle: str = "L") -> np.ndarray:
    """The eigenvalues alone."""
    return _iterated("linalg.eigh", "eigenvalues", np.linalg.eigvalsh, matrices, triangle)


def adjoint_in_place(a: np.ndarray) -> np.ndarray:
    """The conjugate transpose of each matrix as a view of the same memory, which is changed for complex dtypes."""
    if a.dtype.kind == "c":
        np.conjugate(a, out=a)
    return np.swapaxes(a, -1, -2)


def column_major(a: np.ndarray) -> np.ndarray:
    """A copy whose columns are contiguous."""
    if a.ndim == 2:
        return np.array(a, order="F")
    return np.array(np.swapaxes(a, -1, -2), order="C").swapaxes(-1, -2)


def _matrices(columns: np.ndarray) -> np.ndarray:
    """The matrices (count, m, n) in the memory that `lapack.by_columns` returns."""
    return columns.swapaxes(1, 2)


def _one_by_one(name: str, dtype: np.dtype, count: int, size: int, break_even: float) -> bool:
    """Whether to call LAPACK for each matrix of a batch.

    A call takes some 2 µs whatever the size, while NumPy works on all small matrices at once: up to `break_even` matrices for
    each of their rows, or from 16 rows on, the calls are faster.
    """
    return (size >= 16 or count <= break_even * size) and lapack.has(name, dtype)


# ---------------------------------------------------------------- LU


def lu_factor(a: np.ndarray, pivot: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and U in one matrix, the rows exchanged, and the first zero on U's diagonal (0 if none), both counted from 1."""
    batch, rank = a.shape[:-2], min(a.shape[-2:])
    lu = column_major(a)
    columns = lapack.by_columns(lu)
    if pivot and _one_by_one("getrf", a.dtype, len(columns), rank, 16):
        pivots, info = lapack.getrf(columns)
    elif batch:
        pivots, info = unblocked.lu_of_batch(_matrices(columns), pivot)
    else:
        pivots, zero = unblocked.lu_of_matrix(lu, pivot)
        info = np.array(zero, np.int32)
    return lu, pivots.reshape(*batch, rank), info.reshape(batch)


def permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    """The order of rows that a sequence of row exchanges leads to."""
    batch = pivots.shape[:-1]
    exchanges = pivots.reshape(math.prod(batch), pivots.shape[-1])
    if len(exchanges) == 1:
        rows = list(range(size))
        for j, chosen in enumerate(exchanges[0].tolist()):
            rows[j], rows[chosen - 1] = rows[chosen - 1], rows[j]
        return np.array(rows, np.int64).reshape(*batch, size)
    chosen = exchanges.astype(np.int64) - 1
    order = np.tile(np.arange(size), (len(chosen), 1))
    every = np.arange(len(chosen))
    for j in range(chosen.shape[1]):
        row = order[:, j].copy()
        order[:, j] = order[every, chosen[:, j]]
        order[every, chosen[:, j]] = row
    return order.reshape(*batch, size)


def permutation_matrix(pivots: np.ndarray, size: int, dtype: np.dtype) -> np.ndarray:
    """P of A = P L U."""
    p = np.zeros((*pivots.shape[:-1], size, size), dtype)
    np.put_along_axis(p, permutation(pivots, size)[..., None, :], 1, -2)
    return p


def unpack(lu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L with ones on its diagonal, and U."""
    rank = min(lu.shape[-2:])
    lower = np.tril(lu[..., :, :rank], -1)
    lower[..., np.arange(rank), np.arange(rank)] = 1
    return lower, np.triu(lu[..., :rank, :])


def parity(pivots: np.ndarray) -> np.ndarray:
    """+1 for an even number of row exchanges, -1 for an odd one."""
    return 1 - 2 * ((pivots != np.arange(1, pivots.shape[-1] + 1)).sum(-1) % 2)


def lu_solve(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, adjoint_: bool) -> np.ndarray:
    """x of a x = b, or of aᴴ x = b, for a given by its factors."""
    n = lu.shape[-1]
    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    # LAPACK exchanges rows unchecked, so that pivots out of range would write outside of the matrix.
    if _one_by_one("getrs", lu.dtype, math.prod(batch), n, 4) and pivots.size and 1 <= pivots.min() <= pivots.max() <= n:
        x = column_major(np.broadcast_to(b, (*batch, *b.shape[-2:])))
        factors = lapack.column_operand(np.broadcast_to(lu, (*batch, n, n)))
        lapack.getrs(factors, np.broadcast_to(pivots, (*batch, n)), lapack.by_columns(x), adjoint_)
        return x
    order = permutation(pivots, n)
    order = np.broadcast_to(order, (*batch, n))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    if not adjoint_:
        exchanged = np.take_along_axis(b, order[..., None], -2)
        return solve_triangular(lu, solve_triangular(lu, exchanged, False, True), True)
    lu_adjoint = adjoint(lu)
    y = solve_triangular(lu_adjoint, solve_triangular(lu_adjoint, b, False), True, True)
    x = np.empty((*batch, y.shape[-1], n), y.dtype).swapaxes(-1, -2)
    np.put_along_axis(x, np.broadcast_to(order[..., None], y.shape), y, -2)
    return x


# ---------------------------------------------------------------- triangular systems and Cholesky


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool = False, rows: bool = False) -> np.ndarray:
    """x of a x = b; only one triangle of a is read. x is column-major, with `rows` row-major."""
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    sides = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    x = np.array(sides, order="C") if rows else column_major(sides)
    if _one_by_one("trsm", a.dtype, math.prod(batch), n, 0.5) and a.dtype == b.dtype:
        matrices = lapack.operand(np.broadcast_to(a, (*batch, n, n)))
        memory = lapack.by_columns(np.swapaxes(x, -1, -2) if rows else x)
        lapack.trsm(matrices, memory, upper, unitriangular, rows)
    else:
        unblocked.substitute(a, x, upper, unitriangular)
    return x


_LARGE = 128  # rows from which LAPACK in place beats NumPy, which copies each matrix twice


def cholesky(a: np.ndarray, upper: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The lower (upper) factor, and the order of the first leading minor that is not positive (0 if all are)."""
    batch, n = a.shape[:-2], a.shape[-1]
    transposed = np.swapaxes(a, -1, -2)
    if n >= _LARGE and lapack.has("potrf", a.dtype):
        factor = column_major(np.triu(a) if upper else np.tril(a))
        info = lapack.potrf(lapack.by_columns(factor), upper)
        if not info.any():
            return factor, info.reshape(batch)
    else:
        try:
            # NumPy's factors are row-major: the upper one of the transpose, transposed, is the lower one, column-major.
            return np.linalg.cholesky(transposed, upper=not upper).swapaxes(-1, -2), np.zeros(batch, np.int32)
        except np.linalg.LinAlgError:
            pass
    lower = np.tril(transposed if upper else a).reshape(math.prod(batch), n, n)
    info = unblocked.cholesky_of_batch(lower)
    factor = lower.reshape(a.shape)
    return factor.swapaxes(-1, -2) if upper else column_major(factor), info.reshape(batch)


def cholesky_solve(b: np.ndarray, factor: np.ndarray, upper: bool) -> np.ndarray:
    """x of L Lᴴ x = b, or of Uᴴ U x = b."""
    n = factor.shape[-1]
    batch = np.broadcast_shapes(factor.shape[:-2], b.shape[:-2])
    if _one_by_one("potrs", factor.dtype, math.prod(batch), n, 2):
        x = column_major(np.broadcast_to(b, (*batch, *b.shape[-2:])))
        factors = np.broadcast_to(factor, (*batch, n, n))
        operand = lapack.column_operand(factors) if factor.dtype.kind == "c" else lapack.operand(factors)
        lapack.potrs(operand, lapack.by_columns(x), upper)
        return x
    lower = adjoint(factor) if upper else factor
    return solve_triangular(adjoint(lower), solve_triangular(lower, b, False), True)


# ---------------------------------------------------------------- L D Lᵀ


def ldl_factor(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and D in one lower triangle, LAPACK's pivots, and the first zero on D's diagonal (0 if none), counted from 1."""
    hermitian = hermitian and a.dtype.kind == "c"
    ld = column_major(np.tril(a))
    columns = lapack.by_columns(ld)
    if lapack.has("hetrf" if hermitian else "sytrf", a.dtype):
        pivots, info = lapack.sytrf(columns, hermitian)
    else:
        pivots, info = np.empty(columns.shape[:-1], np.int32), np.zeros(len(columns), np.int32)
        for i, matrix in enumerate(_matrices(columns)):
            pivots[i], info[i] = unblocked.ldl_of_matrix(matrix, hermitian)
    return ld, pivots.reshape(a.shape[:-1]), info.reshape(a.shape[:-2])


def ldl_solve(ld: np.ndarray, pivots: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    """x of L D Lᵀ x = b, or of L D Lᴴ x = b."""
    hermitian = hermitian and ld.dtype.kind == "c"
    n = ld.shape[-1]
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    x = column_major(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    columns = lapack.by_columns(x)
    factors, exchanges = np.broadcast_to(ld, (*batch, n, n)), np.broadcast_to(pivots, (*batch, n))
    if lapack.has("hetrs" if hermitian else "sytrs", ld.dtype) and _are_ldl_pivots(pivots):
        lapack.sytrs(lapack.column_operand(factors), exchanges, columns, hermitian)
        return x
    count = len(columns)
    each = zip(factors.reshape(count, n, n), exchanges.reshape(count, n), _matrices(columns), strict=True)
    for matrix, exchanged, solution in each:
        unblocked.ldl_solve_matrix(matrix, exchanged, solution, hermitian)
    return x


def _are_ldl_pivots(pivots: np.ndarray) -> bool:
    """Whether all rows exist and 2 by 2 blocks are whole, from either end: LAPACK follows pivots unchecked, there and back."""
    n = pivots.shape[-1]
    size = np.abs(pivots.astype(np.int64))
    if not pivots.size or size.min() < 1 or size.max() > n:
        return not pivots.size
    for exchanges in pivots.reshape(-1, n).tolist():
        k = 0
        while k < n:
            width = 1 if exchanges[k] > 0 else 2
            if k + width > n or (width == 2 and exchanges[k + 1] > 0):
                return False
            k += width
    return True


# ---------------------------------------------------------------- reflections


def reflected(vectors: np.ndarray, weights: np.ndarray, x: np.ndarray, left: bool, adjoint_: bool) -> np.ndarray:
    """Q x (x Q), or with Qᴴ for Q: the product of the reflections whose vectors stand below the diagonal."""
    if _one_by_one("ormqr", x.dtype, math.prod(x.shape[:-2]), weights.shape[-1], 4):
        result = column_major(x)
        lapack.ormqr(lapack.by_columns(column_major(vectors)), weights, lapack.by_columns(result), left, adjoint_)
        return result
    # x Q is (Qᴴ xᴴ)ᴴ
    result = column_major(x if left else adjoint(x))
    unblocked.reflect(vectors, weights, result, adjoint_ == left)
    return result if left else column_major(adjoint(result))


def reflection_product(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The first columns of Q, as many as there are vectors."""
    m, n = vectors.shape[-2:]
    if _one_by_one("orgqr", vectors.dtype, math.prod(vectors.shape[:-2]), n, 4):
        q = column_major(vectors)
        lapack.orgqr(lapack.by_columns(q), weights)
        return q
    q = column_major(np.broadcast_to(np.eye(m, n, dtype=vectors.dtype), vectors.shape))
    unblocked.reflect(vectors, weights, q, False)
    return q


# ---------------------------------------------------------------- the exponential

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
    result = np.linalg.solve(even - odd, even + odd)
    for step in range(int(halvings.max())):
        result = np.where((step < halvings)[..., None, None], result @ result, result)
    return result.astype(a.dtype)
