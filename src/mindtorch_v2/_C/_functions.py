"""torch._C._functions: classes of nodes that belong to no op."""

from __future__ import annotations

from typing import Any

from .._autograd.function import Error, delayed_errors
from .._autograd.inplace import CopySlices
from .._autograd.nodes.accumulate import AccumulateGrad
from .._autograd.nodes.node import Node
from .._autograd.undefined import UndefinedGrad
from .._core.tensor import Tensor

__all__ = ["AccumulateGrad", "CopySlices", "DelayedError", "Error", "UndefinedGrad"]


class DelayedError(Node):
    """Called with tensors, returns them with histories whose backward raises a RuntimeError."""

    __slots__ = ("message",)

    def __init__(self, message: str, num_inputs: int) -> None:
        self.message = message

    def __call__(self, *tensors: Tensor | None) -> Any:
        made = delayed_errors(tensors, self.message)
        return made[0] if len(made) == 1 else made
