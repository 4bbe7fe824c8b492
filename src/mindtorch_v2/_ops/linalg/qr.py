"""QR factors, and the reflections that Q is a product of."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, like_first, no_derivative, scalar_name
from ..pointwise.arithmetic import conj
from . import _math as la
from ._checks import check_kernel, check_matrices
from .systems import named


def _qr_shapes(A, mode="reduced"):
    *batch, m, n = A._array.shape
    rank = min(m, n)
    q = (0,) if mode == "r" else (*batch, m, rank if mode == "reduced" else m)
    return [(q, A._array.dtype), ((*batch, m if mode == "complete" else rank, n), A._array.dtype)]


@op(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    shape=_qr_shapes,
    takes_all_grads=True,
    samples=lambda make: [(make(4, 3),), (make(3, 3),), (make(2, 3, 4),)],
    autocast=Autocast.FLOAT32,
    batching=Batching.LAST_DIMS,
)
def linalg_qr(A, mode):
    """The factors Q and R of matrices, A = Q @ R with orthonormal Q.

    >>> torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]])).R.abs()
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
    check_matrices(A, "linalg.qr", kernel="geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return np.empty(0, A.dtype), la.column_major(np.linalg.qr(A, "r"))
    q, r = np.linalg.qr(A, mode)
    return la.column_major(q), la.column_major(r)


@linalg_qr.vjp
def _(grads, mode, result0, result1):
    q, r = result0, result1
    grad_q, grad_r = grads
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to require gradients."
        )
    m, n = q._array.shape[-2], r._array.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if m >= n:
        return (_qr_grad(grad_q, grad_r, q, r),)
    # A wide matrix is a square one and the columns beyond it, which Q turns into R's.
    square, beyond = aten.narrow(r, -1, 0, m), aten.narrow(r, -1, m, n - m)
    if grad_r is None:
        return (aten.cat([_qr_grad(grad_q, None, q, square), aten.zeros_like(beyond)], -1),)
    grad_beyond = aten.narrow(grad_r, -1, m, n - m)
    through = aten.matmul(aten.matmul(q, beyond), aten.mH(grad_beyond))
    grad_q = through if grad_q is None else grad_q + through
    first = _qr_grad(grad_q, aten.narrow(grad_r, -1, 0, m), q, square)
    return (aten.cat([first, aten.matmul(q, grad_beyond)], -1),)


def _qr_grad(grad_q, grad_r, q, r):
    inner = None
    if grad_r is not None:
        inner = aten.matmul(grad_r, aten.mH(r))
    if grad_q is not None:
        part = aten.matmul(aten.mH(q), grad_q)
        inner = -part if inner is None else inner - part
    upper = aten.triu(inner, 1)
    symmetric = upper + aten.mH(upper)
    diagonal = aten.diagonal(inner, 0, -2, -1)
    if q._array.dtype.kind == "c":
        diagonal = aten.to(aten.real(diagonal), dtype=inner.dtype)
    grad = aten.matmul(q, symmetric + aten.diag_embed(diagonal))
    if grad_q is not None:
        grad = grad_q + grad
    return aten.linalg_solve_triangular(aten.mH(r), grad, upper=False, left=False)


@composite(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    samples=lambda make: [(make(4, 3),)],
    autocast=Autocast.FLOAT32,
    out=True,
    out_overload="Q",
)
def qr(self, some):
    """The factors Q and R of matrices; `linalg.qr` is to be preferred.

    >>> torch.ops.aten.qr(torch.eye(2))[1].abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return named(qr, *aten.linalg_qr(self, "reduced" if some else "complete"))


# ---------------------------------------------------------------- reflections


def _check_two_dims(array, name, argument="input"):
    if array.ndim < 2:
        raise RuntimeError(f"torch.{name}: {argument} must have at least 2 dimensions.")


def _check_fits(array, input, name, argument):
    """RuntimeError unless a tensor has the batch dims of `input`; tau has a vector where `input` has a matrix."""
    ndim = array.ndim + (argument == "tau")
    if ndim != input.ndim:
        wanted = "one dimension less than" if argument == "tau" else "the same number of dimensions as"
        raise RuntimeError(
            f"torch.{name}: Expected {argument} to have {wanted} input, but got {argument}.ndim equal to "
            f"{array.ndim} and input.ndim is equal to {input.ndim}"
        )
    batch = array.shape[: input.ndim - 2]
    if batch != input.shape[:-2]:
        raise RuntimeError(
            f"torch.{name}: Expected batch dimensions of {argument} to be equal to input.shape[:-2], but got {list(batch)}"
        )


@op(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    samples=lambda make: [(make.constant(4, 3),)],
    shape=lambda self: [like_first(self), ((*self._array.shape[:-2], min(self._array.shape[-2:])), self._array.dtype)],
    autocast=Autocast.FLOAT32,
    out_overload="a",
)
def geqrf(self):
    """The QR factors in LAPACK's packed form.

    >>> torch.geqrf(torch.eye(2))[1].shape
    torch.Size([2])
    """
    _check_two_dims(self, "geqrf")
    check_kernel(self, "geqrf_cpu")
    reflections, weights = np.linalg.qr(self, "raw")
    return la.column_major(np.swapaxes(reflections, -1, -2)), weights


geqrf.vjp(self=no_derivative("geqrf"))


def _reflections_grad(g, vectors, weights, x, adjoint):
    """The gradients of the reflections' vectors and weights in Q x (Qᴴ x): one reflection after the other, backwards."""
    if not weights._array.size or not vectors._array.size:
        return None, None
    *batch, m, n = vectors._array.shape
    count = weights._array.shape[-1]
    whole = aten.tril(vectors, -1) + aten.eye(m, n, dtype=vectors.dtype, device=home_of(vectors))
    order = list(range(count) if adjoint else reversed(range(count)))
    steps = []
    for i in order:
        v = aten.narrow(whole, -1, i, 1)
        weight = aten.unsqueeze(aten.narrow(weights, -1, i, 1), -1)
        weight = conj(weight) if adjoint else weight
        along = aten.matmul(aten.mH(v), x)
        steps.append((v, weight, x, along))
        x = x - weight * aten.matmul(v, along)
    columns, tau = [None] * count, [None] * count
    for i, (v, weight, x, along) in zip(reversed(order), reversed(steps), strict=True):
        back = aten.matmul(aten.mH(v), g)
        columns[i] = -(conj(weight) * aten.matmul(g, aten.mH(along)) + weight * aten.matmul(x, aten.mH(back)))
        part = -aten.matmul(back, aten.mH(along))
        tau[i] = aten.squeeze(conj(part) if adjoint else part, -1)
        g = g - conj(weight) * aten.matmul(v, back)
    if n > count:
        columns.append(aten.new_zeros(vectors, (*batch, m, n - count)))
    return aten.tril(aten.cat(columns, -1), -1), aten.cat(tau, -1)


