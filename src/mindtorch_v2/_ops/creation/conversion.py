"""Tensor methods that change dtype, device or format, and those that lead out of tensors into Python and NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.copy_on_write import is_shared_lazily, own_memory
from ..._core.device import device as Device
from ..._core.keys import AUTOGRAD, CONJUGATED, LAZY, META, NPU, PYTHON, SPARSE
from ..._core.memory_format import contiguous_format, memory_format, sparse_csr
from ..._core.sparse import CompressedTensor
from ..._core.tensor import Tensor, make_external, storage_of
from ..._core.threads import threads
from ..._dispatch.errors import type_name
from ..._dispatch.lazy_values import resolved
from ..._dispatch.registry import aten
from .._support.warn import warn_once
from .copy import in_memory_format, to_device, to_dtype, to_dtype_layout, to_other

METHODS: dict[str, Callable[..., Any]] = {}
PROPERTIES: dict[str, property] = {}

_to_dtype, _to_device, _to_other, _to_dtype_layout = to_dtype.call, to_device.call, to_other.call, to_dtype_layout.call


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    METHODS[function.__name__] = function
    return function


# ---------------------------------------------------------------- to


def _describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    names = [_kind_name(a) for a in args] + [f"{k}={_kind_name(v)}" for k, v in kwargs.items()]
    return ", ".join(names) + ("" if args else ", ")


def _kind_name(value: Any) -> str:
    if isinstance(value, dt.dtype | Device | memory_format):
        return f"torch.{type(value).__name__}"
    return type_name(value)


def _wrong_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    rest = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)"
    return TypeError(
        f"to() received an invalid combination of arguments - got ({_describe(args, kwargs)}), but "
        f"expected one of:\n * (torch.device device = None, torch.dtype dtype = None, {rest}\n"
        f" * (torch.dtype dtype, {rest}\n * (Tensor tensor, {rest}\n"
    )


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, bool, Any]:
    """(device, dtype, non_blocking, copy, memory_format) of the arguments that `Tensor.to` takes in its forms."""
    options = dict(kwargs)
    names = ["non_blocking", "copy"]
    if args:
        first, rest = args[0], list(args[1:])
        if isinstance(first, Tensor):
            options.update(device=first.device, dtype=first.dtype)
        elif isinstance(first, dt.dtype) or first in (int, float, bool):
            options["dtype"] = first
        elif first is None or isinstance(first, str | Device | int):
            options["device"] = first
            if rest and (rest[0] is None or isinstance(rest[0], dt.dtype)):
                options["dtype"] = rest.pop(0)
        else:
            raise _wrong_arguments(args, kwargs)
        if len(rest) > 2 or not all(isinstance(r, bool) for r in rest) or set(names[: len(rest)]) & set(kwargs):
            raise _wrong_arguments(args, kwargs)
        options.update(zip(names, rest, strict=False))
    device, dtype, format_ = options.pop("device", None), options.pop("dtype", None), options.pop("memory_format", None)
    non_blocking, copy = bool(options.pop("non_blocking", False)), bool(options.pop("copy", False))
    if options or (dtype is not None and not isinstance(dtype, dt.dtype) and dtype not in (int, float, bool)):
        raise _wrong_arguments(args, kwargs)
    return None if device is None else Device(device), dtype, non_blocking, copy, format_


@method
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """to(dtype), to(device), to(device, dtype), to(other), each with non_blocking, copy, memory_format."""
    if len(args) == 1 and not kwargs:
        wanted = args[0]
        if wanted.__class__ is dt.dtype:
            return _to_dtype(self, wanted)
        if isinstance(wanted, Tensor):
            return _to_other(self, wanted)
    device, dtype, non_blocking, copy, format_ = parse_to(args, kwargs)
    if device is None and dtype is not None:
        return _to_dtype(self, dtype, non_blocking, copy, format_)
    return _to_dtype_layout(self, dtype=dtype, device=device, non_blocking=non_blocking, copy=copy, memory_format=format_)


def _converter(name: str, dtype: dt.dtype) -> None:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        return _to_dtype(self, dtype, memory_format=memory_format)

    convert.__name__ = convert.__qualname__ = name
    METHODS[name] = convert


for _name, _dtype in (
    ("float", dt.float32),
    ("double", dt.float64),
    ("half", dt.float16),
    ("bfloat16", dt.bfloat16),
    ("int", dt.int32),
    ("long", dt.int64),
    ("short", dt.int16),
    ("char", dt.int8),
    ("byte", dt.uint8),
    ("bool", dt.bool_),
    ("chalf", dt.complex32),
    ("cfloat", dt.complex64),
    ("cdouble", dt.complex128),
):
    _converter(_name, _dtype)


@method
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    return _to_dtype_layout(self, device=Device("cpu"), memory_format=memory_format)


def _on_device(name: str) -> property:
    return property(lambda self: self.device.type == name)


def _mover(name: str) -> None:
    """Add `Tensor.cuda`, `Tensor.npu` and the like, and `Tensor.is_cuda` ... beside them."""

    def move(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        wanted = (
            Device(name) if device is None else Device(device) if isinstance(device, str | Device) else Device(name, device)
        )
        return _to_dtype_layout(self, device=wanted, non_blocking=non_blocking, memory_format=memory_format)

    move.__name__ = move.__qualname__ = name
    METHODS[name] = move
    PROPERTIES[f"is_{name}"] = _on_device(name)


for _name in ("cuda", "npu", "xpu", "ipu", "hpu", "mtia"):
    _mover(_name)
for _name in ("mps", "xla", "vulkan", "maia", "ve"):
    PROPERTIES[f"is_{_name}"] = _on_device(_name)


PROPERTIES["is_sparse"] = property(lambda self: self._keys & SPARSE != 0 and not isinstance(self, CompressedTensor))
PROPERTIES["is_sparse_csr"] = property(lambda self: isinstance(self, CompressedTensor) and self._layout is sparse_csr)
for _name in ("is_mkldnn", "is_nested", "is_quantized"):  # ways to hold data that do not exist here
    PROPERTIES[_name] = property(lambda self: False)


@method
def get_device(self: Tensor) -> int:
    """The index of the device, -1 on the CPU."""
    index = self.device.index
    return -1 if self.device.type in ("cpu", "meta") else 0 if index is None else index


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, or the tensor as another type, given by dtype, name or legacy class."""
    if dtype is None:
        return f"torch.{'sparse.' if self.is_sparse else ''}{self.dtype.scalar_name}Tensor"  # type: ignore[attr-defined]
    wanted = type_dtype(dtype)
    if self._keys & SPARSE:
        return self.to(wanted, non_blocking)  # type: ignore[attr-defined]
    return _to_dtype(self, wanted, non_blocking)


