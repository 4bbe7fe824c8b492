"""Determinants, by way of LU factors."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.threads import threads
from ..._dispatch.facts import Batching
from ..._dispatch.registry import aten, composite, op
from ..pointwise.arithmetic import conj
from . import _math as la
from ._checks import check_matrices
from .systems import lu_shapes, named, regular


@op(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    node="LinalgDetBackward0",
    shape=lambda A: [(A._array.shape[:-2], A._array.dtype), *lu_shapes(A)[:2]],
    samples=lambda make: [(make(3, 3),), (make(2, 3, 3),)],
    batching=Batching.LAST_DIMS,
)
def linalg_det_kernel(A):
    check_matrices(A, "linalg.det", square=True, kernel="lu_cpu")
    lu, pivots, _ = la.lu_factor(A)
    signed = np.multiply.reduce(np.diagonal(lu, 0, -2, -1), -1) * la.parity(pivots)
    return np.asarray(signed).astype(A.dtype, copy=False), lu, pivots


def _on_diagonal(t, size):
    """For each number of a batch, that multiple of the identity matrix."""
    return aten.diag_embed(aten.expand(aten.unsqueeze(t, -1), (*t._array.shape, size)))


def _det_grad(g, A, result0, result1, result2):
    wanted = _on_diagonal(g * conj(result0), A._array.shape[-1])
    if threads.state.grad_enabled:
        return aten.linalg_solve(aten.mH(A), wanted)
    # A zero on U's diagonal is moved by the least there is, so that nothing is divided by 0.
    least = float(np.finfo(A._array.dtype).eps)
    moved = aten.where(aten.diagonal(result1, 0, -2, -1) == 0, least, 0.0)
    factors = result1 + aten.to(aten.diag_embed(moved), dtype=result1.dtype)
    return aten.linalg_lu_solve(factors, result2, wanted, adjoint=True)


linalg_det_kernel.not_differentiable("result1").vjp(A=_det_grad)

composite(
    "linalg_det(Tensor A) -> Tensor",
    lambda A: aten._linalg_det(A)[0],
    samples=lambda make: [(make(3, 3),)],
    out=True,
    doc="""The determinant of square matrices.

    >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [1.0, 4.0]]))
    tensor(8.)
    """,
)
composite(
    "det(Tensor self) -> Tensor",
    lambda self: aten.linalg_det(self),
    samples=lambda make: [(make(3, 3),)],
    doc="""The determinant of square matrices.

    >>> torch.det(torch.tensor([[2.0, 0.0], [1.0, 4.0]]))
    tensor(8.)
    """,
)


def _slogdet_shapes(A):
    batch = A._array.shape[:-2]
    return [(batch, A._array.dtype), (batch, dt.from_numpy(A._array.dtype).to_real().np), *lu_shapes(A)[:2]]


@op(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    node="LinalgSlogdetBackward0",
    takes_all_grads=True,
    differentiable_results=2,
    shape=_slogdet_shapes,
    samples=lambda make: [(make(3, 3),), (make(2, 3, 3),)],
    batching=Batching.LAST_DIMS,
)
def linalg_slogdet_kernel(A):
    check_matrices(A, "linalg.slogdet", square=True, kernel="lu_cpu")
    lu, pivots, _ = la.lu_factor(A)
    diagonal = np.diagonal(lu, 0, -2, -1)
    sign = np.multiply.reduce(np.sign(diagonal), -1) * la.parity(pivots)
    size = np.add.reduce(np.log(np.abs(diagonal)), -1)
    return np.asarray(sign).astype(A.dtype, copy=False), np.asarray(size), lu, pivots


@linalg_slogdet_kernel.not_differentiable("result2").vjp
def _(grads, A, result0, result2, result3):
    grad_sign, grad_size = grads[:2]
    total = grad_size
    if A._array.dtype.kind == "c" and grad_sign is not None:  # the sign of a real determinant does not move
        rotation = aten.imag(conj(grad_sign) * result0) * -1j
        total = rotation if total is None else total + rotation
    if total is None:
        return (None,)
    total = aten.to(total, dtype=A.dtype)
    wanted = _on_diagonal(total, A._array.shape[-1])
    if threads.state.grad_enabled:
        return (aten.linalg_solve(aten.mH(A), wanted),)
    return (aten.linalg_lu_solve(result2, result3, wanted, adjoint=True),)


@composite("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", samples=lambda make: [(make(3, 3),)], out=True)
def linalg_slogdet(A):
    """The sign and the logarithm of the absolute value of a determinant.

    >>> torch.linalg.slogdet(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    torch.return_types.linalg_slogdet(
    sign=tensor(1.),
    logabsdet=tensor(1.7918))
    """
    return named(linalg_slogdet, *aten._linalg_slogdet(A)[:2])


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", samples=lambda make: [(make(3, 3),)], out=True)
def slogdet(self):
    """The sign and the logarithm of the absolute value of a determinant.

    >>> torch.slogdet(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    torch.return_types.slogdet(
    sign=tensor(1.),
    logabsdet=tensor(1.7918))
    """
    return named(slogdet, *aten.linalg_slogdet(self))


@composite("logdet(Tensor self) -> Tensor", samples=lambda make: [(regular(make),)])
def logdet(self):
    """The logarithm of the determinant; nan where it is negative.

    >>> torch.logdet(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(1.7918)
    """
    check_matrices(self._array, "logdet", square=True, kernel="lu_cpu")
    sign, size = aten.linalg_slogdet(self)
    if self._array.dtype.kind == "c":
        return aten.log(sign) + size
    return aten.where(sign == -1.0, math.nan, size)