@op(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(4, 3), make(3)), (make(2, 3, 3), make(2, 2))],
    autocast=Autocast.FLOAT32,
)
def linalg_householder_product(input, tau):
    """The product of Householder reflections, in LAPACK's packed form.

    >>> torch.linalg.householder_product(torch.zeros(2, 2), torch.zeros(2)).abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    name = "linalg.householder_product"
    _check_two_dims(input, name)
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(f"torch.{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < tau.shape[-1]:
        raise RuntimeError(f"torch.{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_fits(tau, input, name, "tau")
    if tau.dtype != input.dtype:
        raise RuntimeError(f"torch.{name}: tau dtype {scalar_name(tau)} does not match input dtype {scalar_name(input)}")
    check_kernel(input, "orgqr_cpu")
    return la.reflection_product(input, tau)


@linalg_householder_product.vjp
def _(g, input, tau):
    first = aten.expand(aten.eye(*input._array.shape[-2:], dtype=input.dtype, device=home_of(input)), input._array.shape)
    return _reflections_grad(g, input, tau, first, False)


composite(
    "orgqr(Tensor self, Tensor input2) -> Tensor",
    lambda self, input2: aten.linalg_householder_product(self, input2),
    samples=lambda make: [(make(4, 3), make(3))],
    autocast=Autocast.FLOAT32,
    out=True,
    doc="""The product of Householder reflections, as `linalg.householder_product`.

    >>> torch.orgqr(torch.zeros(2, 2), torch.zeros(2)).abs()
    tensor([[1., 0.],
            [0., 1.]])
    """,
)


@op(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    shape=lambda self, input2, input3, left, transpose: like_first(input3),
    samples=lambda make: [
        (make(4, 3), make(3), make(4, 2)),
        (make(4, 3), make(3), make(2, 4), False, True),
        (make(2, 3, 5), make(2, 3), make(2, 3, 2), True, True),
        (make(3, 3), make(3), make(2, 3), False),
    ],
    autocast=Autocast.FLOAT32,
    doc="""A matrix times a product of Householder reflections.

    >>> torch.ormqr(torch.zeros(2, 2), torch.zeros(2), torch.tensor([[1.0], [2.0]]))
    tensor([[1.],
            [2.]])
    """,
)
def ormqr(self, input2, input3, left, transpose):
    """The product of a matrix with the whole of Q, given by its reflections."""
    _check_two_dims(self, "ormqr")
    _check_two_dims(input3, "ormqr", "other")
    side = -2 if left else -1
    if input2.shape[-1] != min(input3.shape[side], self.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if input3.shape[side] != self.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    _check_fits(input2, self, "ormqr", "tau")
    _check_fits(input3, self, "ormqr", "other")
    for array, argument in ((input2, "tau"), (input3, "other")):
        if array.dtype != self.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {argument} to have the same dtype, but input has dtype"
                f"{scalar_name(self)} and {argument} has dtype {scalar_name(array)}"
            )
    check_kernel(self, "ormqr_cpu")
    return la.reflected(self, input2, input3, left, transpose)


@ormqr.vjp
def _(g, self, input2, input3, left, transpose, needs):
    grad_other = aten.ormqr(self, input2, g, left, not transpose) if needs[2] else None
    if not needs[0] and not needs[1]:
        return None, None, grad_other
    if not left:  # x Q is (Qᴴ xᴴ)ᴴ
        g, input3, transpose = aten.mH(g), aten.mH(input3), not transpose
    return *_reflections_grad(g, self, input2, input3, transpose), grad_other
