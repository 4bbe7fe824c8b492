"""Tensors from Python data: numbers, nested sequences, NumPy arrays and buffers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._autograd.graph import require_grad
from ..._core import dtype as dt
from ..._core.device import default_elsewhere
from ..._core.device import device as Device
from ..._core.keys import AUTOGRAD
from ..._core.storage import FOREIGN, Storage, owner_of
from ..._core.tensor import Tensor, make_meta, make_on_storage
from ..._core.threads import threads
from ..._core.untyped_storage import MemoryObject, UntypedStorage
from ..._dispatch import entry_globals
from ..._dispatch.errors import type_name
from ..._dispatch.interception import without_modes
from ..._dispatch.lazy_values import resolved
from ..._dispatch.registry import aten
from .copy import to_dtype_layout
from .dlpack import exports, from_dlpack
from .factories import empty

_empty, _to = empty.call, to_dtype_layout.call
_new = object.__new__
_PLAIN = frozenset((bool, int, float, complex))
_FLOATS = {float}
_SEQUENCES = (list, tuple)
_PYTHON_DTYPES = {float: dt.float64, int: dt.int64, bool: dt.bool_}


def as_dtype(dtype: Any, function: str) -> dt.dtype | None:
    """A dtype argument, which may be one of Python's types."""
    if dtype is None or isinstance(dtype, dt.dtype):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON_DTYPES:
        return _PYTHON_DTYPES[dtype]
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")


# ---------------------------------------------------------------- what is in the data


def _leaf_types(data: Any) -> set[type]:
    """The types of all elements of nested lists and tuples."""
    types = set(map(type, data))
    if list in types or tuple in types:
        types -= {list, tuple}
        for item in data:
            if item.__class__ is list or item.__class__ is tuple:
                if item is data:
                    raise TypeError("new(): self-referential lists are incompatible")
                types |= _leaf_types(item)
    return types


def _plain_dtype(types: set[type]) -> dt.dtype:
    """What Python numbers of these types become together."""
    if complex in types:
        return dt.number_dtype(1j)
    if float in types or not types:
        return dt.get_default_dtype()
    return dt.int64 if int in types else dt.bool_


def _is_sequence(data: Any) -> bool:
    return isinstance(data, _SEQUENCES) or (
        hasattr(data, "__getitem__")
        and hasattr(data, "__len__")
        and not isinstance(data, str | bytes | dict | Tensor)
        and not (isinstance(data, np.ndarray | np.generic) and not np.ndim(data))
    )


def _inferred(data: Any) -> dt.dtype | None:
    """The dtype of data of any kind; None for an empty sequence, which leaves it open."""
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray | np.generic):
        return dt.from_numpy(data.dtype)
    if isinstance(data, bool | int | float | complex):
        return dt.number_dtype(data)
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not _is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    result = None
    for item in _items(data):
        kind = _inferred(item)
        if kind is not None:
            result = kind if result is None else dt.promote_types(result, kind)
    return result


def _items(data: Any) -> Iterator[Any]:
    return (data[i] for i in range(len(data)))


def _shape_of(data: Any) -> tuple[int, ...]:
    """The lengths of nested sequences, as their first elements tell them."""
    shape: list[int] = []
    while _is_sequence(data):
        shape.append(len(data))
        if not shape[-1]:
            break
        data = data[0]
        if len(shape) > 64:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
    if isinstance(data, str | bytes) and shape:
        raise ValueError(f"too many dimensions '{type(data).__name__}'")
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], dim: int, out: list[Any]) -> None:
    """Collect the elements; ValueError where a sequence is not as long as its neighbors."""
    if dim == len(shape):
        out.append(_number(data))
        return
    if not _is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    for item in _items(data):
        _flatten(item, shape, dim + 1, out)


def _number(item: Any) -> Any:
    if isinstance(item, Tensor):
        if item._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return resolved(item)._array.item()
    if isinstance(item, np.generic | np.ndarray):
        return item.item()
    if _is_sequence(item):
        raise TypeError(f"'{type(item).__name__}' object cannot be interpreted as an integer")
    return item


# ---------------------------------------------------------------- into an array


def _filled(numbers: Any, kind: dt.dtype) -> np.ndarray:
    """Python numbers (nested as they are) as an array; the errors are torch's."""
    target = kind.np
    try:
        if target.kind in "iu":
            return _whole(numbers, target, kind)
        with np.errstate(all="ignore"):
            return _floats(numbers, target)
    except OverflowError:
        if target.kind in "iu":
            raise ValueError("Overflow when unpacking long long") from None
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow") from None
    except TypeError as error:
        if "complex" in str(error):
            raise TypeError("must be real number, not complex") from None
        raise


def _floats(numbers: Any, target: np.dtype) -> np.ndarray:
    if target.type is not np.float16:
        return np.array(numbers, target)
    with np.errstate(all="ignore"):
        return np.array(numbers, np.float32).astype(target)  # as torch rounds them


