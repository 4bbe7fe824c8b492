"""What sparse tensors have as objects: text, conversions, gradients, copies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from ..._core import dtype as dt
from ..._core.keys import SPARSE
from ..._core.sparse import CompressedTensor, SparseTensor, make_compressed, make_sparse, with_entries
from .compressed import show, shown_dtype, shown_part


def _sparse_repr(self: SparseTensor, **options: Any) -> str:
    if isinstance(self, CompressedTensor):
        return show(self)
    suffix = ", ".join([f"size={tuple(self.shape)}", f"nnz={self._entries.shape[0]}", *shown_dtype(self._entries)])
    return (
        f"tensor({shown_part('indices', self._coordinates)},\n       {shown_part('values', self._entries)},\n"
        f"       {suffix}, layout=torch.sparse_coo)"
    )


def _sparse_to(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
    """`to` of a sparse tensor: the values are converted, the coordinates stay."""
    entries = self._entries.to(*args, **kwargs)
    return self if entries is self._entries else with_entries(self, entries)  # type: ignore[no-any-return]


def _sparse_requires_grad_(self: SparseTensor, requires_grad: bool = True) -> SparseTensor:
    """`requires_grad_` of a sparse tensor: its values are what gradients flow to."""
    if not self._entries.is_leaf:
        self._entries.requires_grad_(requires_grad)  # which refuses what torch refuses
    else:
        self._entries = self._entries.detach().requires_grad_(requires_grad)
    return self


def _get_sparse_grad(self: SparseTensor) -> Any:
    """The gradient: as it was set, or that of the values at their places."""
    if self._grad is not None:
        return self._grad
    grad = self._entries.grad if self._entries.is_leaf else None
    return None if grad is None else with_entries(self, grad)


def _set_sparse_grad(self: SparseTensor, value: Any) -> None:
    if value is not None and not value._keys & SPARSE:
        raise RuntimeError("attempting to assign a gradient to a tensor that has data of a different type")
    if value is not None and value.shape != self.shape:
        raise RuntimeError("assigned grad has data of a different size")
    self._grad = value
    if self._entries.is_leaf:
        self._entries.grad = None


def _sparse_deepcopy(self: SparseTensor, memo: dict[int, Any]) -> Any:
    """A copy of indices, values and gradients."""
    copied = memo.get(id(self))
    if copied is not None:
        return copied
    entries, shape = deepcopy(self._entries, memo), self._array.shape
    if isinstance(self, CompressedTensor):
        copied = make_compressed(self._layout, deepcopy(self._compressed, memo), deepcopy(self._plain, memo), entries, shape)
    else:
        copied = make_sparse(deepcopy(self._coordinates, memo), entries, shape, self._coalesced)
    memo[id(self)] = copied
    if self._grad is not None:
        copied._grad = deepcopy(self._grad, memo)
    return copied


def _converter(dtype: dt.dtype) -> Any:
    return lambda self, memory_format=None: self.to(dtype)


for _name, _dtype in (
    ("float", dt.float32),
    ("double", dt.float64),
    ("half", dt.float16),
    ("bfloat16", dt.bfloat16),
    ("int", dt.int32),
    ("long", dt.int64),
    ("cfloat", dt.complex64),
    ("cdouble", dt.complex128),
):
    setattr(SparseTensor, _name, _converter(_dtype))
SparseTensor.__deepcopy__ = _sparse_deepcopy  # type: ignore[attr-defined]
SparseTensor.requires_grad_ = _sparse_requires_grad_  # type: ignore[attr-defined]
SparseTensor.grad = property(_get_sparse_grad, _set_sparse_grad)  # type: ignore[attr-defined]
SparseTensor.is_leaf = property(lambda self: self._entries.is_leaf)  # type: ignore[assignment, method-assign]
SparseTensor.__repr__ = _sparse_repr  # type: ignore[method-assign]
SparseTensor.detach = lambda self: with_entries(self, self._entries.detach())  # type: ignore[attr-defined]
SparseTensor.to = _sparse_to  # type: ignore[attr-defined]
