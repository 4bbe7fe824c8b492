"""torch.autograd.variable: Variable, the former name of tensors that require grad."""

from __future__ import annotations

from typing import Any

from .._autograd.engine import queue_callback
from .._autograd.graph import require_grad
from .._core.tensor import Tensor
from .._dispatch.registry import aten

__all__ = ["Variable", "VariableMeta"]


class _ExecutionEngine:
    """The part of torch's engine object that libraries use: callbacks for the end of a backward pass."""

    queue_callback = staticmethod(queue_callback)


class VariableMeta(type):
    """The class of Variable, which every tensor is an instance of."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=...)` is a tensor; every tensor is a Variable."""

    _execution_engine = _ExecutionEngine()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False) -> Any:
        """A tensor on the memory of `data`, or an empty one."""
        tensor: Tensor = aten.empty((0,)) if data is None else aten.detach(data)
        if requires_grad:
            require_grad(tensor)
        return tensor
