"""`torch._C.TensorBase`: the class that torch derives Tensor from."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core.tensor import Tensor


class _BaseOfTensors(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        if bases:
            raise RuntimeError("Cannot subclass _TensorBase directly")
        return super().__new__(mcs, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("Cannot directly construct TensorBase; subclass it and then construct that")

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, Tensor)

    def __getattr__(cls, name: str) -> Any:
        return getattr(Tensor, name)


class TensorBase(metaclass=_BaseOfTensors):
    """All tensors are instances of it; attributes are those of Tensor."""


_TensorBase = TensorBase
