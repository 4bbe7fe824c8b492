"""Matrix products, split into blocks that threads share.

BLAS has threads of its own, but the sums of a product on two of them differ in their last bits from those on one, and for some
milliseconds after a product they keep a core busy by waiting for the next. So BLAS computes on the calling thread alone, and
large products are split here: into few blocks, because BLAS lays the operand that blocks share out anew for each.
"""

from __future__ import annotations

import math

import numpy as np

from ..._core import parallel
from ..._core.blas import get_num_threads, one_blas_thread

# Multiply-adds up to which BLAS uses no threads of its own: of two matrices, and of a matrix and a vector.
_FEW = 1 << 18
_FEW_OF_VECTOR = 1 << 13
# Multiply-adds from which on a product of two matrices is split, and how many blocks it then has.
_MANY = 1 << 24
_BLOCKS = ((1 << 31, 8), (1 << 27, 4), (_MANY, 2))
# From so many products of a batch on each is a block of its own, unless it is large.
_FEWEST_WHOLE = 4
_LARGE = 1 << 27
# Blocks have a multiple of so many rows or columns, as the inner loops of BLAS do.
_UNIT = 32
# Up to so many rows a product with a transposed matrix is computed transposed and copied. With AVX-512 that takes half the time
# for 16 rows, 0.7 for 32 and 0.9 for 64; with AVX2 0.9 for 16 rows and the same for 64.
_FEW_ROWS = 64


def dot(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of two matrices of one dtype, as a new array; ValueError if their sizes do not match."""
    rows, columns = left.shape[0], right.shape[1]
    if _is_small(left.size * columns, rows, columns) or left.dtype.char not in "fdFD":
        return left.dot(right)
    return _fill(np.empty((rows, columns), left.dtype), left, right)


def _is_small(work: int, rows: int, columns: int) -> bool:
    """Whether BLAS uses no threads for a product of so many multiply-adds."""
    return work <= _FEW_OF_VECTOR or (work <= _FEW and rows > 1 and columns > 1)


def dot_with_vector(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of two arrays of one dtype, of which at least one is a vector."""
    if max(left.size, right.size) <= _FEW_OF_VECTOR or get_num_threads() == 1:
        return left.dot(right)
    with one_blas_thread():
        return left.dot(right)


def matmul(left: np.ndarray, right: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The products of two batches of matrices of one dtype, in `out` or a new array; batches broadcast."""
    rows, columns = left.shape[-2], right.shape[-1]
    if _is_small(max(left.size * columns, rows * right.size), rows, columns) or left.dtype.char not in "fdFD":
        return np.matmul(left, right, out)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    if out is None:
        out = np.empty((*batch, rows, columns), left.dtype)
    work = rows * left.shape[-1] * columns * math.prod(batch[1:])
    if not batch:
        return _fill(out, left, right)
    left, right = (np.broadcast_to(side, (*batch, *side.shape[-2:])) for side in (left, right))
    if work >= (_MANY if batch[0] < _FEWEST_WHOLE else _LARGE):
        for number in range(batch[0]):
            matmul(left[number], right[number], out[number])
    else:
        step = max(1, _MANY // 2 // max(work, 1))
        parallel.blocks(batch[0], step, lambda part: np.matmul(left[part], right[part], out[part]))
    return out


def _fill(out: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Write the product of two matrices to `out`, and return that."""
    left, right = _for_blas(left), _for_blas(right)
    rows, columns = out.shape
    if 1 < rows <= _FEW_ROWS and columns > rows and right.strides[0] == right.itemsize and right.shape[1] > 1:
        out[...] = _fill(np.empty((columns, rows), out.dtype), right.T, left.T).T
        return out
    length = max(rows, columns)
    count = next((count for least, count in _BLOCKS if left.size * columns >= least), 1)
    step = -(-length // (count * _UNIT)) * _UNIT
    if columns >= rows:
        parallel.blocks(length, step, lambda part: np.matmul(left, right[:, part], out[:, part]))
    else:
        parallel.blocks(length, step, lambda part: np.matmul(left[part], right, out[part]))
    return out


def _for_blas(matrix: np.ndarray) -> np.ndarray:
    """The matrix, or a copy of one whose rows or columns do not lie in memory as BLAS wants them."""
    item = matrix.itemsize
    for (long, short), length in ((matrix.strides, matrix.shape[1]), (matrix.strides[::-1], matrix.shape[0])):
        if short == item and long >= length * item and not long % item:
            return matrix
    return np.ascontiguousarray(matrix)
