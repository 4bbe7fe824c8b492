"""In-place changes of a tensor's shape: the same tensor becomes another view of its memory (squeeze_, t_, resize_, set_)."""

from __future__ import annotations

import math

import numpy as np

from ..._core.keys import AUTOGRAD, NPU
from ..._core.memory_format import contiguous_format, preserve_format
from ..._core.storage import Storage
from ..._core.tensor import storage_of
from ..._dispatch.facts import Batching
from ..._dispatch.registry import aten, composite
from .._support.common import normal_dim, normal_dims
from .view import memory_of, unsqueeze_to
from .view import squeeze as _squeeze
from .view import squeeze_dim as _squeeze_dim
from .view import squeeze_dims as _squeeze_dims
from .view import transpose as _transpose
from .view import unsqueeze as _unsqueeze
from .view_parts import as_strided as _as_strided


def _replace_view(self, array):
    """Replaces a tensor's array by another view of the same memory, and counts that as a write."""
    storage_of(self).version += 1  # first: a storage that must not be changed refuses
    self._array = array
    return self


# ---------------------------------------------------------------- dims

squeeze_ = composite(
    "squeeze_(Tensor(a!) self) -> Tensor(a!)",
    lambda self: _replace_view(self, _squeeze.kernel(self._array)),
    node="SqueezeBackward3",
    batching=Batching.SHAPE_IN_PLACE,
)
squeeze_.vjp(self=lambda g, self_shape: unsqueeze_to(g, self_shape, range(len(self_shape))))

squeeze_dim_ = composite(
    "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)",
    lambda self, dim: _replace_view(self, _squeeze_dim.kernel(self._array, dim)),
    node="SqueezeBackward4",
    samples=lambda make: [(make(3, 1, 4), 1)],
    batching=Batching.SHAPE_IN_PLACE,
)
squeeze_dim_.vjp(self=lambda g, self_shape, dim: unsqueeze_to(g, self_shape, normal_dims((dim,), len(self_shape))))

squeeze_dims_ = composite(
    "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)",
    lambda self, dim: _replace_view(self, _squeeze_dims.kernel(self._array, dim)),
    node="SqueezeBackward5",
    samples=lambda make: [(make(3, 1, 4), (0, 1))],
    batching=Batching.SHAPE_IN_PLACE,
)
squeeze_dims_.vjp(
    self=lambda g, self_shape, dim: unsqueeze_to(g, self_shape, normal_dims(dim, len(self_shape)) if len(dim) else ())
)

unsqueeze_ = composite(
    "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)",
    lambda self, dim: _replace_view(self, _unsqueeze.kernel(self._array, dim)),
    node="UnsqueezeBackward1",
    samples=lambda make: [(make(3, 4), 1)],
    batching=Batching.SHAPE_IN_PLACE,
)
unsqueeze_.vjp(self=lambda g, dim: aten.squeeze(g, dim))

transpose_ = composite(
    "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    lambda self, dim0, dim1: _replace_view(
        self, _transpose.kernel(self._array, *[normal_dim(dim, self._array.ndim) for dim in (dim0, dim1)])
    ),
    node="TransposeBackward1",
    samples=lambda make: [(make(3, 4), 0, 1)],
    batching=Batching.SHAPE_IN_PLACE,
)
transpose_.vjp(self=lambda g, dim0, dim1: aten.transpose(g, dim0, dim1))


@composite("t_(Tensor(a!) self) -> Tensor(a!)", node="TBackward1", batching=Batching.SHAPE_IN_PLACE)
def t_(self):
    ndim = self._array.ndim
    if ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return aten.transpose_(self, 0, 1) if ndim == 2 else self


t_.vjp(self=lambda g: aten.t(g))

composite(
    "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)",
    lambda self, axis0, axis1: aten.transpose_(self, axis0, axis1),
    samples=lambda make: [(make(3, 4), 0, 1)],
)
composite(
    "swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    lambda self, dim0, dim1: aten.transpose_(self, dim0, dim1),
    samples=lambda make: [(make(3, 4), 0, 1)],
)


@composite(
    "as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [(make(3, 4), (2, 2), (4, 1))],
)
def as_strided_(self, size, stride, storage_offset):
    if self._keys & AUTOGRAD:
        raise NotImplementedError("as_strided_ on a tensor that requires grad has no derivative; use as_strided()")
    return _replace_view(self, _as_strided.kernel(self._array, size, stride, storage_offset))


