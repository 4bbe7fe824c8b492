"""Routines of BLAS and LAPACK, called on batches of matrices, from the OpenBLAS library inside NumPy.

A matrix that a routine writes is handed over as memory: a batch of column-major matrices of shape (m, n) is a C-contiguous
array of shape (count, n, m). A matrix that is only read is an `Operand`, which needs no copy where rows or columns are
contiguous. Functions here have the names of their routines, and need `has(name, dtype)`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..._core.blas import openblas

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}  # LAPACK's letters of the four dtypes, by NumPy's
# How many strings each routine takes, which come first, and how many pointers after them.
_ARGUMENTS = {
    "getrf": (0, 6),
    "getrs": (1, 8),
    "trsm": (4, 7),
    "potrf": (1, 4),
    "potrs": (1, 7),
    "sytrf": (1, 7),
    "hetrf": (1, 7),
    "sytrs": (1, 8),
    "hetrs": (1, 8),
    "orgqr": (0, 9),
    "ormqr": (2, 11),
}
_UNITARY = {"orgqr": "ungqr", "ormqr": "unmqr"}  # what complex dtypes have instead
_BLOCK = 64  # columns per block that workspaces are sized for
_BLOCK_REFLECTOR = 65 * 64  # what ormqr keeps besides: the triangular factor of a block of reflections


# ---------------------------------------------------------------- routines


@cache
def _integer() -> Any:
    library = openblas()
    return ctypes.c_int64 if library is None else library.integer()


@cache
def _find(name: str, dtype: np.dtype) -> Callable[..., None] | None:
    library = openblas()
    letter = _LETTERS.get(dtype.char)
    if library is None or letter is None or not dtype.isnative:
        return None
    function = library.routine(letter + (_UNITARY.get(name, name) if dtype.kind == "c" else name))
    if function is None:
        return None
    strings, pointers = _ARGUMENTS[name]
    # Fortran takes all arguments by address, and the lengths of strings after the others.
    function.argtypes = [ctypes.c_void_p] * (strings + pointers) + [ctypes.c_size_t] * strings
    function.restype = None
    return function


@cache
def _passes_self_test(dtype: np.dtype) -> bool:
    """Whether a small system is solved as it should, which shows that names, integers and strings are as expected."""
    if any(_find(name, dtype) is None for name in ("getrf", "getrs", "trsm")):
        return False
    a = np.array([[1, 2], [4, 2]], dtype)  # the first step of LU has to exchange the rows
    columns = np.array([a.T])
    x, y = np.array([[[5, 8]]], dtype), np.array([[[5, 4]]], dtype)
    pivots, info = getrf(columns)
    getrs(operand(columns.swapaxes(1, 2)), pivots, x, adjoint=False)
    trsm(operand(a[None]), y, upper=True, unitriangular=False)
    return bool((pivots == 2).all() and not info.any() and np.allclose(x, [1, 2]) and np.allclose(y, [1, 2]))


def has(name: str, dtype: np.dtype) -> bool:
    """Whether the library has a routine for a dtype, and passes a self-test with that dtype."""
    return _find(name, dtype) is not None and _passes_self_test(dtype)


# ---------------------------------------------------------------- arguments


def _addresses(array: np.ndarray, dims: int) -> Sequence[int]:
    """Where the matrices (dims = 2), vectors (1) or numbers (0) of a batch start."""
    start = array.__array_interface__["data"][0]
    batch, strides = array.shape[: array.ndim - dims], array.strides[: array.ndim - dims]
    if len(batch) == 1 and strides[0] > 0:
        return range(start, start + batch[0] * strides[0], strides[0])
    offsets: Any = np.zeros((), np.intp)
    for size, stride in zip(batch, strides, strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * stride)
    return (offsets + start).reshape(-1).tolist()


class Operand(NamedTuple):
    """A batch of matrices to read: where they start, the distance of their columns, and the array that owns the memory.

    Rows that are contiguous are the columns of the transpose; `transposed` says that this is what the routine will read.
    """

    addresses: Sequence[int]
    leading: int
    transposed: bool
    array: np.ndarray


def operand(a: np.ndarray) -> Operand:
    """Matrices as an operand, copied where neither their columns nor their rows are contiguous."""
    for transposed in (False, True):
        view = a.swapaxes(-1, -2) if transposed else a
        leading = _leading(view)
        if leading:
            return Operand(_addresses(view, 2), leading, transposed, view)
    copy = np.array(a.swapaxes(-1, -2), order="C").swapaxes(-1, -2)
    return Operand(_addresses(copy, 2), max(a.shape[-2], 1), False, copy)


def column_operand(a: np.ndarray) -> Operand:
    """As `operand`, for routines that cannot read a transpose."""
    view = operand(a)
    return operand(np.array(a.swapaxes(-1, -2), order="C").swapaxes(-1, -2)) if view.transposed else view


def _leading(a: np.ndarray) -> int:
    """The distance of columns in elements, 0 for matrices that are not column-major."""
    (m, n), (down, across), size = a.shape[-2:], a.strides[-2:], a.itemsize
    if not a.flags.aligned or (m > 1 and down != size):
        return 0
    if n <= 1:
        return max(m, 1)
    return across // size if across % size == 0 and across >= size * max(m, 1) else 0


def _int(value: int) -> Any:
    return ctypes.byref(_integer()(value))


def _integers(*shape: int) -> np.ndarray:
    return np.zeros(shape, _integer())


def _workspace(size: int, dtype: np.dtype) -> tuple[np.ndarray, int, Any]:
    """Scratch memory, its address and its size; the caller holds on to the first."""
    work = np.empty(max(size, 1), dtype)
    return work, work.__array_interface__["data"][0], _int(work.size)


# ---------------------------------------------------------------- LU


def getrf(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace matrices by their LU factors; the rows exchanged, and the first zero on U's diagonal, both counted from 1."""
    count, n, m = columns.shape
    pivots, info = _integers(count, min(m, n)), _integers(count)
    if columns.size:
        function: Any = _find("getrf", columns.dtype)
        rows, cols = _int(m), _int(n)
        for a, pivot, failure in zip(_addresses(columns, 2), _addresses(pivots, 1), _addresses(info, 0), strict=True):
            function(rows, cols, a, rows, pivot, failure)
    return pivots.astype(np.int32), info.astype(np.int32)


