"""Copies, conversions, and leaving the world of tensors."""

from __future__ import annotations

import numpy as np

from .._core.memory_format import contiguous_format, preserve_format
from .._core.tensor import make_alias
from .._dispatch.registry import aten, composite, op
from ._common import like_first, np_dtype


def dense_copy(array):
    """A copy that keeps the order of dims in memory, as torch's preserve_format does."""
    return array.copy("C" if array.flags.c_contiguous else "K")


@op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", shape=like_first)
def clone(self, memory_format):
    if memory_format is None or memory_format is preserve_format:
        return dense_copy(self)
    if memory_format is contiguous_format:
        return self.copy("C")
    return channels_last_copy(self)


clone.vjp(self=lambda g: g)


def channels_last_copy(array):
    """A copy whose dim 1 lies innermost in memory."""
    if array.ndim not in (4, 5):
        raise RuntimeError(f"required rank {4} tensor to use channels_last format")
    moved = np.ascontiguousarray(np.moveaxis(array, 1, -1))
    return np.moveaxis(moved, -1, 1)


@composite("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
def contiguous(self, memory_format):
    return aten.clone(self, memory_format=memory_format or contiguous_format)


@op("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)")
def copy_(self, src, non_blocking):
    try:
        np.copyto(self, src, "unsafe")
    except ValueError:
        raise RuntimeError(f"The size of tensor a ({self.shape[-1] if self.ndim else 1}) must match the size of tensor b "
                           f"({src.shape[-1] if src.ndim else 1}) at non-singleton dimension {max(self.ndim - 1, 0)}") \
            from None


copy_.vjp(self=lambda g: aten.zeros_like(g), src=lambda g: g)


@op("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)")
def fill_(self, value):
    self.fill(value if self.dtype.kind != "b" else bool(value))


fill_.vjp(self=lambda g: aten.zeros_like(g))


@op("zero_(Tensor(a!) self) -> Tensor(a!)")
def zero_(self):
    self.fill(0)


zero_.vjp(self=lambda g: aten.zeros_like(g))


@op("_to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, MemoryFormat? memory_format=None) -> Tensor",
    node="ToCopyBackward0",
    shape=lambda self, dtype, device, memory_format: (self._array.shape, np_dtype(dtype, self._array.dtype)))
def to_copy(self, dtype, device, memory_format):
    return self.astype(np_dtype(dtype, self.dtype), order="K", copy=True)


to_copy.vjp(self=lambda g, self_dtype: g.to(self_dtype))


@composite("to(Tensor(a) self, *, ScalarType? dtype=None, Device? device=None, bool non_blocking=False, bool copy=False, "
           "MemoryFormat? memory_format=None) -> Tensor(a)")
def to(self, dtype, device, non_blocking, copy, memory_format):
    same = (dtype is None or np_dtype(dtype) == self._array.dtype) and (device is None or device == self.device)
    if same and not copy and memory_format is None:
        return self
    return aten._to_copy(self, dtype=dtype, device=device, memory_format=memory_format)


@composite("detach(Tensor(a) self) -> Tensor(a)", nondiff=True)
def detach(self):
    return make_alias(self._array, self)


@op("_local_scalar_dense(Tensor self) -> Scalar", nondiff=True)
def local_scalar_dense(self):
    return self.item()


@composite("item(Tensor self) -> Scalar")
def item(self):
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    return aten._local_scalar_dense(self)