def _whole(numbers: Any, target: np.dtype, kind: dt.dtype) -> np.ndarray:
    natural = np.array(numbers)
    if natural.dtype.kind == "O":
        raise OverflowError
    if natural.dtype.kind in "US":
        raise TypeError(f"new(): invalid data type '{type(natural.flat[0]).__name__.rstrip('_')}'")
    if natural.dtype.kind == "c":
        raise TypeError("complex")
    limits = np.iinfo(target)
    if natural.dtype.kind == "u" and target.kind == "i":
        raise OverflowError
    if natural.size and natural.dtype.kind != "b":
        low, high = natural.min(), natural.max()
        # Negative integers wrap around in unsigned types, as in C; negative floats are refused.
        lowest = limits.min if target.kind == "i" else -int(limits.max)
        if target.kind == "u" and low < 0 and natural.dtype.kind == "f":
            lowest = 0 if any(isinstance(one, float) and one < 0 for one in np.array(numbers, object).flat) else lowest
        if not (
            low >= lowest and high < 2.0**63
            if limits.bits == 64 and natural.dtype.kind == "f"
            else low >= lowest and high <= limits.max
        ):
            raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")
    return natural.astype(target)


def array_of(data: Any, dtype: dt.dtype | None) -> np.ndarray:
    """A new array of numbers and nested sequences, of the dtype asked for or else of the one that follows."""
    if data.__class__ in _PLAIN:
        number: Any = data
        kind = dt.number_dtype(number) if dtype is None else dtype
        if kind.np.kind in "iub" or data.__class__ is complex or data.__class__ is int:
            return _filled(data, kind)
        return _floats(data, kind.np)
    if isinstance(data, _SEQUENCES):
        types = _leaf_types(data)
        if dtype is None and types == _FLOATS:
            try:
                return _floats(data, dt.get_default_dtype().np)
            except (ValueError, TypeError):
                return _from_anything(data, dtype)  # which has torch's words for what is wrong
        if types <= _PLAIN:
            kind = _plain_dtype(types) if dtype is None else dtype
            try:
                if kind.np.kind == "f" and complex not in types:
                    return _floats(data, kind.np)
                return _filled(data, kind)
            except (ValueError, TypeError) as error:
                if "inhomogeneous" not in str(error) and "sequence" not in str(error):
                    raise
    return _from_anything(data, dtype)