def getrs(lu: Operand, pivots: np.ndarray, x: np.ndarray, adjoint: bool) -> None:
    """Replace right-hand sides by solutions. `lu` is a `column_operand`, and each pivot lies between 1 and n."""
    _, width, n = x.shape
    if not x.size:
        return
    function: Any = _find("getrs", x.dtype)
    order = np.ascontiguousarray(pivots, _integer())
    trans = b"C" if adjoint else b"N"
    size, sides, leading, failure = _int(n), _int(width), _int(lu.leading), _int(0)
    for a, pivot, b in zip(lu.addresses, _addresses(order, 1), _addresses(x, 2), strict=True):
        function(trans, size, sides, a, leading, pivot, b, size, failure, 1)


# ---------------------------------------------------------------- triangular systems and Cholesky


def trsm(a: Operand, x: np.ndarray, upper: bool, unitriangular: bool, rows: bool = False) -> None:
    """Replace right-hand sides b of a x = b by solutions; with `rows` the memory is that of row-major matrices."""
    _, width, height = x.shape
    if not x.size:
        return
    function: Any = _find("trsm", x.dtype)
    # Row-major memory holds the transposes, and xᵀ aᵀ = bᵀ.
    side = b"R" if rows else b"L"
    uplo = b"U" if upper != a.transposed else b"L"
    trans = b"T" if rows != a.transposed else b"N"
    diagonal = b"U" if unitriangular else b"N"
    one = np.ones(1, x.dtype)
    factor = one.__array_interface__["data"][0]
    m, n, leading = _int(height), _int(width), _int(a.leading)
    for matrix, b in zip(a.addresses, _addresses(x, 2), strict=True):
        function(side, uplo, trans, diagonal, m, n, factor, matrix, leading, b, m, 1, 1, 1, 1)


def potrf(columns: np.ndarray, upper: bool) -> np.ndarray:
    """Replace one triangle by the Cholesky factor; the order of the first leading minor that is not positive, 0 if all are."""
    count, n, _ = columns.shape
    info = _integers(count)
    if columns.size:
        function: Any = _find("potrf", columns.dtype)
        uplo, size = b"U" if upper else b"L", _int(n)
        for a, failure in zip(_addresses(columns, 2), _addresses(info, 0), strict=True):
            function(uplo, size, a, size, failure, 1)
    return info.astype(np.int32)


