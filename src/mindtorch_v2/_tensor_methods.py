"""Tensor methods, operators and properties that are more than an op of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._autograd import backward as _backward
from ._autograd import graph
from ._autograd.node import Handle
from ._core import dtype as dt
from ._core.keys import AUTOGRAD
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


# ---------------------------------------------------------------- text and shorthands


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
