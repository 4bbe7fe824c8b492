"""Symmetric matrices that need not be positive: the factors L D Lᵀ, and systems solved with them."""

from __future__ import annotations

import math

import numpy as np

from ..._dispatch.registry import aten, composite, op
from .._support.common import normal_dim, scalar_name
from . import _math as la
from ._checks import check_matrices, check_system
from .systems import check_info, linalg_check_errors, named, solved_shape, spd

_INT32 = np.dtype(np.int32)
# With this limit, by Bunch and Kaufman, entries grow alike whether one or two columns are taken out at a time.
_GROWTH = (1 + math.sqrt(17)) / 8


def _factor(a, hermitian):
    """L and D of one matrix, in place in its lower triangle; the rows exchanged, and the first column that is all 0.

    As LAPACK has it: a number k > 0 stands for a 1 by 1 block of D whose row was exchanged with row k, twice a number -k for a
    2 by 2 block whose second row was. Exchanges are not carried out in the columns already done.
    """
    n = a.shape[0]
    pivots, info, k = np.empty(n, np.int32), 0, 0
    turned = np.conjugate if hermitian and a.dtype.kind == "c" else np.asarray
    while k < n:
        if hermitian:
            a[k, k] = a[k, k].real
        largest, beside, chosen, width = la.magnitude(a[k, k]), 0.0, k, 1
        below = la.magnitude(a[k + 1 :, k])
        if below.size:
            row = k + 1 + int(below.argmax())
            beside = below[row - k - 1]
        if not max(largest, beside) > 0:
            info = info or k + 1
        elif largest < _GROWTH * beside:
            widest = max(la.magnitude(a[row, k:row]).max(), la.magnitude(a[row + 1 :, row]).max(initial=0))
            if largest < _GROWTH * beside * (beside / widest):
                diagonal = a[row, row].real if hermitian else a[row, row]
                chosen, width = row, 1 if la.magnitude(diagonal) >= _GROWTH * widest else 2
        last = k + width - 1
        if chosen != last:
            _exchange(a, k, last, chosen, turned)
        if max(largest, beside) > 0:
            _take_out(a, k, width, turned)
        pivots[k : k + width] = chosen + 1 if width == 1 else -chosen - 1
        k += width
    return pivots, info


def _exchange(a, k, i, j, turned):
    """Rows and columns i < j of what is left from k on, of which only the lower triangle is kept."""
    a[[i, j], [i, j]] = a[[j, i], [j, i]]
    a[j + 1 :, [i, j]] = a[j + 1 :, [j, i]]
    between = turned(a[i + 1 : j, i].copy())
    a[i + 1 : j, i] = turned(a[j, i + 1 : j])
    a[j, i + 1 : j] = between
    a[j, i] = turned(a[j, i])
    if i > k:
        a[[i, j], k] = a[[j, i], k]


def _block(a, k, width, turned):
    """The block of D at k, whole."""
    if width == 1:
        return a[k : k + 1, k : k + 1]
    return np.array([[a[k, k], turned(a[k + 1, k])], [a[k + 1, k], a[k + 1, k + 1]]])


def _take_out(a, k, width, turned):
    rest = a[k + width :, k : k + width]
    if not rest.size:
        return
    factors = np.linalg.solve(_block(a, k, width, turned).T, rest.T).T if width == 2 else rest / a[k, k]
    a[k + width :, k + width :] -= np.tril(factors @ turned(rest).T)
    a[k + width :, k : k + width] = factors


def _blocks(pivots):
    """The blocks of D from the top: (first row, how many rows, the row that its last one was exchanged with)."""
    k = 0
    while k < len(pivots):
        width = 1 if pivots[k] > 0 else 2
        yield k, width, abs(int(pivots[k])) - 1
        k += width


def _solve(a, pivots, x, hermitian):
    """One system, in place in x."""
    turned = np.conjugate if hermitian and a.dtype.kind == "c" else np.asarray
    blocks = list(_blocks(pivots))
    for k, width, other in blocks:
        last, end = k + width - 1, k + width
        x[[last, other]] = x[[other, last]]
        x[end:] -= a[end:, k:end] @ x[k:end]
        x[k:end] = np.linalg.solve(_block(a, k, width, turned), x[k:end]) if width == 2 else x[k:end] / a[k, k]
    for k, width, other in reversed(blocks):
        last, end = k + width - 1, k + width
        x[k:end] -= turned(a[end:, k:end]).T @ x[end:]
        x[[last, other]] = x[[other, last]]


