"""Tensor methods, operators and properties that are more than an op of the same name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._core.keys import NPU
from ._core.printing import tensor_repr
from ._core.tensor import Tensor, make_external
from ._core.untyped_storage import UntypedStorage
from ._core.untyped_storage import untyped_storage as _untyped_storage
from ._dispatch import backends, interception
from ._dispatch.registry import aten

METHODS: dict[str, Callable[..., Any]] = {}
PROPERTIES: dict[str, property] = {}


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    METHODS[function.__name__] = function
    return function


def _equals(op: Callable[..., Any]) -> Callable[..., Any]:
    """== and != with anything that is neither tensor nor number compare identity, as Python does for strangers."""
    def compare(self: Tensor, other: Any) -> Any:
        try:
            return op(self, other)
        except TypeError:
            return NotImplemented

    return compare


OPERATORS: dict[str, Any] = {
    "__add__": aten.add, "__radd__": aten.add, "__iadd__": aten.add_,
    "__sub__": aten.sub, "__rsub__": aten.rsub, "__isub__": aten.sub_,
    "__mul__": aten.mul, "__rmul__": aten.mul, "__imul__": aten.mul_,
    "__truediv__": aten.div, "__itruediv__": aten.div_,
    "__rtruediv__": lambda self, other: aten.reciprocal(self) * other,
    "__pow__": aten.pow, "__rpow__": lambda self, other: aten.pow(other, self), "__ipow__": aten.pow_,
    "__neg__": aten.neg, "__abs__": aten.abs, "__invert__": aten.bitwise_not,
    "__matmul__": aten.matmul, "__rmatmul__": lambda self, other: aten.matmul(other, self),
    "__eq__": _equals(aten.eq), "__ne__": _equals(aten.ne),
    "__lt__": aten.lt, "__le__": aten.le, "__gt__": aten.gt, "__ge__": aten.ge,
    "__and__": aten.__and__, "__rand__": aten.__and__, "__or__": aten.__or__, "__ror__": aten.__or__,
    "__xor__": aten.__xor__, "__rxor__": aten.__xor__,
    "__iand__": aten.bitwise_and_, "__ior__": aten.bitwise_or_, "__ixor__": aten.bitwise_xor_,
    "__hash__": lambda self: id(self),
    # NumPy must not take our tensors apart element by element; it asks us instead.
    "__array_priority__": 1000,
}


# ---------------------------------------------------------------- text and shorthands


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory behind this tensor."""
    return _untyped_storage(self)


def _typed_storages() -> Any:
    return import_module("._typed_storage", __package__)  # here, because few programs ask for them


@method
def storage(self: Tensor) -> Any:
    """The memory behind this tensor as a TypedStorage. Deprecated: untyped_storage() is what stays."""
    return _typed_storages().storage_with_warning(self)


@method
def _typed_storage(self: Tensor) -> Any:
    return _typed_storages().typed_storage(self)


@method
def storage_type(self: Tensor) -> Any:
    """The class of this tensor's storage(), e.g. torch.FloatStorage."""
    return _typed_storages().storage_type(self)


@method
def is_shared(self: Tensor) -> bool:
    return False


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked, so that a device copies from it while the program goes on."""
    return any(backend.is_pinned(self._array) for backend in backends.loaded.values())


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor in page-locked memory: itself if it is there already, else a copy. Needs an accelerator."""
    if self.device.type != "cpu":
        kind = f"torch.{self.device.type}.{self.dtype.scalar_name}Tensor"
        raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    if not backends.available("npu"):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return make_external(backends.loaded["npu"].pin(self._array))


@method
def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor as an instance of a subclass."""
    return interception.as_subclass(self, cls)


@method
def __repr__(self: Tensor, *, tensor_contents: Any = None) -> str:
    node = self.grad_fn
    shown = self.detach().cpu() if self._keys & NPU else self
    return tensor_repr(shown._array, dtype=self.dtype, device=self.device, requires_grad=self.requires_grad,
                       grad_fn_name=None if node is None else node.name(), contents=tensor_contents)


PROPERTIES["T"] = property(lambda self: aten.numpy_T(self))
PROPERTIES["mT"] = property(lambda self: aten.mT(self))
