"""torch.linalg: linear algebra under NumPy's names."""

from __future__ import annotations

from . import _ops  # noqa: F401  declares the ops
from ._dispatch.registry import packets
from ._ops.linalg._math import LinAlgError

_NAMES = (
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
)

__all__ = ["LinAlgError", *_NAMES]

globals().update({name: packets["linalg_" + name].function for name in _NAMES})