def _flat(array, dims):
    """An array with its batch dims joined into one, sharing memory where column-major matrices allow it."""
    batch = math.prod(array.shape[:-dims])
    if dims == 1:
        return array.reshape(batch, array.shape[-1])
    m, n = array.shape[-2:]
    return array.swapaxes(-1, -2).reshape(batch, n, m).swapaxes(1, 2)


def _ldl_shapes(self, hermitian=False, check_errors=False):
    shape = self._array.shape
    return [(shape, self._array.dtype), (shape[:-1], _INT32), (shape[:-2], _INT32)]


@op(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    shape=_ldl_shapes,
    samples=lambda make: [(spd(make),), (make(2, 4, 4), {"hermitian": True})],
)
def linalg_ldl_factor_ex(self, hermitian, check_errors):
    """The packed factors L D L^T, the pivots, and where it failed instead of an error.

    >>> torch.linalg.ldl_factor_ex(torch.tensor([[2.0]]))
    torch.return_types.linalg_ldl_factor_ex(
    LD=tensor([[2.]]),
    pivots=tensor([1], dtype=torch.int32),
    info=tensor(0, dtype=torch.int32))
    """
    check_matrices(self, "torch.linalg.ldl_factor_ex", square=True, kernel="ldl_factor_kernel_cpu")
    made = la.column_major(np.tril(self))
    pivots, info = np.empty(self.shape[:-1], np.int32), np.zeros(self.shape[:-2], np.int32)
    lists, failures = _flat(pivots, 1), info.reshape(-1)
    for i, matrix in enumerate(_flat(made, 2)):
        lists[i], failures[i] = _factor(matrix, hermitian)
    if check_errors:
        linalg_check_errors.kernel(info, "torch.linalg.ldl_factor_ex", self.ndim == 2)
    return made, pivots, info


@composite(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    nondiff=True,
    samples=lambda make: [(spd(make),)],
    out=True,
)
def linalg_ldl_factor(self, hermitian):
    """The packed factors L D L^T of Hermitian matrices, and the pivots.

    >>> torch.linalg.ldl_factor(torch.tensor([[2.0]]))
    torch.return_types.linalg_ldl_factor(
    LD=tensor([[2.]]),
    pivots=tensor([1], dtype=torch.int32))
    """
    made = aten.linalg_ldl_factor_ex(self, hermitian=hermitian)
    check_info(made[2], "torch.linalg.ldl_factor", self)
    return named(linalg_ldl_factor, made[0], made[1])


@op(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    shape=lambda LD, pivots, B, hermitian: solved_shape(LD, B),
    samples=lambda make: [
        (*aten.linalg_ldl_factor(spd(make)), make(3, 2)),
        (*aten.linalg_ldl_factor(make(2, 3, 3), hermitian=True), make(3, 2), {"hermitian": True}),
    ],
)
def linalg_ldl_solve(LD, pivots, B, hermitian):
    """Solves a system whose matrix is given by its LDL factors.

    >>> torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.tensor([[2.0]])), torch.tensor([[8.0]]))
    tensor([[4.]])
    """
    name = "torch.linalg.ldl_solve"
    check_matrices(LD, name, square=True, kernel="ldl_solve_kernel_cpu")
    normal_dim(-2, B.ndim)
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots)}")
    check_system(B, LD, name)
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    x = la.column_major(np.broadcast_to(B, (*batch, *B.shape[-2:])))
    factors = _flat(np.broadcast_to(LD, (*batch, *LD.shape[-2:])), 2)
    lists = _flat(np.broadcast_to(pivots, (*batch, pivots.shape[-1])), 1)
    for matrix, exchanged, solution in zip(factors, lists, _flat(x, 2), strict=True):
        _solve(matrix, exchanged, solution, hermitian)
    return x
