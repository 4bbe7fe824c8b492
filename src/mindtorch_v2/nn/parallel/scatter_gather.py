"""Dividing inputs over devices, and putting results together again."""

from __future__ import annotations

from typing import Any

from ... import _surface as torch
from ..._core.device import device as Device
from ..._core.tensor import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _check_devices(function: str, devices: Any) -> None:
    for index in devices:
        if Device(index).type != "cpu":
            raise NotImplementedError(f"torch.nn.parallel.{function}: there is no device {index!r} to use")


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """Tensors cut into a part for each device, containers part by part, anything else repeated."""
    devices = list(target_gpus)
    _check_devices("scatter", devices)

    def parts(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            return list(torch.chunk(value, len(devices), dim))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*items) for items in zip(*map(parts, value), strict=False)]
        if isinstance(value, tuple) and value:
            return list(zip(*map(parts, value), strict=False))
        if isinstance(value, list) and value:
            return [list(items) for items in zip(*map(parts, value), strict=False)]
        if isinstance(value, dict) and value:
            return [type(value)(items) for items in zip(*map(parts, value.items()), strict=False)]
        return [value for _ in devices]

    return parts(inputs)


def scatter_kwargs(
    inputs: Any, kwargs: Any, target_gpus: Any, dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Positional and keyword arguments for each device, as many of the one as of the other."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    keywords = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(keywords))
    positional += [()] * (count - len(positional))
    keywords += [{}] * (count - len(keywords))
    return tuple(positional), tuple(keywords)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Results of several devices as one: tensors joined, containers part by part."""
    _check_devices("gather", [target_device])

    def joined(values: Any) -> Any:
        first = values[0]
        if isinstance(first, Tensor):
            return torch.cat(list(values), dim)
        if first is None:
            return None
        if isinstance(first, dict):
            return type(first)((key, joined([value[key] for value in values])) for key in first)
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)(*map(joined, zip(*values, strict=True)))
        return type(first)(map(joined, zip(*values, strict=True)))

    return joined(outputs)
