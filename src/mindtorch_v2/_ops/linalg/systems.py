"""Linear systems: LU factors and what is solved with them, inverses."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import META
from ..._core.tensor import Tensor
from ..._core.threads import threads
from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.registry import aten, composite, op
from ..._dispatch.result_types import result_type_of
from .._support.common import scalar_name
from . import _math as la
from ._checks import check_kernel, check_matrices, check_right_side, check_same_dtype, check_two_dims

_INT32 = np.dtype(np.int32)

# ---------------------------------------------------------------- failures

_FAILURES = {
    "inv": "The diagonal element {n} is zero, the inversion could not be completed because the input matrix is singular.",
    "solve": "The solver failed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite (the leading "
    "minor of order {n} is not positive-definite).",
    "lu_factor": "U[{n},{n}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
    "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
}


@op("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", nondiff=True, samples=lambda make: [])
def linalg_check_errors(info, api_name, is_matrix):
    if info.dtype != np.int32:
        raise RuntimeError(f"{api_name}: infos.scalar_type() == kInt, but got {scalar_name(info)}")
    if not info.any():
        return
    where = "" if is_matrix else f"(Batch element {int(np.flatnonzero(info)[0])}): "
    n = int(info.reshape(-1)[np.flatnonzero(info)[0]])
    kind = next((k for k in _FAILURES if api_name.endswith((k, k + "_ex"))), None)
    reason = f"failed with error code {n}." if kind is None else _FAILURES[kind].format(n=n)
    raise (RuntimeError if kind == "lu_factor" else la.LinAlgError)(f"{api_name}: {where}{reason}")


def check_info(info, name, matrix):
    if info._keys & META:
        return  # nothing was computed, so nothing can have failed
    aten._linalg_check_errors(info, name, is_matrix=matrix._array.ndim == 2)


def named(op, *results):
    """The results of a composite op as a tuple with the names of its schema."""
    return result_type_of(op)(*results)


def spd(make, n=3):
    """A sample that is symmetric, positive and well conditioned, whatever its entries."""
    a = make(n, n)
    return aten.matmul(a, aten.mT(a)) + aten.eye(n, dtype=a.dtype)


def regular(make, *batch, n=3):
    """A sample that has an inverse."""
    a = make(*batch, n, n)
    return a + 2 * aten.eye(n, dtype=a.dtype)


# ---------------------------------------------------------------- LU factors


def lu_shapes(A, pivot=True, check_errors=False):
    shape = A._array.shape
    return [(shape, A._array.dtype), ((*shape[:-2], min(shape[-2:])), _INT32), (shape[:-2], _INT32)]


@op(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    shape=lu_shapes,
    samples=lambda make: [(make(3, 3),), (make(2, 4, 3),), (make(3, 4),)],
)
def linalg_lu_factor_ex(A, pivot, check_errors):
    """The packed factors L and U, the pivots, and where it failed instead of an error.

    >>> torch.linalg.lu_factor_ex(torch.tensor([[2.0]]))
    torch.return_types.linalg_lu_factor_ex(
    LU=tensor([[2.]]),
    pivots=tensor([1], dtype=torch.int32),
    info=tensor(0, dtype=torch.int32))
    """
    check_two_dims(A, "torch.lu_factor")
    check_kernel(A, "lu_cpu")
    lu, pivots, info = la.lu_factor(A, pivot)
    if check_errors:
        linalg_check_errors.kernel(info, "torch.linalg.lu_factor_ex", A.ndim == 2)
    return lu, pivots, info


def lu_grad(grad_l, grad_u, p, l, u):
    """The gradient through A = P L U; either part may be missing."""
    m, n, rank = l._array.shape[-2], u._array.shape[-1], u._array.shape[-2]
    if m == n:
        phi = _square_lu_grad(grad_l, grad_u, l, u)
        return aten.matmul(p, phi)
    if m > n:  # the rows below: L2 = A2 / U
        top, below = aten.narrow(l, -2, 0, rank), aten.narrow(l, -2, rank, m - rank)
        grad_below = None
        if grad_l is not None:
            grad_below = aten.linalg_solve_triangular(
                aten.mH(u), aten.narrow(grad_l, -2, rank, m - rank), upper=False, left=False
            )
            through = aten.matmul(aten.mH(below), grad_below)
            grad_u = -through if grad_u is None else grad_u - through
            grad_l = aten.narrow(grad_l, -2, 0, rank)
        else:
            grad_below = aten.zeros_like(below)
        return aten.matmul(p, aten.cat([_square_lu_grad(grad_l, grad_u, top, u), grad_below], -2))
    left, right = aten.narrow(u, -1, 0, rank), aten.narrow(u, -1, rank, n - rank)  # the columns beyond: U2 = A2 \ L
    if grad_u is not None:
        grad_right = aten.linalg_solve_triangular(aten.mH(l), aten.narrow(grad_u, -1, rank, n - rank), upper=True)
        through = aten.matmul(grad_right, aten.mH(right))
        grad_l = -through if grad_l is None else grad_l - through
        grad_u = aten.narrow(grad_u, -1, 0, rank)
    else:
        grad_right = aten.zeros_like(right)
    return aten.matmul(p, aten.cat([_square_lu_grad(grad_l, grad_u, l, left), grad_right], -1))


def _square_lu_grad(grad_l, grad_u, l, u):
    phi = None
    if grad_l is not None:
        phi = aten.tril(aten.matmul(aten.mH(l), grad_l), -1)
    if grad_u is not None:
        part = aten.triu(aten.matmul(grad_u, aten.mH(u)))
        phi = part if phi is None else phi + part
    half = aten.linalg_solve_triangular(aten.mH(u), phi, upper=False, left=False)
    return aten.linalg_solve_triangular(aten.mH(l), half, upper=True, unitriangular=True)


@linalg_lu_factor_ex.vjp
def _(g, result0, result1):
    p, l, u = aten.lu_unpack(result0, result1)
    rank = min(result0._array.shape[-2:])
    grad_l, grad_u = aten.narrow(g, -1, 0, rank), aten.narrow(g, -2, 0, rank)
    return (lu_grad(aten.tril(grad_l, -1), aten.triu(grad_u), p, l, u),)


@composite(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    samples=lambda make: [(make(3, 3),)],
    out=True,
)
def linalg_lu_factor(A, pivot):
    """The packed factors L and U of matrices, and the pivots.

    >>> torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 3.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    lu, pivots, info = aten.linalg_lu_factor_ex(A, pivot=pivot)
    check_info(info, "torch.linalg.lu_factor", A)
    return named(linalg_lu_factor, lu, pivots)


