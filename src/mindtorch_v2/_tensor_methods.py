"""Tensor methods, operators and properties that are more than an op of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._autograd import backward as _backward
from ._autograd import graph
from ._autograd.node import Handle
from ._core import dtype as dt
from ._core.device import device as Device
from ._core.keys import AUTOGRAD
from ._core.memory_format import contiguous_format, memory_format
from ._core.printing import tensor_repr
from ._core.tensor import Tensor
from ._dispatch import interception
from ._dispatch.registry import aten

METHODS: dict[str, Callable[..., Any]] = {}
PROPERTIES: dict[str, property] = {}


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    METHODS[function.__name__] = function
    return function


def _reversed(name: str) -> Callable[..., Any]:
    """`1 + x`: the op with its operands the other way round."""
    def call(self: Tensor, other: Any) -> Any:
        return getattr(aten, name)(other if isinstance(other, Tensor) else as_tensor(other, self), self)

    return call


def as_tensor(number: Any, like: Tensor) -> Tensor:
    """A number as a 0-d tensor that takes part in promotion like the number itself would."""
    return aten.scalar_tensor(number, dtype=dt.result_type((like.dtype, dt.DIM_TENSOR), (dt.number_dtype(number), dt.NUMBER)))


OPERATORS: dict[str, Any] = {
    "__add__": aten.add, "__radd__": aten.add, "__iadd__": aten.add_,
    "__sub__": aten.sub, "__rsub__": aten.rsub, "__isub__": aten.sub_,
    "__mul__": aten.mul, "__rmul__": aten.mul, "__imul__": aten.mul_,
    "__truediv__": aten.div, "__itruediv__": aten.div_,
    "__rtruediv__": lambda self, other: aten.reciprocal(self) * other,
    "__pow__": aten.pow, "__rpow__": lambda self, other: aten.pow(other, self), "__ipow__": aten.pow_,
    "__neg__": aten.neg, "__abs__": aten.abs, "__invert__": aten.bitwise_not,
    "__matmul__": aten.matmul, "__rmatmul__": lambda self, other: aten.matmul(other, self),
    "__eq__": aten.eq, "__ne__": aten.ne, "__lt__": aten.lt, "__le__": aten.le, "__gt__": aten.gt, "__ge__": aten.ge,
    "__and__": aten.__and__, "__rand__": aten.__and__, "__or__": aten.__or__, "__ror__": aten.__or__,
    "__xor__": aten.__xor__, "__rxor__": aten.__xor__,
    "__iand__": aten.bitwise_and_, "__ior__": aten.bitwise_or_, "__ixor__": aten.bitwise_xor_,
    "__hash__": object.__hash__,
    # NumPy must not take our tensors apart element by element; it asks us instead.
    "__array_priority__": 1000,
}


# ---------------------------------------------------------------- autograd


@method
def backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:
    _backward.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@method
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    graph.require_grad(self, requires_grad)
    return self


@method
def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf."""
    if not self._keys & AUTOGRAD:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if not self._node.is_accumulator:
        import weakref

        self._node._hooks().retain[self._output_nr] = weakref.ref(self)


@method
def register_hook(self: Tensor, hook: Callable[..., Any]) -> Handle:
    """Call `hook(grad)` when the gradient of this tensor is computed; it may return another one."""
    if not self._keys & AUTOGRAD:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return Handle(self._node._hooks().tensor.setdefault(self._output_nr, {}), hook)


@method
def detach(self: Tensor) -> Tensor:
    return aten.detach(self)


@method
def detach_(self: Tensor) -> Tensor:
    """Forget how this tensor came to be."""
    if self._base is not None and self._keys & AUTOGRAD:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._keys &= ~AUTOGRAD
    return self


def _get_grad(self: Tensor) -> Tensor | None:
    try:
        return self._grad
    except AttributeError:
        return None


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise TypeError(f"expected Tensor or None (got {type(value).__name__})")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value._array.shape != self._array.shape:
            raise RuntimeError(f"assigned grad has data of a different size: expected {list(self.shape)}, got "
                               f"{list(value.shape)}")
        if value._array.dtype != self._array.dtype:
            raise RuntimeError("assigned grad has data of a different type")
    self._grad = value