def potrs(factor: Operand, x: np.ndarray, upper: bool) -> None:
    """Replace right-hand sides by solutions, for Cholesky factors; of complex ones a `column_operand`."""
    _, width, n = x.shape
    if not x.size:
        return
    function: Any = _find("potrs", x.dtype)
    uplo = b"U" if upper != factor.transposed else b"L"
    size, sides, leading, failure = _int(n), _int(width), _int(factor.leading), _int(0)
    for a, b in zip(factor.addresses, _addresses(x, 2), strict=True):
        function(uplo, size, sides, a, leading, b, size, failure, 1)


# ---------------------------------------------------------------- L D Lᵀ


def sytrf(columns: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray]:
    """Replace lower triangles by L and D; the rows exchanged, and the first zero on D's diagonal, both counted from 1."""
    count, n, _ = columns.shape
    pivots, info = _integers(count, n), _integers(count)
    if columns.size:
        function: Any = _find("hetrf" if hermitian else "sytrf", columns.dtype)
        _work, work, length = _workspace(n * _BLOCK, columns.dtype)
        size = _int(n)
        for a, pivot, failure in zip(_addresses(columns, 2), _addresses(pivots, 1), _addresses(info, 0), strict=True):
            function(b"L", size, a, size, pivot, work, length, failure, 1)
    return pivots.astype(np.int32), info.astype(np.int32)


def sytrs(factors: Operand, pivots: np.ndarray, x: np.ndarray, hermitian: bool) -> None:
    """Replace right-hand sides by solutions. `factors` are a `column_operand`, and pivots as `sytrf` returns them."""
    _, width, n = x.shape
    if not x.size:
        return
    function: Any = _find("hetrs" if hermitian else "sytrs", x.dtype)
    order = np.ascontiguousarray(pivots, _integer())
    size, sides, leading, failure = _int(n), _int(width), _int(factors.leading), _int(0)
    for a, pivot, b in zip(factors.addresses, _addresses(order, 1), _addresses(x, 2), strict=True):
        function(b"L", size, sides, a, leading, pivot, b, size, failure, 1)


# ---------------------------------------------------------------- reflections


def orgqr(columns: np.ndarray, weights: np.ndarray) -> None:
    """Replace the vectors of reflections by the first columns of their product Q."""
    _, n, m = columns.shape
    if not columns.size:
        return
    function: Any = _find("orgqr", columns.dtype)
    tau = np.ascontiguousarray(weights)
    _work, work, length = _workspace(n * _BLOCK, columns.dtype)
    rows, cols, reflections, failure = _int(m), _int(n), _int(tau.shape[-1]), _int(0)
    for a, weight in zip(_addresses(columns, 2), _addresses(tau, 1), strict=True):
        function(rows, cols, reflections, a, rows, weight, work, length, failure)


def ormqr(columns: np.ndarray, weights: np.ndarray, x: np.ndarray, left: bool, adjoint: bool) -> None:
    """Replace x by Q x or x Q, with `adjoint` by Qᴴ x or x Qᴴ. The vectors of reflections are changed meanwhile."""
    _, n, m = x.shape
    if not x.size or not columns.size:
        return
    function: Any = _find("ormqr", x.dtype)
    tau = np.ascontiguousarray(weights)
    _work, work, length = _workspace((n if left else m) * _BLOCK + _BLOCK_REFLECTOR, x.dtype)
    side = b"L" if left else b"R"
    trans = (b"C" if x.dtype.kind == "c" else b"T") if adjoint else b"N"
    rows, cols, reflections, leading = _int(m), _int(n), _int(tau.shape[-1]), _int(columns.shape[-1])
    failure = _int(0)
    for a, weight, c in zip(_addresses(columns, 2), _addresses(tau, 1), _addresses(x, 2), strict=True):
        function(side, trans, rows, cols, reflections, a, leading, weight, c, rows, work, length, failure, 1, 1)


def by_columns(a: np.ndarray) -> np.ndarray:
    """The memory of column-major matrices as (count, n, m), batch dimensions joined: a view of a `column_major` copy."""
    m, n = a.shape[-2:]
    return a.swapaxes(-1, -2).reshape(math.prod(a.shape[:-2]), n, m)