@composite(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    samples=lambda make: [(make(3, 3),)],
    autocast=Autocast.FLOAT32,
)
def lu_with_info(self, pivot, check_errors):
    """The op of torch.lu. As in torch, `check_errors` has no effect: a singular matrix is reported in `info` alone."""
    return named(lu_with_info, *aten.linalg_lu_factor_ex(self, pivot=pivot))


def _plu_shapes(A, pivot=True):
    *batch, m, n = A._array.shape
    rank = min(m, n)
    return [((*batch, m, m), A._array.dtype), ((*batch, m, rank), A._array.dtype), ((*batch, rank, n), A._array.dtype)]


@op(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    shape=_plu_shapes,
    takes_all_grads=True,
    samples=lambda make: [(make(3, 3),), (make(4, 3),), (make(2, 3, 4),)],
)
def linalg_lu(A, pivot):
    """The factors P, L and U of matrices, A = P @ L @ U.

    >>> torch.linalg.lu(torch.tensor([[2.0, 1.0], [4.0, 3.0]])).U
    tensor([[ 4.0000,  3.0000],
            [ 0.0000, -0.5000]])
    """
    check_two_dims(A, "linalg.lu")
    check_kernel(A, "lu_cpu")
    lu, pivots, _ = la.lu_factor(A, pivot)
    return la.permutation_matrix(pivots, A.shape[-2], A.dtype), *la.unpack(lu)