def of_storage(storage: Any, dtype: dt.dtype | None) -> Tensor:
    """A tensor on the memory of a storage: of its own dtype if it has one, else its bytes as those of the dtype asked for."""
    stored = getattr(storage, "_dtype", None)
    if stored is not None and dtype is not None and stored is not dtype:
        raise RuntimeError(f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got {stored.scalar_name}")
    kind = stored or dtype or dt.int64
    untyped = storage._storage
    if untyped.place == "meta":
        return make_meta((untyped.nbytes() // kind.itemsize,), kind.np)
    held = untyped._bytes
    return make_on_storage(held[: held.size // kind.itemsize * kind.itemsize].view(kind.np), untyped)


def _from_anything(data: Any, dtype: dt.dtype | None) -> np.ndarray:
    """Element by element, for data that NumPy would nest in another way than torch."""
    shape = _shape_of(data)
    kind = dtype or _inferred(data) or dt.get_default_dtype()
    numbers: list[Any] = []
    _flatten(data, shape, 0, numbers)
    return _filled(numbers, kind).reshape(shape)


# ---------------------------------------------------------------- torch.tensor, as_tensor, asarray, from_numpy, frombuffer


def _finish(made: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        if made._array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        require_grad(made)
    return made


def _check_pinned(pin_memory: bool) -> None:
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")


def _from_python(data: Any, dtype: dt.dtype | None, device: Any) -> Tensor:
    array = array_of(data, dtype)
    if entry_globals.observers_active and threads.state.modes:
        return _lifted(without_modes(_filled_tensor, array, device))  # a mode sees the tensor when it is whole
    return _lifted(_filled_tensor(array, device))


def _filled_tensor(array: np.ndarray, device: Any) -> Tensor:
    made = _empty(array.shape, dtype=dt.from_numpy(array.dtype), device="cpu")
    made._array[...] = array
    return _to(made) if device is None else _to(made, device=device)


def _lifted(made: Tensor) -> Tensor:
    """The tensor itself: torch lifts what it makes of data, and recordings show that as aten::lift_fresh."""
    lifted: Tensor = aten.lift_fresh(made)
    return lifted


def _device(device: Any) -> Any:
    """Where a new tensor goes: None means the CPU."""
    return default_elsewhere() if device is None else Device(device)


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested sequences, an array or a tensor; a storage is shared."""
    if dtype.__class__ is not dt.dtype:
        dtype = as_dtype(dtype, "tensor")
    device = _device(device)
    if pin_memory:
        _check_pinned(pin_memory)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        result = aten.to(data.detach(), dtype=dtype, device=device, copy=True)
    elif isinstance(data, np.ndarray):
        result = aten.to(_lifted(_external(data)), dtype=dtype, device=device, copy=True)
    elif isinstance(data, MemoryObject):
        return _finish(of_storage(data, dtype), requires_grad)
    else:
        result = _from_python(data, dtype, device)
    aten.detach_(result)
    return _finish(result, requires_grad) if requires_grad else result


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor that shares its memory where that is possible."""
    dtype = as_dtype(dtype, "as_tensor")
    device = _device(device)
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else aten.to(data, dtype=dtype, device=device)
    if isinstance(data, np.ndarray):
        return aten.to(_lifted(_external(data)), dtype=dtype, device=device)
    if isinstance(data, MemoryObject):
        return of_storage(data, dtype)
    return _from_python(data, dtype, device)


def _external(array: np.ndarray) -> Tensor:
    """A tensor on an array's memory; the array must be one that tensors can describe."""
    if array.__class__ is not np.ndarray:
        array = array.view(np.ndarray)
    if not array.flags.c_contiguous:
        _check_strides(array)
    dt.from_numpy(array.dtype)
    result = _new(Tensor)
    result._array = array
    result._keys = 0
    result._base = None
    storage = result._storage = _new(Storage)
    storage.owner = array if array.base is None else owner_of(array)
    storage.version = 0
    storage.external = FOREIGN
    storage.place = "cpu"
    return result


def _check_strides(array: np.ndarray) -> None:
    if any(stride < 0 for stride in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides "
            "are not currently supported. (You can probably work around this by making a copy of your "
            "array  with array.copy().) "
        )
    if array.dtype.fields is None and any(stride % array.itemsize for stride in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        module = type(ndarray).__module__
        name = type(ndarray).__name__ if module == "builtins" else f"{module}.{type(ndarray).__name__}"
        raise TypeError(f"expected np.ndarray (got {name})")
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
            "means writing to this tensor will result in undefined behavior. You may want to copy the array "
            "to protect its data or make it writable before converting it to a tensor. This type of warning "
            "will be suppressed for the rest of this program.",
            UserWarning,
            stacklevel=2,
        )
    return _lifted(_external(ndarray))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor on the memory of an object with Python's buffer protocol."""
    kind = as_dtype(dtype, "frombuffer")
    assert kind is not None
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    for name, number in (("count", count), ("offset", offset)):
        if not isinstance(number, int | np.integer):
            raise TypeError(f"frombuffer(): argument '{name}' must be int, not {type_name(number)}")
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
    item, length = kind.itemsize, view.nbytes
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count > 0:
        if offset + count * item > length:
            raise ValueError(
                f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not "
                f"be greater than actual buffer length ({length} bytes)"
            )
    elif (length - offset) % item:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({item})"
        )
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means "
            "you can write to the underlying (supposedly non-writable) buffer using the tensor. You may want "
            "to copy the buffer to protect its data or make it writable before converting it to a tensor. "
            "This type of warning will be suppressed for the rest of this program.",
            UserWarning,
            stacklevel=2,
        )
    return _finish(_external(np.frombuffer(buffer, kind.np, max(count, -1), offset)), requires_grad)


def _sharing(obj: Any, dtype: dt.dtype | None) -> Tensor | None:
    """A tensor on the memory of an object; None for numbers, sequences and other objects without memory to share."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray | np.generic):
        return _external(np.asarray(obj))
    if exports(obj):
        return from_dlpack(obj)
    if isinstance(obj, UntypedStorage):
        return make_on_storage(obj._bytes, obj)
    if isinstance(obj, int | float | complex | list | tuple):
        return None
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or dt.get_default_dtype())


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """`obj` as a tensor; `copy=True` always copies, `copy=False` never. It requires grad as `obj` does, unless told."""
    kind = as_dtype(dtype, "asarray")
    where = _device(device)
    source = _sharing(obj, kind)
    if source is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return _finish(_from_python(obj, kind, where), bool(requires_grad))
    if copy is False:
        if where is not None and where is not source.device:
            raise ValueError(f"can't alias tensor from device '{source.device}' to '{where}'.")
        if kind is not None and kind is not source.dtype:
            raise ValueError(f"can't alias tensor with dtype '{source.dtype.scalar_name}' into dtype '{kind.scalar_name}'.")
    result = aten.to(source, dtype=kind, device=where, copy=copy is True)
    if requires_grad is None or requires_grad == bool(result._keys & AUTOGRAD):
        return result
    if requires_grad:
        return _finish(result, True)
    return result.requires_grad_(False) if result.is_leaf else result.detach()


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of `data`, of this tensor's dtype and device unless told otherwise."""
    return tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )


FUNCTIONS = {"as_tensor": as_tensor, "asarray": asarray, "from_numpy": from_numpy, "frombuffer": frombuffer, "tensor": tensor}
METHODS = {"new_tensor": new_tensor}
