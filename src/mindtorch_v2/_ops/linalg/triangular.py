"""Triangular systems; Cholesky factors, and systems solved with them."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.registry import aten, composite, op
from . import _math as la
from ._checks import check_kernel, check_matrices, check_right_side, check_square_matrices, check_system
from .systems import check_info, linalg_check_errors, regular, solved_shape, spd, system_grad

_INT32 = np.dtype(np.int32)

# ---------------------------------------------------------------- triangular systems


@op(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    shape=lambda self, B, upper, left, unitriangular: solved_shape(self, B),
    samples=lambda make: [
        (regular(make), make(3, 2), {"upper": True}),
        (regular(make), make(2, 3), {"upper": False, "left": False}),
        (regular(make), make(2, 3, 2), {"upper": False, "unitriangular": True}),
    ],
)
def linalg_solve_triangular(self, B, upper, left, unitriangular):
    """The solution of A @ X = B for triangular A.

    >>> torch.linalg.solve_triangular(torch.tensor([[2.0]]), torch.tensor([[8.0]]), upper=True)
    tensor([[4.]])
    """
    check_square_matrices(self, "linalg.solve_triangular")
    check_kernel(self, "triangular_solve_cpu")
    check_right_side(self, B.shape, left, "linalg.solve_triangular")
    if left:
        return la.solve_triangular(self, B, upper, unitriangular)
    return la.adjoint_in_place(la.solve_triangular(la.adjoint(self), la.adjoint(B), not upper, unitriangular, rows=True))


def _triangle(t, upper, unitriangular):
    return aten.triu(t, int(unitriangular)) if upper else aten.tril(t, -int(unitriangular))


@linalg_solve_triangular.vjp
def _(g, self, upper, left, unitriangular, result, needs):
    grad_b = aten.linalg_solve_triangular(aten.mH(self), g, upper=not upper, left=left, unitriangular=unitriangular)
    if not needs[0]:
        return None, grad_b
    return _triangle(system_grad(grad_b, result, left, False), upper, unitriangular), grad_b


def _check_old_system(b, a, name, words, kernel):
    """Checks of the functions older than torch.linalg; `words` makes the message for too few dims."""
    for array, argument in ((b, "b"), (a, "A")):
        if array.ndim < 2:
            raise RuntimeError(words(argument, array.ndim))
    check_system(b, a, name)
    check_kernel(a, kernel)


def _both_shapes(self, A, upper, transpose, unitriangular):
    shape, dtype = solved_shape(A, self)
    return [(shape, dtype), ((*shape[:-2], *A._array.shape[-2:]), dtype)]


@op(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
    "-> (Tensor solution, Tensor cloned_coefficient)",
    shape=_both_shapes,
    takes_all_grads=True,
    samples=lambda make: [
        (make(3, 2), regular(make)),
        (make(3, 2), regular(make), False, True),
        (make(2, 3, 2), regular(make), True, False, True),
    ],
    autocast=Autocast.FLOAT32,
    out_overload="X",
)
def triangular_solve(self, A, upper, transpose, unitriangular):
    """Solves triangular systems; `linalg.solve_triangular` is to be preferred.

    >>> torch.triangular_solve(torch.tensor([[8.0]]), torch.tensor([[2.0]])).solution
    tensor([[4.]])
    """
    _check_old_system(
        self,
        A,
        "triangular_solve",
        lambda argument, ndim: (
            f"torch.triangular_solve: Expected {argument} to have at least 2 dimensions, but it has {ndim} dimensions instead"
        ),
        "triangular_solve_cpu",
    )
    coefficients = np.swapaxes(A, -1, -2) if transpose else A
    solution = la.solve_triangular(coefficients, self, upper != transpose, unitriangular)
    return solution, la.column_major(np.broadcast_to(A, (*solution.shape[:-2], *A.shape[-2:])))


@triangular_solve.vjp
def _(grads, A, upper, transpose, unitriangular, result0, needs):
    grad_solution, grad_clone = grads
    if grad_solution is None:
        return None, grad_clone
    coefficients = aten.mT(A) if transpose else A
    above = upper != transpose
    grad_b = aten.linalg_solve_triangular(aten.mH(coefficients), grad_solution, upper=not above, unitriangular=unitriangular)
    if not needs[1]:
        return grad_b, None
    grad_a = _triangle(system_grad(grad_b, result0, True, False), above, unitriangular)
    grad_a = aten.mT(grad_a) if transpose else grad_a
    return grad_b, grad_a if grad_clone is None else grad_a + grad_clone


# ---------------------------------------------------------------- Cholesky


@op(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    shape=lambda self, upper, check_errors: [(self._array.shape, self._array.dtype), (self._array.shape[:-2], _INT32)],
    samples=lambda make: [(spd(make),), (spd(make), {"upper": True})],
    autocast=Autocast.FLOAT32,
    batching=Batching.LAST_DIMS,
    out_overload="L",
)
def linalg_cholesky_ex(self, upper, check_errors):
    """The Cholesky factor, and where it failed instead of an error.

    >>> torch.linalg.cholesky_ex(torch.tensor([[4.0]]))
    torch.return_types.linalg_cholesky_ex(
    L=tensor([[2.]]),
    info=tensor(0, dtype=torch.int32))
    """
    check_matrices(self, "linalg.cholesky", square=True, kernel="cholesky_cpu")
    factor, info = la.cholesky(self, upper)
    if check_errors:
        linalg_check_errors.kernel(info, "linalg.cholesky_ex", self.ndim == 2)
    return factor, info


def _cholesky_grad(g, factor, upper):
    if upper:
        factor, g = aten.mH(factor), aten.mH(g)
    phi = aten.matmul(aten.mH(factor), g)
    lower = aten.tril(phi)
    symmetric = (lower + aten.mH(aten.tril(phi, -1))) * 0.5
    half = aten.linalg_solve_triangular(aten.mH(factor), symmetric, upper=True)
    return aten.linalg_solve_triangular(factor, half, upper=False, left=False)


def _cholesky_tangent(t, factor, upper):
    """The tangent of the factor; that of A is read as Hermitian, from its lower triangle."""
    lower = aten.mH(factor) if upper else factor
    inner = aten.linalg_solve_triangular(lower, t, upper=False)
    inner = aten.linalg_solve_triangular(aten.mH(lower), inner, upper=True, left=False)
    tangent = aten.matmul(lower, (aten.tril(inner) + aten.tril(inner, -1)) * 0.5)
    return aten.mH(tangent) if upper else tangent


linalg_cholesky_ex.vjp(self=lambda g, upper, result0: _cholesky_grad(g, result0, upper))
linalg_cholesky_ex.jvp(self=lambda t, upper, result0: _cholesky_tangent(t, result0, upper))


@composite(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    samples=lambda make: [(spd(make),)],
    autocast=Autocast.FLOAT32,
    out=True,
)
def linalg_cholesky(self, upper):
    """The Cholesky factor L of a positive definite matrix, A = L @ L.mH.

    >>> torch.linalg.cholesky(torch.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    factor, info = aten.linalg_cholesky_ex(self, upper=upper)
    check_info(info, "linalg.cholesky", self)
    return factor


@op(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    shape=lambda self, upper: (self._array.shape, self._array.dtype),
    samples=lambda make: [(spd(make),)],
    autocast=Autocast.FLOAT32,
)
def cholesky(self, upper):
    """The Cholesky factor of a positive definite matrix; `linalg.cholesky` is to be preferred.

    >>> torch.cholesky(torch.tensor([[4.0]]))
    tensor([[2.]])
    """
    check_square_matrices(self, "cholesky")
    check_kernel(self, "cholesky_cpu")
    factor, info = la.cholesky(self, upper)
    linalg_check_errors.kernel(info, "cholesky", self.ndim == 2)
    return factor


cholesky.vjp(self=lambda g, upper, result: _cholesky_grad(g, result, upper))
cholesky.jvp(self=lambda t, upper, result: _cholesky_tangent(t, result, upper))


@op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    shape=lambda self, input2, upper: solved_shape(input2, self),
    samples=lambda make: [
        (make(3, 2), aten.tril(spd(make))),
        (make(3, 2), aten.triu(spd(make)), True),
        (make(2, 3, 2), aten.tril(spd(make))),
    ],
    autocast=Autocast.FLOAT32,
)
def cholesky_solve(self, input2, upper):
    """Solves a system whose matrix is given by its Cholesky factor.

    >>> torch.cholesky_solve(torch.tensor([[8.0]]), torch.tensor([[2.0]]))
    tensor([[2.]])
    """
    _check_old_system(
        self,
        input2,
        "cholesky_solve",
        lambda argument, ndim: (
            f"{'u' if argument == 'A' else 'b'} should have at least 2 dimensions, but has {ndim} dimensions instead"
        ),
        "cholesky_solve_cpu",
    )
    return la.cholesky_solve(self, input2, upper)