@linalg_lu.not_differentiable("result0").vjp
def _(grads, result0, result1, result2):
    _, grad_l, grad_u = grads
    if grad_l is None and grad_u is None:
        return (None,)
    return (lu_grad(grad_l, grad_u, result0, result1, result2),)


def _unpack_shapes(LU_data, LU_pivots, unpack_data, unpack_pivots):
    p, l, u = _plu_shapes(LU_data)
    empty = ((0,), LU_data._array.dtype)
    return [p if unpack_pivots else empty, l if unpack_data else empty, u if unpack_data else empty]


@op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    shape=_unpack_shapes,
    takes_all_grads=True,
    samples=lambda make: [(make(3, 3), (make.ints(1, 3) + 3).to(dt.int32))],
)
def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    """The factors P, L and U of a packed LU factorization.

    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 3.0]]))).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    check_two_dims(LU_data, "torch.lu_unpack")
    if unpack_pivots and LU_pivots.dtype != np.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    rank = min(LU_data.shape[-2:])
    if unpack_pivots and (LU_pivots.shape[-1] != rank or ((LU_pivots < 1) | (LU_pivots > LU_data.shape[-2])).any()):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
    empty = np.empty(0, LU_data.dtype)
    p = la.permutation_matrix(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else empty
    return p, *(la.unpack(LU_data) if unpack_data else (empty, empty.copy()))


@lu_unpack.not_differentiable("result0").vjp
def _(grads, LU_data_shape):
    _, grad_l, grad_u = grads
    m, n = LU_data_shape[-2:]
    total = None
    if grad_l is not None:
        part = aten.tril(grad_l, -1)
        if m < n:
            part = aten.cat([part, aten.new_zeros(part, (*part._array.shape[:-1], n - m))], -1)
        total = part
    if grad_u is not None:
        part = aten.triu(grad_u)
        if m > n:
            part = aten.cat([part, aten.new_zeros(part, (*part._array.shape[:-2], m - n, n))], -2)
        total = part if total is None else total + part
    return total, None


# ---------------------------------------------------------------- solving with factors


def from_left(solver, b, left, flag):
    """x a = b is aᴴ xᴴ = bᴴ: a solver for the left also serves the right, with the opposite `flag`."""
    return solver(b, flag) if left else la.adjoint_in_place(solver(la.adjoint(b), not flag))


def solved_shape(a, b):
    batch = np.broadcast_shapes(a._array.shape[:-2], b._array.shape[:-2])
    return (*batch, *b._array.shape[-2:]), b._array.dtype


def _factored(make):
    lu, pivots = aten.linalg_lu_factor(regular(make))
    return lu, pivots


@op(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    shape=lambda LU, pivots, B, left, adjoint: solved_shape(LU, B),
    samples=lambda make: [
        (*_factored(make), make(3, 2)),
        (*_factored(make), make(2, 3), {"left": False}),
        (*_factored(make), make(3, 2), {"adjoint": True}),
        (*_factored(make), make(2, 3), {"left": False, "adjoint": True}),
    ],
)
def linalg_lu_solve(LU, pivots, B, left, adjoint):
    """Solves a system whose matrix is given by its LU factors.

    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.tensor([[2.0]])), torch.tensor([[8.0]]))
    tensor([[4.]])
    """
    check_matrices(LU, "torch.linalg.lu_solve", square=True, kernel="lu_cpu")
    check_same_dtype(LU, B, "linalg.lu_solve", "LU")
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_right_side(LU, B.shape, left, "linalg.lu_solve")
    if LU.shape[-1:] != pivots.shape[-1:]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if LU.shape[:-1] != pivots.shape:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots.shape)} instead"
        )
    if (pivots > LU.shape[-1]).any():
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass "
            "the result of lu_factor?"
        )
    return from_left(lambda b, flag: la.lu_solve(LU, pivots, b, flag), B, left, adjoint)


def system_grad(grad_b, x, left, adjoint):
    """The gradient of a in a x = b (x a = b; with aᴴ for a): the gradient of b, times x."""
    if left:
        return -aten.matmul(x, aten.mH(grad_b)) if adjoint else -aten.matmul(grad_b, aten.mH(x))
    return -aten.matmul(aten.mH(grad_b), x) if adjoint else -aten.matmul(aten.mH(x), grad_b)


def _lu_solve_grad(g, LU, pivots, left, adjoint, result):
    grad_b = aten.linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    grad_a = system_grad(grad_b, result, left, adjoint)
    p, l, u = aten.lu_unpack(LU, pivots)
    exchanged = aten.matmul(aten.mT(p), grad_a)
    return aten.tril(aten.matmul(exchanged, aten.mH(u)), -1) + aten.triu(aten.matmul(aten.mH(l), exchanged))


linalg_lu_solve.vjp(
    LU=_lu_solve_grad,
    B=lambda g, LU, pivots, left, adjoint: aten.linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint),
)

composite(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    lambda self, LU_data, LU_pivots: aten.linalg_lu_solve(LU_data, LU_pivots, self),
    samples=lambda make: [(make(3, 2), *_factored(make))],
    autocast=Autocast.FLOAT32,
    out=True,
    doc="""Solves a system whose matrix is given by its LU factors.

    >>> torch.lu_solve(torch.tensor([[8.0]]), *torch.linalg.lu_factor(torch.tensor([[2.0]])))
    tensor([[4.]])
    """,
)


# ---------------------------------------------------------------- systems


def _is_vector(a, b):
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def _check_system(a, b, left):
    """RuntimeError unless a and b form a system a x = b (x a = b); a vector is a column."""
    check_matrices(a, "linalg.solve", square=True, kernel="lu_cpu")
    check_same_dtype(a, b, "linalg.solve")
    check_right_side(a, (*b.shape, 1) if _is_vector(a, b) else b.shape, left, "linalg.solve")


def _solve_shapes(A, B, left, check_errors):
    a, b = A._array, B._array
    _check_system(a, b, left)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-1]), b.shape[-1]) if _is_vector(a, b) else solved_shape(A, B)[0]
    lu, pivots, info = lu_shapes(A)
    return [(shape, b.dtype), lu, pivots, info]


@op(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    shape=_solve_shapes,
    node="LinalgSolveExBackward0",
    samples=lambda make: [
        (regular(make), make(3, 2)),
        (regular(make), make(3)),
        (regular(make), make(2, 3), {"left": False}),
        (regular(make, 2), make(2, 3, 1)),
    ],
)
def linalg_solve_kernel(A, B, left, check_errors):
    _check_system(A, B, left)
    vector = _is_vector(A, B)
    rows = B[..., None] if vector else B
    lu, pivots, info = la.lu_factor(A)
    x = from_left(lambda b, flag: la.lu_solve(lu, pivots, b, flag), rows, left or vector, False)
    if vector:
        # The layout of many solution vectors is that of a matrix, as in torch.
        x = la.column_major(x[..., 0]) if B.ndim > 1 else x[..., 0]
    return x, lu, pivots, info


@linalg_solve_kernel.not_differentiable("result1").vjp
def _(g, A, B, left, result0, result1, result2, needs):
    vector = _is_vector(A._array, B._array)
    if vector:
        g, x, left = aten.unsqueeze(g, -1), aten.unsqueeze(result0, -1), True
    else:
        x = result0
    # The factors are not differentiable: a second derivative starts from A itself.
    grad_b = (
        aten.linalg_solve(aten.mH(A), g, left=left)
        if threads.state.grad_enabled
        else aten.linalg_lu_solve(result1, result2, g, left=left, adjoint=True)
    )
    grad_a = system_grad(grad_b, x, left, False) if needs[0] else None
    return grad_a, aten.squeeze(grad_b, -1) if vector else grad_b


@composite(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    samples=lambda make: [(regular(make), make(3, 2))],
    out=True,
)
def linalg_solve_ex(A, B, left, check_errors):
    """The solution of A @ X = B, and where it failed instead of an error.

    >>> torch.linalg.solve_ex(torch.tensor([[2.0]]), torch.tensor([[8.0]]))
    torch.return_types.linalg_solve_ex(
    result=tensor([[4.]]),
    info=tensor(0, dtype=torch.int32))
    """
    x, _, _, info = aten._linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    if check_errors:
        check_info(info, "torch.linalg.solve_ex", A)
    return named(linalg_solve_ex, x, info)


@composite(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    samples=lambda make: [(regular(make), make(3, 2)), (regular(make), make(3))],
    autocast=Autocast.FLOAT32,
    out=True,
)
def linalg_solve(A, B, left):
    """The solution X of A @ X = B for invertible A.

    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 8.0]))
    tensor([1., 2.])
    """
    x, info = aten.linalg_solve_ex(A, B, left=left)
    check_info(info, "torch.linalg.solve", A)
    return x


# ---------------------------------------------------------------- inverses


@op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    shape=lambda A, check_errors: [(A._array.shape, A._array.dtype), (A._array.shape[:-2], _INT32)],
    samples=lambda make: [(regular(make),), (regular(make, 2),)],
    autocast=Autocast.FLOAT32,
    batching=Batching.LAST_DIMS,
    out_overload="inverse",
)
def linalg_inv_ex(A, check_errors):
    """The inverse, and where it failed instead of an error.

    >>> torch.linalg.inv_ex(torch.tensor([[2.0]]))
    torch.return_types.linalg_inv_ex(
    inverse=tensor([[0.5000]]),
    info=tensor(0, dtype=torch.int32))
    """
    check_matrices(A, "linalg.inv", square=True)
    try:
        return la.column_major(np.linalg.inv(A)), np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        lu, pivots, info = la.lu_factor(A)
    if check_errors:
        linalg_check_errors.kernel(info, "linalg.inv_ex", A.ndim == 2)
    return la.lu_solve(lu, pivots, np.eye(A.shape[-1], dtype=A.dtype), False), info


def _inv_grad(g, result):
    adjoint = aten.mH(result)
    return -aten.matmul(aten.mH(result), aten.matmul(g, adjoint))


linalg_inv_ex.vjp(A=lambda g, result0: _inv_grad(g, result0))


@composite("linalg_inv(Tensor A) -> Tensor", samples=lambda make: [(regular(make),)], autocast=Autocast.FLOAT32, out=True)
def linalg_inv(A):
    """The inverse of square matrices; singular ones raise.

    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse, info = aten.linalg_inv_ex(A)
    check_info(info, "linalg.inv", A)
    return inverse


composite(
    "inverse(Tensor self) -> Tensor",
    lambda self: aten.linalg_inv(self),
    samples=lambda make: [(regular(make),)],
    autocast=Autocast.FLOAT32,
    out=True,
    doc="""The inverse of square matrices.

    >>> torch.inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """,
)

# ---------------------------------------------------------------- as they were called before torch.linalg


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Sequence[Tensor] | None = None) -> Any:
    """LU factors in one matrix and the rows exchanged; with `get_infos` also where U has its first 0, counted from 1."""
    factors = aten._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    result = factors if get_infos else (factors.LU, factors.pivots)
    if out is None:
        return result
    if len(out) != len(result):
        raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
    if not isinstance(out, tuple | list):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    for target, part in zip(out, result, strict=True):
        aten.copy_(aten.resize_as_(target, part), part)
    return out


def _lu_method(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Tensor.lu, which returns a plain tuple where torch.lu returns a named one."""
    return tuple(lu(self, pivot, get_infos))


FUNCTIONS = {"lu": lu}
METHODS = {"lu": _lu_method}
