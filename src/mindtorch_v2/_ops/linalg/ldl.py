"""Symmetric matrices that need not be positive: the factors L D Lᵀ, and systems solved with them."""

from __future__ import annotations

import numpy as np

from ..._dispatch.registry import aten, composite, op
from .._support.common import normal_dim, scalar_name
from . import _math as la
from ._checks import check_matrices, check_system
from .systems import check_info, linalg_check_errors, named, solved_shape, spd

_INT32 = np.dtype(np.int32)


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
    ld, pivots, info = la.ldl_factor(self, hermitian)
    if check_errors:
        linalg_check_errors.kernel(info, "torch.linalg.ldl_factor_ex", self.ndim == 2)
    return ld, pivots, info


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
    ld, pivots, info = aten.linalg_ldl_factor_ex(self, hermitian=hermitian)
    check_info(info, "torch.linalg.ldl_factor", self)
    return named(linalg_ldl_factor, ld, pivots)


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
    return la.ldl_solve(LD, pivots, B, hermitian)
