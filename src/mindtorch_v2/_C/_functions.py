"""torch._C._functions: classes of nodes that belong to no op."""

from __future__ import annotations

from typing import Any

from .._autograd.function import Error, delayed_errors
from .._autograd.inplace import CopySlices
from .._autograd.nodes.accumulate import AccumulateGrad
from .._autograd.nodes.node import Gradients, Node
from .._autograd.nodes.saved import set_history
from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.registry import aten

__all__ = ["AccumulateGrad", "CopySlices", "DelayedError", "Error", "UndefinedGrad"]


class DelayedError(Node):
    """Called with tensors, returns them with histories whose backward raises a RuntimeError."""

    __slots__ = ("message",)

    def __init__(self, message: str, num_inputs: int) -> None:
        self.message = message

    def __call__(self, *tensors: Tensor | None) -> Any:
        made = delayed_errors(tensors, self.message)
        return made[0] if len(made) == 1 else made


class UndefinedGradBackward(Node):
    """Passes on no gradient, as if its output had not been used."""

    __slots__ = ()

    def apply(self, grads: Gradients) -> Gradients:
        return [None] * len(self.edges)


class UndefinedGrad(Node):
    """Called with a tensor, returns it with a history that passes on no gradient."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def __call__(self, *tensors: Tensor | None) -> Any:
        (tensor,) = tensors
        assert tensor is not None
        alias: Tensor = aten.detach(tensor)
        if tensor._keys & AUTOGRAD:
            state = threads.state
            node = object.__new__(UndefinedGradBackward)
            node.edges, node.hooks = ((tensor._node, tensor._output_nr),), None
            node.inputs = (alias._array.shape, alias._array.dtype)
            node.sequence = state.sequence
            state.sequence += 1
            set_history(alias, node, 0)
        return alias