def _set_requires_grad(self: Tensor, value: bool) -> None:
    graph.require_grad(self, value)


def _set_data(self: Tensor, value: Tensor) -> None:
    """Point this tensor at another one's memory, history aside."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    self._array = value._array
    self._storage = value._storage
    if value._storage is None:
        from ._core.tensor import storage_of

        self._storage = storage_of(value)


PROPERTIES["grad"] = property(_get_grad, _set_grad, lambda self: _set_grad(self, None))
PROPERTIES["requires_grad"] = property(lambda self: self._keys & AUTOGRAD != 0, _set_requires_grad)
PROPERTIES["data"] = property(lambda self: aten.detach(self), _set_data)


# ---------------------------------------------------------------- conversion


@method
def contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    return self if is_contiguous(self, memory_format) else aten.contiguous(self, memory_format=memory_format)


@method
def is_contiguous(self: Tensor, memory_format: Any = contiguous_format) -> bool:
    if memory_format is contiguous_format:
        return self._array.flags.c_contiguous
    return np.moveaxis(self._array, 1, -1).flags.c_contiguous


@method
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """to(dtype), to(device), to(device, dtype), to(other), each with non_blocking, copy, memory_format."""
    kwargs = dict(kwargs)
    for name, value in zip(("first", "second", "non_blocking", "copy"), args, strict=False):
        if isinstance(value, Tensor):
            kwargs.update(dtype=value.dtype, device=value.device)
        elif isinstance(value, dt.dtype):
            kwargs["dtype"] = value
        elif isinstance(value, str | Device):
            kwargs["device"] = Device(value) if isinstance(value, str) else value
        elif isinstance(value, memory_format):
            kwargs["memory_format"] = value
        elif isinstance(value, bool):
            kwargs["non_blocking" if name in ("first", "second", "non_blocking") else "copy"] = value
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(value).__name__})")
    return aten.to(self, **kwargs)


def _converter(name: str, dtype: dt.dtype) -> None:
    def convert(self: Tensor) -> Tensor:
        return aten.to(self, dtype=dtype)

    convert.__name__ = name
    METHODS[name] = convert


for _name, _dtype in (("float", dt.float32), ("double", dt.float64), ("half", dt.float16), ("bfloat16", dt.bfloat16),
                      ("int", dt.int32), ("long", dt.int64), ("short", dt.int16), ("char", dt.int8), ("byte", dt.uint8),
                      ("bool", dt.bool_)):
    _converter(_name, _dtype)


@method
def item(self: Tensor) -> Any:
    return aten.item(self)


@method
def tolist(self: Tensor) -> Any:
    return self._array.tolist()


@method
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    if self._keys & AUTOGRAD and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return self._array


@method
def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    return np.array(numpy(self), dtype=dtype, copy=copy)


@method
def type(self: Tensor, dtype: Any = None) -> Any:
    if dtype is None:
        return f"torch.{self.dtype.scalar_name}Tensor"
    return aten.to(self, dtype=dtype)


@method
def __float__(self: Tensor) -> float:
    return float(aten.item(self))


@method
def __int__(self: Tensor) -> int:
    return int(aten.item(self))


@method
def __index__(self: Tensor) -> int:
    if self._array.dtype.kind not in "iub" or self._array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(aten.item(self))


@method
def __bool__(self: Tensor) -> bool:
    if self._array.size != 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous" if self._array.size else
                           "Boolean value of Tensor with no values is ambiguous")
    return bool(aten.item(self))


@method
def __len__(self: Tensor) -> int:
    if not self._array.ndim:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


@method
def __iter__(self: Tensor) -> Any:
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(aten.unbind(self, 0))


@method
def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor as an instance of a subclass."""
    return interception.as_subclass(self, cls)


@method
def __repr__(self: Tensor, *, tensor_contents: Any = None) -> str:
    node = self.grad_fn
    return tensor_repr(self._array, dtype=self.dtype, device=self.device, requires_grad=self.requires_grad,
                       grad_fn_name=None if node is None else node.name(), contents=tensor_contents)


PROPERTIES["T"] = property(lambda self: aten.numpy_T(self))
PROPERTIES["mT"] = property(lambda self: aten.mT(self))
