"""torch.onnx.operators: shapes as tensors, for models that are exported."""

from __future__ import annotations

from .. import _surface as torch
from .._core.dtype import int64
from .._core.tensor import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of a tensor as an int64 tensor."""
    return torch.tensor(tuple(x.shape), dtype=int64)  # type: ignore[no-any-return]


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """The tensor in the shape that a tensor of sizes says."""
    return torch.reshape(x, tuple(shape.tolist()))  # type: ignore[no-any-return]
