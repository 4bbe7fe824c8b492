"""torch.sparse: functions of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core.cpython import without_signals_at_entry
from ._core.keys import SPARSE
from ._core.memory_format import sparse_coo, sparse_csr
from ._core.sparse import CompressedTensor, SparseTensor, make_compressed, make_sparse
from ._core.tensor import Tensor, make_tensor
from ._dispatch.errors import need_tensor
from ._dispatch.registry import aten
from ._lazy_imports import lazy_exports as _lazy_exports
from ._ops.sparse.compressed import invariants, to_coordinates
from ._ops.sparse.coordinates import coalesce, sparse_coo_tensor, to_dense, to_sparse
from ._ops.sparse.kernels import sparse_product

__all__ = [
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_coo_tensor",
    "spdiags",
    "sum",
]


def _of_groups(input: Any, dim: int, log: bool, dtype: Any) -> Any:
    """The softmax over the entries that are there along a sparse dim: what is not stored counts as minus infinity."""
    if not isinstance(input, SparseTensor) or isinstance(input, CompressedTensor):
        raise RuntimeError("sparse softmax needs a sparse COO tensor")
    values: Any = coalesce(input)
    entries = values._entries if dtype is None else values._entries.to(dtype)
    dims = values._coordinates.shape[0]
    dim = dim + values.ndim if dim < 0 else dim
    if dim >= dims:
        result = (aten.log_softmax if log else aten.softmax)(entries, dim - dims + 1)
        return make_sparse(values._coordinates, result, tuple(values.shape), True)
    kept = [d for d in range(dims) if d != dim]
    shape = tuple(values.shape[d] for d in kept) or (1,)
    places = values._coordinates._array[kept] if kept else values._coordinates._array[:1] * 0
    _, group = np.unique(np.ravel_multi_index(tuple(places), shape), return_inverse=True)
    index = make_tensor(group.reshape(-1).astype(np.int64))
    count = int(group.max()) + 1 if len(group) else 0
    tail = tuple(entries.shape[1:])
    most = np.full((count, *tail), -np.inf, entries._array.dtype)
    np.maximum.at(most, index._array, entries.detach()._array)
    shifted = entries - aten.index_select(make_tensor(most), 0, index)
    grown = aten.exp(shifted)
    total = aten.index_add(aten.zeros((count, *tail), dtype=entries.dtype), 0, index, grown)
    spread = aten.index_select(total, 0, index)
    result = shifted - aten.log(spread) if log else grown / spread
    return make_sparse(values._coordinates, result, tuple(values.shape), True)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The softmax of a sparse tensor along a dim, over the entries that are there."""
    return _of_groups(input, dim, False, dtype)  # type: ignore[no-any-return]


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _of_groups(input, dim, True, dtype)  # type: ignore[no-any-return]


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with rows of `diagonals` as its diagonals; element j of a row lands in column j."""
    rows: Any = diagonals if diagonals.ndim == 2 else aten.unsqueeze(diagonals, 0)
    places: Any = offsets if offsets.ndim == 1 else aten.unsqueeze(offsets, 0)
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if rows.shape[0] != places.shape[0]:
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({places.shape[0]})")
    if len(set(places._array.tolist())) != places.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    column = np.arange(rows.shape[1])[None, :].repeat(rows.shape[0], 0)
    row = column - places._array[:, None]
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    which, at = np.nonzero(inside)
    values = aten.index(rows, [make_tensor(which), make_tensor(at)])
    coordinates = make_tensor(np.stack([row[inside], column[inside]]).astype(np.int64))
    made = make_sparse(coordinates, values, tuple(int(n) for n in shape), False)
    return made if layout is None or layout is sparse_coo else to_sparse(made, layout=layout)


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), only where the CSR matrix `input` has entries."""
    if not isinstance(input, CompressedTensor) or input._layout is not sparse_csr:
        raise RuntimeError(f"sampled_addmm: Expected self to be a CSR matrix, got {input.layout}")
    coo = to_coordinates(input)
    rows, columns = aten.unbind(coo._coordinates, 0)
    products = aten.sum(aten.index_select(mat1, 0, rows) * aten.index_select(aten.t(mat2), 0, columns), [1])
    return make_compressed(
        sparse_csr, input._compressed, input._plain, input._entries * beta + products * alpha, tuple(input.shape)
    )


class check_sparse_tensor_invariants:
    """Check what constructors of compressed tensors are given: as a context manager, a decorator, or by `enable()`."""

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether constructors check."""
        return invariants.enabled

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        invariants.enabled = True

    @staticmethod
    def disable() -> None:
        """Do not check from now on."""
        invariants.enabled = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance.")
        self.saved_state, invariants.enabled = invariants.enabled, self.state

    @without_signals_at_entry
    def __exit__(self, *error: object) -> None:
        assert self.saved_state is not None
        invariants.enabled, self.saved_state = self.saved_state, None

    def __call__(self, function: Any) -> Any:
        """The function, run with this state."""

        def run(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return run


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense or sparse one; gradients reach both."""
    need_tensor("_sparse_mm", mat1, "sparse", 1)
    need_tensor("_sparse_mm", mat2, "dense", 2)
    if isinstance(mat1, CompressedTensor) or isinstance(mat2, CompressedTensor):
        return aten.mm(mat1, mat2)
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
        return aten.sum(input._entries, dtype=dtype)  # type: ignore[attr-defined]
    total = aten.sum(to_dense(input), [dim] if isinstance(dim, int) else dim, dtype=dtype)
    return to_sparse(total) if total.ndim else total


_TYPES = tuple(f"{name}Tensor" for name in ("BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"))
__getattr__, __dir__ = _lazy_exports(__name__, names={"mindtorch_v2._sparse_types": _TYPES})  # and names that refuse their use
