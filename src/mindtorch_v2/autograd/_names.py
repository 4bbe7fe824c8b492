"""Names that torch.autograd has besides its own: what it imports, and helpers that libraries reach for."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._autograd.nodes.edges import GradientEdge
from .._autograd.nodes.saved_tensor import SavedTensor
from .._core.size import Size
from .._core.tensor import Tensor

__all__ = ["SavedTensor", "torch"]


def _calculate_shape(output: Tensor | GradientEdge, grad: Tensor, is_grads_batched: bool) -> tuple[Size, Size]:
    """The sizes of an output and of the gradient that is given for it, without the dim of the batch."""
    if isinstance(output, GradientEdge):
        form: Any = output.node.inputs
        shape = Size((form[output.output_nr] if form.__class__ is list else form)[0])
    else:
        shape = output.shape
    return shape, Size(grad.shape[1:] if is_grads_batched else grad.shape)