_type.__name__ = _type.__qualname__ = "type"
METHODS["type"] = _type


_BY_TYPE_NAME = {f"torch.{d.scalar_name}Tensor": d for d in dt.DTYPES.values()}


def type_dtype(kind: Any) -> dt.dtype:
    """The dtype that a type means: a dtype, "torch.FloatTensor", or a class such as torch.FloatTensor."""
    if isinstance(kind, dt.dtype):
        return kind
    if kind is Tensor or kind == "torch.Tensor":
        return dt.get_default_dtype()
    if getattr(kind, "is_cuda", False):
        raise TypeError(f"type torch.cuda.{kind.__name__} not available. Torch not compiled with CUDA enabled.")
    known = (
        _BY_TYPE_NAME.get(kind.replace("torch.sparse.", "torch.", 1)) if isinstance(kind, str) else getattr(kind, "dtype", None)
    )
    if not isinstance(known, dt.dtype):
        raise ValueError(f"invalid type: '{kind if isinstance(kind, str) else getattr(kind, '__name__', kind)}'")
    return known


# ---------------------------------------------------------------- memory formats


@method
def is_contiguous(self: Tensor, memory_format: Any = contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of a memory format."""
    if memory_format is contiguous_format:
        return self._array.flags.c_contiguous
    return in_memory_format(self._array, memory_format)


@method
def contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """The tensor itself if it lies in memory in the order of the format, else a copy that does."""
    if memory_format is contiguous_format:
        if self._array.flags.c_contiguous:
            return self
    elif in_memory_format(self._array, memory_format):
        return self
    return aten.contiguous(self, memory_format=memory_format)


# ---------------------------------------------------------------- numbers


@method
def item(self: Tensor) -> Any:
    """The only element, as a Python number."""
    return aten.item(self)


@method
def tolist(self: Tensor) -> Any:
    """Nested lists of Python numbers; a number for a 0-d tensor."""
    if self._keys & META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if self._keys & NPU:
        self = self.detach().cpu()
    return resolved(self)._array.tolist()


def _warn_of_history(self: Tensor) -> None:
    """Warn, once, where a tensor that requires grad becomes a number, which has no history."""
    if self._keys & AUTOGRAD and threads.state.grad_enabled:
        warn_once(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first."
        )


def _only_element(self: Tensor) -> Any:
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return aten.item(self)


@method
def __float__(self: Tensor) -> float:
    _warn_of_history(self)
    number = _only_element(self)
    if number.__class__ is complex:
        if number.imag:
            raise RuntimeError("value cannot be converted to type double without overflow")
        number = number.real
    return float(number)


@method
def __int__(self: Tensor) -> int:
    number = _only_element(self)
    if number.__class__ is complex:
        if number.imag:
            raise RuntimeError("value cannot be converted to type int64_t without overflow")
        number = number.real
    return int(number)


@method
def __complex__(self: Tensor) -> complex:
    _warn_of_history(self)
    return complex(_only_element(self))


@method
def __index__(self: Tensor) -> int:
    if self._array.dtype.kind not in "iub" or self._array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(aten.item(self))


@method
def __bool__(self: Tensor) -> bool:
    return aten.is_nonzero(self)


# ---------------------------------------------------------------- NumPy


@method
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """An array on the same memory; `force=True` detaches the tensor and copies it from its device first."""
    if force:
        self = resolved(self.detach().cpu())
    if self._keys & PYTHON and hasattr(type(self), "__torch_dispatch__"):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")
    # Another subclass that has memory shows it as any tensor does.
    if self._keys & ~PYTHON & (~0 if threads.state.grad_enabled else ~AUTOGRAD):
        if self._keys & AUTOGRAD:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._keys & LAZY:
            bit, function = ("conjugate", "conj") if self._keys & CONJUGATED else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{function}().numpy() instead."
            )
        raise TypeError(
            f"can't convert {self.device.type} device type tensor to numpy. Use Tensor.cpu() to copy the "
            "tensor to host memory first."
        )
    array = self._array
    if array.dtype.kind == "V":
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
    if not array.flags.writeable and is_shared_lazily(self._storage):
        own_memory(storage_of(self))
        array = self._array
    return array.view()  # an array of its own, since NumPy allows to change an array's shape in place


@method
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    return np.array(numpy(self), dtype=dtype, copy=copy)


@method
def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What a NumPy function makes of the result when it was given a tensor."""
    return make_external(np.asarray(array))


# ---------------------------------------------------------------- as a sequence


@method
def __len__(self: Tensor) -> int:
    if not self._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


@method
def __iter__(self: Tensor) -> Iterator[Tensor]:
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(aten.unbind(self, 0))


@method
def __reversed__(self: Tensor) -> Tensor:
    return aten.flip(self, (0,)) if self._array.ndim else self


@method
def __format__(self: Tensor, format_spec: str) -> str:
    if self._array.ndim == 0 and not self._keys & META:
        return format(aten.item(self), format_spec)
    return object.__format__(self, format_spec)