def _factor_grad(grad_a, factor, upper):
    """The gradient of the factor from that of A = L Lᴴ (Uᴴ U). As in torch, it is not 0 in the other triangle."""
    both = grad_a + aten.mH(grad_a)
    return aten.matmul(aten.triu(factor), both) if upper else aten.matmul(both, aten.tril(factor))


def _cholesky_solve_factor_grad(g, input2, upper, result):
    return _factor_grad(system_grad(aten.cholesky_solve(g, input2, upper), result, True, False), input2, upper)


cholesky_solve.vjp(self=lambda g, input2, upper: aten.cholesky_solve(g, input2, upper), input2=_cholesky_solve_factor_grad)


@op(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    shape=lambda self, upper: (self._array.shape, self._array.dtype),
    samples=lambda make: [(aten.tril(spd(make)),), (aten.triu(spd(make)), True)],
    autocast=Autocast.FLOAT32,
)
def cholesky_inverse(self, upper):
    """The inverse of a matrix from its Cholesky factor.

    >>> torch.cholesky_inverse(torch.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    check_square_matrices(self, "cholesky_inverse")
    check_kernel(self, "cholesky_inverse_out_cpu")
    return la.cholesky_solve(np.eye(self.shape[-1], dtype=self.dtype), self, upper)


def _cholesky_inverse_grad(g, self, upper, result):
    adjoint = aten.mH(result)
    return _factor_grad(-aten.matmul(adjoint, aten.matmul(g, adjoint)), self, upper)


def _cholesky_inverse_tangent(t, self, upper, result):
    lower, tangent = [aten.mH(aten.triu(each)) if upper else aten.tril(each) for each in (self, t)]
    half = aten.matmul(aten.matmul(result, tangent), aten.mH(aten.matmul(result, lower)))
    return -(half + aten.mH(half))


cholesky_inverse.vjp(self=_cholesky_inverse_grad)
cholesky_inverse.jvp(self=_cholesky_inverse_tangent)
