"""The legacy constructors: torch.Tensor(2, 3), torch.FloatTensor([1, 2]), Tensor.new(...)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.device import device as Device
from ..._core.size import Size
from ..._core.tensor import Tensor
from ..._core.untyped_storage import MemoryObject
from ..._dispatch.registry import aten
from .._support.warn import warn_once
from .conversion import type_dtype
from .from_data import as_tensor, of_storage, tensor


def _construct(dtype: dt.dtype, args: tuple[Any, ...], device: Any) -> Tensor:
    """Common to all constructors: a size gives uninitialized memory, data is copied, a tensor or a storage is aliased."""
    if device is not None and Device(device).type != "cpu":
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {Device(device).type} was passed")
    if not args:
        return aten.empty((0,), dtype=dtype)
    first = args[0]
    if len(args) == 1 and not isinstance(first, int | np.integer):
        if isinstance(first, Size):
            return aten.empty(first, dtype=dtype)
        if isinstance(first, Tensor):
            if device is not None:
                raise RuntimeError(
                    "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
                    "Use torch.tensor(...) or torch.as_tensor(...) instead."
                )
            if first.dtype is not dtype and first.ndim:
                raise TypeError(f"expected {dtype} (got {first.dtype})")
            return aten.to(aten.detach(first), dtype=dtype)
        if isinstance(first, MemoryObject):
            return of_storage(first, dtype)
        if isinstance(first, str | bytes):
            raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
        if isinstance(first, float | complex):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        return tensor(first, dtype=dtype) if isinstance(first, np.ndarray) else as_tensor(first, dtype=dtype)
    for each in args:
        if isinstance(each, float) or not hasattr(each, "__index__"):
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(
                f"new() received an invalid combination of arguments - got ({kinds}), but expected one "
                "of:\n * (*, torch.device device = None)\n * (Tensor other)\n * (tuple of ints size, *, "
                "torch.device device = None)\n * (object data, *, torch.device device = None)\n"
            )
    return aten.empty(tuple(int(n) for n in args), dtype=dtype)


def _new_tensor(cls: type, *args: Any, device: Any = None) -> Any:
    """torch.Tensor(...), of the default dtype, or of that of the tensor it is given; a subclass gets an instance of its own."""
    aliased = len(args) == 1 and device is None and isinstance(args[0], Tensor)
    tensor = aten.alias(args[0]) if aliased else _construct(dt.get_default_dtype(), args, device)
    return tensor if cls is Tensor else tensor.as_subclass(cls)  # type: ignore[attr-defined]


class _LegacyType(type):
    """torch.FloatTensor and the other legacy types: not tensor classes, but names for tensors of one dtype."""

    dtype: dt.dtype
    is_cuda = is_xpu = is_sparse = False

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if bases:
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        return _construct(cls.dtype, args, device)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cpu and not instance.is_sparse

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


_LEGACY = {
    f"{d.scalar_name}Tensor": d
    for d in (dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.bool_)
}


def new(self: Tensor, *args: Any, device: Any = None, **named: Any) -> Tensor:
    """A tensor of this one's dtype, made as the legacy constructors do."""
    if not args and len(named) == 1 and (named.keys() & {"size", "data", "other"}):
        (value,) = named.values()
        args = (Size(value),) if "size" in named else (value,)
    elif named:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(named))}'")
    return _new_sparse(self, args) if self.is_sparse else _construct(self.dtype, args, device)  # type: ignore[attr-defined]


def _new_sparse(like: Tensor, args: tuple[Any, ...]) -> Tensor:
    """A sparse tensor from indices, values and perhaps a size; from a size alone, one without entries."""
    from ..sparse.coordinates import sparse_coo_tensor  # it stands on this package

    if len(args) in (2, 3) and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
        return sparse_coo_tensor(*args)
    size = args[0] if len(args) == 1 and isinstance(args[0], Size) else args or (0,)
    if not all(hasattr(n, "__index__") for n in size):
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
            " * (Tensor indices, Tensor values)\n * (Tensor indices, Tensor values, tuple of ints size)\n"
            " * (tuple of ints size)\n"
        )
    return sparse_coo_tensor(tuple(int(n) for n in size), dtype=like.dtype)


def set_default_tensor_type(t: Any, /) -> None:
    """Make the dtype of a type, such as torch.DoubleTensor, the default."""
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    dt.set_default_dtype(type_dtype(t))


FUNCTIONS: dict[str, Any] = {
    name: _LegacyType(name, (), {"dtype": dtype, "__module__": "torch"}) for name, dtype in _LEGACY.items()
}
FUNCTIONS["set_default_tensor_type"] = set_default_tensor_type
METHODS = {"__new__": staticmethod(_new_tensor), "new": new}
