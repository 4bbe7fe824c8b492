"""The functions that checkpoints call to make tensors of storages."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from .._autograd.graph import require_grad
from .._core import dtype as dt
from .._core import memory_format
from .._core.device import device as Device
from .._core.keys import CONJUGATED, META, NEGATED, NPU
from .._core.memory_format import layout
from .._core.rng import Generator
from .._core.sparse import SparseTensor, make_sparse
from .._core.storage import Storage, owner_of
from .._core.strides import reach_of, strided
from .._core.tensor import Tensor, make_meta, make_tensor
from .._core.untyped_storage import UntypedStorage, as_untyped
from .._dispatch import backends
from .._dispatch.registry import aten
from .._ops.sparse.compressed import LAYOUTS, rebuilt
from .._typed_storage import TypedStorage
from ..nn.parameter import Parameter

_new = object.__new__
MOST_DIMENSIONS = 64  # NumPy's
_LAYOUTS = {str(one): one for one in vars(memory_format).values() if isinstance(one, layout)}


# Where the bytes come after the objects: what waits for them. None: they are there whenever they are asked for.
waiting: ContextVar[list[Callable[[], Any]] | None] = ContextVar("waiting", default=None)


def once_read(action: Callable[[], Any]) -> None:
    """Do something that needs the bytes of tensors: now, or when the file has come to them."""
    actions = waiting.get()
    if actions is None:
        action()
    else:
        actions.append(action)


class LoadedStorage(TypedStorage):
    """Bytes of one storage, read when the first tensor wants them, shared by all that do. `stored` is None for an untyped
    storage; where a checkpoint has a storage as such, it is one of bytes."""

    __slots__ = ("_array", "_made", "_read", "location", "numel", "stored")

    def __init__(
        self,
        read: Callable[[], np.ndarray],
        dtype: dt.dtype | None,
        location: str,
        numel: int,
        made: Storage | None = None,
    ) -> None:
        self._read = read
        self._array: np.ndarray | None = None
        self._made = made
        self._dtype = dt.uint8 if dtype is None else dtype
        self.stored = dtype
        self.location = location
        self.numel = numel

    def of_dtype(self, dtype: dt.dtype | None) -> LoadedStorage:
        """Itself; where it holds nothing, one of another dtype on the same memory, since a file may have both."""
        if dtype is self.stored or self.numel:
            return self
        return LoadedStorage(self._read, dtype, self.location, 0, self._storage if self.location != "meta" else None)

    @property
    def array(self) -> np.ndarray:
        if self._array is None:
            self._array = host = self._read()
            if self.location.startswith("npu"):
                place = backends.resolved(Device(self.location))
                self._array = backends.loaded["npu"].upload(host, place.index or 0)
                if waiting.get() is not None:
                    once_read(lambda: aten.copy_(self._whole(), make_tensor(host)))
        return self._array

    def _whole(self) -> Tensor:
        """All bytes as a tensor."""
        return tensor_of(self, 0, self.array.shape, (1,), dt.uint8)

    @property
    def _storage(self) -> Storage:
        if self._made is None:
            self._made = Storage(self.array, device=self.location)
        return self._made

    @property
    def _untyped_storage(self) -> UntypedStorage:  # type: ignore[override]
        return as_untyped(self._storage)


def tensor_of(loaded: LoadedStorage, offset: int, size: Any, stride: Any, dtype: dt.dtype) -> Tensor:
    """A tensor that looks at a part of a storage; RuntimeError if that part lies outside it."""
    if not isinstance(loaded, LoadedStorage) or not isinstance(dtype, dt.dtype):
        raise RuntimeError("checkpoint makes a tensor of something that is no storage, or without a dtype")
    if not all(type(number) is int for number in (offset, *size, *stride)):
        raise RuntimeError("checkpoint asks for a tensor whose size, stride or offset is no number")
    if len(size) > MOST_DIMENSIONS:
        raise RuntimeError(f"checkpoint asks for a tensor of {len(size)} dimensions; there are at most {MOST_DIMENSIONS}")
    shape, np_dtype = tuple(map(int, size)), dtype.np
    strides = tuple(int(s) * np_dtype.itemsize for s in stride)
    if len(shape) != len(strides) or min(shape, default=0) < 0 or min(strides, default=0) < 0 or offset < 0:
        raise RuntimeError(f"checkpoint asks for a tensor of size {list(shape)}, stride {list(stride)}, offset {offset}")
    if loaded.location == "meta":
        return make_meta(shape, np_dtype, strides)
    start = offset * np_dtype.itemsize
    reach = reach_of(shape, strides, start, np_dtype.itemsize)
    if reach > loaded.array.nbytes:
        raise RuntimeError(f"checkpoint asks for {reach} bytes of a storage that has {loaded.array.nbytes}")
    tensor = _new(Tensor)
    tensor._array = strided(loaded.array, np_dtype, shape, strides, start)
    tensor._keys = NPU if loaded.location.startswith("npu") else 0
    tensor._storage = loaded._storage
    tensor._base = None
    return tensor


def _set_bits(tensor: Tensor, metadata: Any) -> Tensor:
    """The tensor with the `conj` and `neg` bits that a checkpoint notes beside it.

    Other entries describe the memory of a device, and torch does not look at them elsewhere, either.
    """
    if not metadata:
        return tensor
    if not isinstance(metadata, dict):
        raise RuntimeError(f"checkpoint describes a tensor with a {type(metadata).__name__}")
    bits = sum(bit for name, bit in (("conj", CONJUGATED), ("neg", NEGATED)) if metadata.get(name) is True)
    if (bits & CONJUGATED and not tensor.dtype.is_complex) or (bits and tensor.dtype is dt.bool_):
        raise RuntimeError(f"checkpoint asks for the conjugate or the negative of {tensor.dtype}")
    tensor._keys |= bits
    return tensor


def rebuild_tensor_v2(
    storage: LoadedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor of a typed storage."""
    dtype: dt.dtype | None = getattr(storage, "stored", None)
    if dtype is None:
        raise RuntimeError("checkpoint has an untyped storage where a typed one belongs")
    tensor = _set_bits(tensor_of(storage, storage_offset, size, stride, dtype), metadata)
    if requires_grad:
        require_grad(tensor)
    return tensor


