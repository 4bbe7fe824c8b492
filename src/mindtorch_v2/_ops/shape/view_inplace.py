"""In-place changes of a tensor's shape: the same tensor becomes another view of its memory (squeeze_, t_, resize_, set_)."""

from __future__ import annotations

import math

import numpy as np

from ..._core.determinism import Uninitialized, filled
from ..._core.device import device as Device
from ..._core.keys import AUTOGRAD, LAZY, META, NPU
from ..._core.layout import suggested_format
from ..._core.memory_format import channels_last, channels_last_3d, preserve_format
from ..._core.resizing import resize_storage, resize_tensor
from ..._core.shape_only import MetaArray
from ..._core.storage import Storage, allocation, check_version
from ..._core.strides import memory_of, reach_of, row_major, strided
from ..._core.tensor import make_meta, storage_of, storage_with
from ..._core.threads import threads
from ..._dispatch import entry_globals, registry
from ..._dispatch.facts import Batching
from ..._dispatch.registry import aten, composite
from .._support.common import normal_dim, normal_dims
from .transpose import transpose as _transpose
from .view import squeeze as _squeeze
from .view import squeeze_dim as _squeeze_dim
from .view import squeeze_dims as _squeeze_dims
from .view import unsqueeze as _unsqueeze
from .view import unsqueeze_to
from .view_parts import as_strided as _as_strided
from .view_parts import as_strided_grad


def _replace_view(self, array):
    """Replaces a tensor's array by another view of the same memory, and counts that as a write."""
    storage = storage_of(self)
    storage.version += 1  # first: a storage that must not be changed refuses
    self._array = _with_class(array, storage)
    if self._keys & AUTOGRAD:
        entry_globals.refresh_accumulator(self)  # of a leaf, in no_grad()
    return self


# ---------------------------------------------------------------- dims

squeeze_ = composite(
    "squeeze_(Tensor(a!) self) -> Tensor(a!)",
    lambda self: _replace_view(self, _squeeze.kernel(self._array)),
    node="SqueezeBackward3",
    batching=Batching.SHAPE_IN_PLACE,
    reshapes=True,
)
squeeze_.vjp(self=lambda g, self_shape: unsqueeze_to(g, self_shape, range(len(self_shape))))

squeeze_dim_ = composite(
    "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)",
    lambda self, dim: _replace_view(self, _squeeze_dim.kernel(self._array, dim)),
    node="SqueezeBackward4",
    samples=lambda make: [(make(3, 1, 4), 1)],
    batching=Batching.SHAPE_IN_PLACE,
    reshapes=True,
)
squeeze_dim_.vjp(self=lambda g, self_shape, dim: unsqueeze_to(g, self_shape, normal_dims((dim,), len(self_shape))))

squeeze_dims_ = composite(
    "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)",
    lambda self, dim: _replace_view(self, _squeeze_dims.kernel(self._array, dim)),
    node="SqueezeBackward5",
    samples=lambda make: [(make(3, 1, 4), (0, 1))],
    batching=Batching.SHAPE_IN_PLACE,
    reshapes=True,
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
    reshapes=True,
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
    reshapes=True,
)
transpose_.vjp(self=lambda g, dim0, dim1: aten.transpose(g, dim0, dim1))


@composite("t_(Tensor(a!) self) -> Tensor(a!)", node="TBackward1", batching=Batching.SHAPE_IN_PLACE, reshapes=True)
def t_(self):
    ndim = self._array.ndim
    if ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return _replace_view(self, self._array.T)


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
    node="AsStridedBackward1",
    reshapes=True,
    samples=lambda make: [(make(3, 4), (2, 2), (4, 1))],
)
def as_strided_(self, size, stride, storage_offset):
    if storage_offset is not None and threads.state.grad_enabled is None and self._keys & AUTOGRAD and self.storage_offset():
        raise NotImplementedError(
            "as_strided_ with a storage_offset has no derivative for a tensor that does not begin where its memory does"
        )
    return _replace_view(self, _as_strided.kernel(self._array, size, stride, storage_offset))


as_strided_.vjp(as_strided_grad)


# ---------------------------------------------------------------- size and memory


def _with_class(array, storage):
    return array.view(MetaArray) if storage.place == "meta" else array


def _resized_on_device(self, shape, memory_format):
    """Memory of its own for a tensor that grows on a device, since only the device can copy."""
    memory, start = memory_of(self._array)
    count = (memory.nbytes - start) // self._array.itemsize
    grown = aten.empty(shape, dtype=self.dtype, device=self.device, memory_format=memory_format)
    aten.copy_(aten.as_strided(grown, (count,), (1,)), aten.as_strided(self, (count,), (1,)))
    self._array, self._storage = grown._array, grown._storage
    self._base = None


def _channels_last_steps(shape, item, memory_format):
    """The strides in bytes of a tensor whose channels lie last."""
    rank = 4 if memory_format is channels_last else 5
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format!r}".replace("torch.", "") + " format")
    batch, *image, channel = row_major((shape[0], *shape[2:], shape[1]), item)
    return (batch, channel, *image)


