"""Undefined gradients: a node that passes on none, as if its output had not been used."""

from __future__ import annotations

from typing import Any

from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch.registry import aten
from .nodes.node import Gradients, Node
from .nodes.saved import set_history


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
