"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from ..modules._attributes import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_device(param: Any, device: Any) -> Any:
    if device is not None and param.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param.device


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """The elements of all parameters, one parameter after the other."""
    device = None
    parts = []
    for param in parameters:
        device = _check_device(param, device)
        parts.append(aten.view(param, (-1,)))
    return aten.cat(parts)


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Give each parameter its share of a vector; afterwards they look at the vector's memory."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    device = None
    start = 0
    for param in parameters:
        device = _check_device(param, device)
        count = param.numel()
        param.data = aten.view_as(vec[start : start + count], param).data
        start += count
