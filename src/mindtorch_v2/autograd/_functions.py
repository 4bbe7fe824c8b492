"""torch.autograd._functions: custom Functions that torch keeps for programs of earlier releases."""

from __future__ import annotations

import math
from typing import Any

from .._autograd.function import Function
from .._core.tensor import Tensor
from .._dispatch.registry import aten

__all__ = ["Resize"]


class Resize(Function):
    """`Resize.apply(tensor, sizes)`: the elements in another shape; RuntimeError where their number would change."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:  # type: ignore[override]
        shape, count = tensor._array.shape, math.prod(sizes)
        if tensor._array.size != count:
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the given tensor has a size "
                f"of {'x'.join(map(str, shape))} ({tensor._array.size} elements). autograd's resize can only change the shape "
                "of a given tensor, while preserving the number of elements. "
            )
        ctx.shape = shape
        resized: Tensor = aten.clone(aten.reshape(tensor, sizes))
        return resized

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return aten.reshape(grad, ctx.shape), None
