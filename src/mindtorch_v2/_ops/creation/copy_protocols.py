"""How tensors are copied and pickled: memory that several tensors share stays shared among their copies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from ..._autograd.graph import require_grad
from ..._core.keys import AUTOGRAD, LAZY, META
from ..._core.storage import Storage, owner_of
from ..._core.strides import strided
from ..._core.tensor import Tensor, make_meta, storage_of
from ..._core.untyped_storage import copied_storage
from ..._dispatch.interception import python_key
from .._support.factory import memory_order


def _bytes_of(owner: np.ndarray) -> np.ndarray:
    """All the memory of an array that owns it, as bytes in their order."""
    dense = owner if owner.flags.c_contiguous else owner.transpose(memory_order(owner))
    return np.ascontiguousarray(dense).reshape(-1).view(np.uint8)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _view_of_storage(storage: Storage, like: np.ndarray, offset: int) -> np.ndarray:
    """A view of a storage's memory with the shape, strides and dtype of another array."""
    if not like.size:
        return np.empty(like.shape, like.dtype)
    return strided(_bytes_of(storage.owner), like.dtype, like.shape, like.strides, offset)


def _on_storage(cls: type, array: np.ndarray, storage: Storage, requires_grad: bool) -> Any:
    tensor: Any = object.__new__(cls)
    tensor._array = array
    tensor._keys = python_key(cls)
    tensor._storage = storage
    tensor._base = None
    if requires_grad:
        require_grad(tensor)
    return tensor


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with memory of its own, which it shares with the copies of those tensors that shared it before."""
    known = memo.get(id(self))
    if known is not None:
        return known
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
            "at the moment.  If you were attempting to deepcopy a module, this may be because of a "
            "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
        )
    array = self._array
    if self._keys & META:
        copied: Any = make_meta(array.shape, array.dtype, array.strides)
    else:
        offset = _address(array) - _address(owner_of(array)) if array.size else 0
        storage = copied_storage(storage_of(self), memo)
        copied = _on_storage(type(self), _view_of_storage(storage, array, offset), storage, False)
        copied._keys = self._keys & ~AUTOGRAD
    memo[id(self)] = copied
    if self._keys & AUTOGRAD:
        require_grad(copied)
    if self.grad is not None:  # type: ignore[attr-defined]
        copied.grad = deepcopy(self.grad, memo)  # type: ignore[attr-defined]
    if self.__dict__:
        copied.__dict__ = deepcopy(self.__dict__, memo)
    return copied


def _rebuild(
    cls: type,
    storage: Storage,
    np_dtype: np.dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
    state: dict[str, Any],
    lazy: int = 0,
) -> Tensor:
    """Rebuilds a pickled tensor on its storage: the function that `__reduce_ex__` names."""
    array = np.empty(shape, np_dtype) if 0 in shape else strided(_bytes_of(storage.owner), np_dtype, shape, strides, offset)
    tensor = _on_storage(cls, array, storage, requires_grad)
    tensor._keys |= lazy
    if state:
        tensor.__dict__.update(state)
    return tensor


def __reduce_ex__(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    array = self._array
    if self._keys & META:
        return make_meta, (array.shape, array.dtype, array.strides)
    offset = _address(array) - _address(owner_of(array)) if array.size else 0
    return _rebuild, (
        type(self),
        storage_of(self),
        array.dtype,
        offset,
        array.shape,
        array.strides,
        self.requires_grad,
        dict(self.__dict__),
        self._keys & LAZY,
    )


METHODS = {"__deepcopy__": __deepcopy__, "__reduce_ex__": __reduce_ex__}