# ---------------------------------------------------------------- size and memory


def _within(array, shape):
    """An array of another shape over the same memory from the first element on; None where that is too small."""
    memory, start = memory_of(array)
    if start + math.prod(shape) * array.itemsize > memory.nbytes:
        return None
    return np.ndarray(shape, array.dtype, memory, start)


def _grown(self, shape):
    """Larger memory that begins with what the tensor's memory holds from its first element on."""
    memory, start = memory_of(self._array)
    if self._keys & NPU:  # only the device can copy
        count = (memory.nbytes - start) // self._array.itemsize
        grown = aten.empty(shape, dtype=self.dtype, device=self.device)
        aten.copy_(aten.as_strided(grown, (count,), (1,)), aten.as_strided(self, (count,), (1,)))
        return grown._array, grown._storage
    grown = np.empty(math.prod(shape), self._array.dtype)
    content = memory.reshape(-1).view(np.uint8)[start:]
    grown.view(np.uint8)[: content.size] = content
    return grown.reshape(shape), Storage(grown)


def _check_resizable(self, name):
    if self._keys & AUTOGRAD:
        raise RuntimeError(f"cannot {name} variables that require grad")


@composite(
    "resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [],
)
def resize_(self, size, memory_format):
    """Take another shape; new elements beyond those the memory holds are undefined."""
    _check_resizable(self, "resize")
    if memory_format not in (None, contiguous_format, preserve_format):
        raise NotImplementedError(f"resize_ to {memory_format} is not supported")
    shape = tuple(size)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    if shape == self._array.shape and memory_format is not contiguous_format:
        return self
    version = storage_of(self).version + 1
    array = _within(self._array, shape)
    if array is not None:
        self._array = array
    else:
        self._array, self._storage = _grown(self, shape)
        self._base = None
    storage_of(self).version = version
    return self


composite(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    lambda self, the_template, memory_format: aten.resize_(self, the_template._array.shape, memory_format=memory_format),
    nondiff=True,
    samples=lambda make: [],
)


def _row_major(size):
    return tuple([math.prod(size[i + 1 :]) for i in range(len(size))])


def _replace_storage(self, array, storage):
    """Makes a tensor a view of another storage, in place."""
    _check_resizable(self, "set_")
    self._array = array
    self._storage = storage
    self._base = None
    storage.version += 1
    return self


@composite("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", nondiff=True, samples=lambda make: [])
def set_source(self, source):
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype.cpp_name} to a tensor of type {self.dtype.cpp_name}")
    return _replace_storage(self, source._array, storage_of(source))


@composite(
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, int storage_offset, int[] size, "
    "int[] stride=[]) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [],
)
def set_part(self, source, storage_offset, size, stride):
    array = _as_strided.kernel(source._array, size, stride or _row_major(size), storage_offset)
    return _replace_storage(self, array, storage_of(source))


def _in_storage(self, source, storage_offset, size, stride):
    """An array of this dtype over the bytes of an UntypedStorage."""
    memory, _ = memory_of(source._storage.owner)
    item = self._array.itemsize
    steps = [s * item for s in stride]
    reach = item * storage_offset + sum((n - 1) * s for n, s in zip(size, steps, strict=True)) + item
    if math.prod(size) and reach > memory.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {storage_offset}, "
            f"and itemsize {item} requiring a storage size of {reach} are out of bounds for storage of "
            f"size {memory.nbytes}"
        )
    return np.ndarray(tuple(size), self._array.dtype, memory, storage_offset * item, steps)


@composite(
    "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, int storage_offset, int[] size, "
    "int[] stride=[]) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [],
)
def set_storage_part(self, source, storage_offset, size, stride):
    array = _in_storage(self, source, storage_offset, size, stride or _row_major(size))
    return _replace_storage(self, array, source._storage)


@composite("set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)", nondiff=True, samples=lambda make: [])
def set_storage(self, source):
    count = source.nbytes() // self._array.itemsize
    return _replace_storage(self, _in_storage(self, source, 0, (count,), (1,)), source._storage)


@composite("set_(Tensor(a!) self) -> Tensor(a!)", nondiff=True, samples=lambda make: [])
def set_nothing(self):
    empty = np.empty(0, self._array.dtype)
    return _replace_storage(self, empty, Storage(empty))