@composite(
    "resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [],
)
def resize_(self, size, memory_format):
    """Take another shape; new elements beyond those the memory holds are undefined."""
    if self._keys & AUTOGRAD and not threads.state.inference:
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    shape = tuple(size)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    if shape == self._array.shape and memory_format is None:
        return self
    steps = None
    if memory_format in (channels_last, channels_last_3d):
        steps = _channels_last_steps(shape, self._array.itemsize, memory_format)
    check_version(storage_of(self))
    memory, start = memory_of(self._array)
    if self._keys & NPU and start + math.prod(shape) * self._array.itemsize > memory.nbytes:
        _resized_on_device(self, shape, memory_format)
    else:
        held = memory.nbytes
        del memory  # or the tensor would not have its memory alone
        resize_tensor(self, shape, steps)
        if Uninitialized.filled and not self._keys & META:
            new = memory_of(self._array)[0].reshape(-1).view(np.uint8)[held - held % self._array.itemsize :]
            filled(new[: new.size // self._array.itemsize * self._array.itemsize].view(self._array.dtype))
    storage_of(self).version += 1
    return self


@composite(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [],
)
def resize_as_(self, the_template, memory_format):
    """Take another tensor's shape, and with `preserve_format` the order of its channels, too."""
    if memory_format is preserve_format:
        memory_format = suggested_format(the_template._array)
    return aten.resize_(self, the_template._array.shape, memory_format=memory_format)


def _check_settable(self):
    """RuntimeError for a tensor whose memory must not be replaced: in grad mode, a leaf that requires grad or a view of one."""
    if self._keys & AUTOGRAD and threads.state.grad_enabled:
        entry_globals.check_in_place(self)


def _note_set(self, source=None):
    """The history of a tensor whose memory was replaced: a leaf begins anew, another tensor has no derivative any more."""
    keys = self._keys | (0 if source is None else source._keys)
    if not keys & AUTOGRAD:
        return
    if threads.state.grad_enabled:
        op = registry.packets["set_"].overloads["source_Tensor"]
        entry_globals.record_unknown(op, (self, source), (self,), moved=True)
    elif self._keys & AUTOGRAD and self._node.is_accumulator:
        self._keys &= ~AUTOGRAD
        del self._node
        entry_globals.require_grad(self)


def _check_source(self, storage):
    """RuntimeError where a tensor must not become a view of a storage."""
    _check_settable(self)
    if self.device != Device(storage.place):
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on different device '
            f'"{storage.place}".  This is no longer allowed; the devices must match.'
        )
    check_version(storage)


def _replace_storage(self, array, storage):
    """Makes a tensor a view of another storage, in place."""
    check_version(storage_of(self))
    if allocation.on_move is not None:
        allocation.on_move(self)
    self._storage = storage_with(self, storage)
    self._array = array
    self._storage.version += 1
    return self


@composite("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", nondiff=True, samples=lambda make: [])
def set_source(self, source):
    _check_source(self, storage_of(source))
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype.cpp_name} to a tensor of type {self.dtype.cpp_name}")
    _replace_storage(self, source._array, storage_of(source))
    self._keys = (self._keys & ~LAZY) | (source._keys & LAZY)
    _note_set(self, source)
    return self


def _check_stored(self, source):
    """TypeError for what is no storage, RuntimeError for a typed one of another dtype."""
    if not hasattr(source, "_storage"):
        raise TypeError(f"set_(): argument 'source' (position 1) must be Storage, not {type(source).__name__}")
    stored = getattr(source, "_dtype", None)
    if stored is not None and stored is not self.dtype:
        raise RuntimeError(
            f"Expected a Storage of type {self.dtype.cpp_name} or an UntypedStorage, but got type {stored.scalar_name} for "
            "argument 1 'storage'"
        )


def _set_part(self, storage, storage_offset, size, stride):
    """`set_` with a place in a storage, which grows if it is too small."""
    _check_source(self, storage)
    dtype = self._array.dtype
    steps = [s * dtype.itemsize for s in stride] if len(stride) else row_major(size, dtype.itemsize)
    start = storage_offset * dtype.itemsize
    if len(steps) != len(size):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(steps)})")
    reach = reach_of(size, steps, start, dtype.itemsize)
    if reach > storage.byte_count:
        resize_storage(storage, reach)
    array = strided(memory_of(storage.owner)[0], dtype, size, steps, start)
    _replace_storage(self, _with_class(array, storage), storage)
    _note_set(self)
    return self


@composite(
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, int storage_offset, int[] size, "
    "int[] stride=[]) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [],
)
def set_part(self, source, storage_offset, size, stride):
    return _set_part(self, storage_of(source), storage_offset, size, stride)


@composite(
    "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, int storage_offset, int[] size, "
    "int[] stride=[]) -> Tensor(a!)",
    nondiff=True,
    samples=lambda make: [],
)
def set_storage_part(self, source, storage_offset, size, stride):
    _check_stored(self, source)
    return _set_part(self, source._storage, storage_offset, size, stride)


@composite("set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)", nondiff=True, samples=lambda make: [])
def set_storage(self, source):
    _check_stored(self, source)
    return _set_part(self, source._storage, 0, (source._storage.byte_count // self._array.itemsize,), ())


@composite("set_(Tensor(a!) self) -> Tensor(a!)", nondiff=True, samples=lambda make: [])
def set_nothing(self):
    _check_settable(self)
    if self._keys & META:
        empty = make_meta((0,), self._array.dtype)
        return _replace_storage(self, empty._array, empty._storage)
    array = np.empty(0, self._array.dtype)
    _replace_storage(self, array, Storage(array))
    _note_set(self)
    return self