def rebuild_tensor(storage: LoadedStorage, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """The older form, without autograd."""
    return rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def rebuild_tensor_v3(
    storage: LoadedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: dt.dtype,
    metadata: Any = None,
) -> Tensor:
    """A tensor of an untyped storage."""
    tensor = _set_bits(tensor_of(storage, storage_offset, size, stride, dtype), metadata)
    if requires_grad:
        require_grad(tensor)
    return tensor


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter around a tensor."""
    if not isinstance(data, Tensor):
        raise RuntimeError("checkpoint makes a parameter of something that is no tensor")
    return Parameter(data, bool(requires_grad))


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Parameter:
    """A parameter with attributes of its own."""
    parameter = rebuild_parameter(data, requires_grad, backward_hooks)
    _set_state(parameter, state)
    return parameter


def rebuild_from_type_v2(function: Any, kind: Any, args: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes of its own: made as one of Tensor, then given its class and its state."""
    if all(function is not one for one in REBUILDERS.values()) or type(args) is not tuple:
        raise RuntimeError("checkpoint makes a tensor with something that makes none")
    return with_type(function(*args), kind, state)


def with_type(tensor: Any, kind: Any, state: Any) -> Tensor:
    """A tensor with the class and the state that another was saved with."""
    if not isinstance(kind, type) or not issubclass(kind, Tensor) or issubclass(kind, SparseTensor):
        raise RuntimeError("checkpoint makes a tensor of a type that is none")
    if type(tensor) is not kind:
        tensor = tensor.as_subclass(kind)
    restore = getattr(kind, "__setstate__", None)
    if restore is not None and restore is not getattr(Tensor, "__setstate__", None):
        restore(tensor, state)
    else:
        _set_state(tensor, state)
    return tensor  # type: ignore[no-any-return]


# What the runtime keeps in a tensor: no checkpoint sets it.
_INSIDES = frozenset({"_array", "_base", "_grad", "_keys", "_node", "_output_nr", "_storage", "__class__", "__dict__"})


def _set_state(tensor: Any, state: Any) -> None:
    """Give a tensor the attributes that were saved with it, and what is in slots of its class."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        state, slots = state
    for part in (state, slots):
        if part is not None and not (isinstance(part, dict) and all(type(name) is str for name in part)):
            raise RuntimeError("checkpoint has a tensor's attributes without names")
    for name in (*(state or {}), *(slots or {})):
        if name in _INSIDES:
            raise RuntimeError(f"checkpoint sets {name} of a tensor")
    tensor.__dict__.update(state or {})
    for name, value in (slots or {}).items():
        setattr(tensor, name, value)


def rebuild_meta(dtype: dt.dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor on the meta device: dtype, size and stride, no data."""
    if not isinstance(dtype, dt.dtype) or not all(type(number) is int and number >= 0 for number in (*size, *stride)):
        raise RuntimeError("checkpoint asks for a tensor without data whose dtype, size or stride is none")
    tensor = make_meta(tuple(size), dtype.np, tuple(s * dtype.itemsize for s in stride))
    assert tensor._keys == META
    if requires_grad:
        require_grad(tensor)
    return tensor


def get_layout(name: str) -> layout:
    """A layout by the name it is shown with, `torch.sparse_coo`."""
    if type(name) is not str or name not in _LAYOUTS:
        raise RuntimeError(f"checkpoint names {name!r} as a layout")
    return _LAYOUTS[name]


def rebuild_sparse(kind: layout, data: Any) -> Tensor:
    """A sparse tensor of its indices, values and size."""
    if kind in LAYOUTS:
        if len(data) != 4:
            raise RuntimeError("checkpoint makes a compressed sparse tensor of other parts than it has")
        compressed, plain, entries, size = data
        return rebuilt(kind, compressed, plain, entries, size, once_read)
    if kind is not memory_format.sparse_coo:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {kind}")
    indices, values, size, *coalesced = data
    for part in (indices, values):
        if not isinstance(part, Tensor) or isinstance(part, SparseTensor):
            raise RuntimeError("checkpoint makes a sparse tensor of something that is no tensor")
        if part._keys & (META | NPU):
            raise NotImplementedError(f"loading sparse tensors to {part.device}")
    shape, places = tuple(size), indices._array
    if (
        not all(type(n) is int and n >= 0 for n in shape)
        or places.dtype != np.int64
        or places.ndim != 2
        or not (values.ndim and values.shape[0] == places.shape[1] and shape[len(places) :] == tuple(values.shape[1:]))
    ):
        raise RuntimeError(
            f"checkpoint makes a sparse tensor of size {list(shape)} of indices of size "
            f"{list(indices.shape)} and values of size {list(values.shape)}"
        )

    # Expanded dims are looked at once: a small file may hold a tensor of any size.
    distinct = places[tuple(slice(None) if step else slice(1) for step in places.strides)]
    if distinct.nbytes > owner_of(places).nbytes:
        raise RuntimeError("checkpoint has a sparse tensor whose indices lie upon one another")

    def check() -> None:
        limits = np.array(shape[: len(places)], np.int64)[:, None]
        if ((distinct < 0) | (distinct >= limits)).any():
            for dim, n in enumerate(shape[: len(places)]):
                low, high = int(distinct[dim].min()), int(distinct[dim].max())
                if low < 0:
                    raise RuntimeError(f"found negative index {low} for dim {dim}")
                if high >= n:
                    raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {n} but found index {high}")

    once_read(check)
    known = bool(coalesced[0]) if coalesced and coalesced[0] is not None else False
    return make_sparse(indices, values, shape, known or places.shape[1] < 2)


class LoadedGenerator(Generator):
    """A generator whose state comes next; from then on it is like any other."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        _, _, words = state  # the seed is in the state, and an offset is for devices
        once_read(lambda: self.set_state(words))
        self.__class__ = Generator  # type: ignore[assignment]


def parameter(data: Tensor, requires_grad: bool = True) -> Parameter:
    """A parameter that was saved by its class."""
    return rebuild_parameter(data, requires_grad, None)


REBUILDERS: dict[str, Any] = {
    "_rebuild_tensor": rebuild_tensor,
    "_rebuild_tensor_v2": rebuild_tensor_v2,
    "_rebuild_tensor_v3": rebuild_tensor_v3,
    "_rebuild_parameter": rebuild_parameter,
    "_rebuild_parameter_with_state": rebuild_parameter_with_state,
    "_rebuild_sparse_tensor": rebuild_sparse,
    "_rebuild_meta_tensor_no_storage": rebuild_meta,
    "_parameter": parameter,
}
REBUILDERS["_rebuild_from_type_v2"] = rebuild_from_type_v2
