"""The form, shape and dtype, in which a node takes a gradient.

The engine brings each result of a node to the form that its receiver takes: it sums over the dims that broadcasting added,
drops the imaginary part, casts. So no formula mentions broadcasting or type promotion.
"""

from __future__ import annotations

from typing import Any

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .node import Node


def sum_to_shape(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum over the dims that broadcasting from `shape` added or stretched."""
    stretched = grad._array.shape
    lead = len(stretched) - len(shape)
    dims = [*range(lead), *[i + lead for i, n in enumerate(shape) if n == 1 and stretched[i + lead] != 1]]
    if dims:
        grad = aten.sum(grad, dims, True)
    return aten.view(grad, shape) if lead > 0 else grad


def to_form(node: Node | None, position: int, grad: Tensor, form: tuple[tuple[int, ...], Any] | None) -> Tensor:
    """The gradient that `node` returned at `position`, in its receiver's form; RuntimeError if the shapes do not broadcast.

    Without a node it is one that the pass starts from.
    """
    if form is None:
        return grad
    shape, np_dtype = form
    array = grad._array
    if array.shape != shape:
        if not _broadcasts(shape, array.shape):
            source = "" if node is None else f"Function {node.name()} returned an "
            raise RuntimeError(
                f"{source}invalid gradient at index {position} - got {list(array.shape)} but expected shape compatible with "
                f"{list(shape)}"
            )
        grad = sum_to_shape(grad, shape)
    if array.dtype != np_dtype:
        if array.dtype.kind == "c" and np_dtype.kind != "c":
            grad = aten.real(grad)
        if grad._array.dtype != np_dtype:
            grad = grad.to(dt.from_numpy(np_dtype))
    return grad


def _broadcasts(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether a tensor of shape `small` can be broadcast to `large`."""
    return len(small) <= len(large) and all(n in (1, m) for n, m in zip(reversed(small), reversed(large), strict=False))
