"""torch.sparse: functions of sparse tensors."""

from __future__ import annotations

from typing import Any

from ._core.keys import SPARSE
from ._core.tensor import Tensor
from ._dispatch.errors import need_tensor
from ._dispatch.registry import aten
from ._ops.sparse import sparse_coo_tensor, sparse_product, to_dense, to_sparse

__all__ = ["addmm", "mm", "sparse_coo_tensor", "sum"]


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense or sparse one; gradients reach both."""
    need_tensor("_sparse_mm", mat1, "sparse", 1)
    need_tensor("_sparse_mm", mat2, "dense", 2)
    if not mat1._keys & SPARSE:
        return aten.mm(mat1, to_dense(mat2)) if not mat2._keys & SPARSE else aten.mm(mat1, mat2)
    if mat2._keys & SPARSE:
        return to_sparse(sparse_product(mat1, to_dense(mat2)))
    return sparse_product(mat1, mat2)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2)."""
    need_tensor("_sparse_addmm", mat)
    return mat * beta + mm(mat1, mat2) * alpha  # type: ignore[operator, no-any-return]


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or over some dims, where the result is sparse if any dim is left."""
    need_tensor("_sparse_sum", input)
    if dim is None:
        return aten.sum(input._values(), dtype=dtype)  # type: ignore[attr-defined]
    total = aten.sum(to_dense(input), [dim] if isinstance(dim, int) else dim, dtype=dtype)
    return to_sparse(total) if total.ndim else total
