"""Making one batch of several samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import _surface as torch
from ..._core.dtype import float64
from ..._core.tensor import Tensor

_BAD = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_collate(batch: Any) -> Any:
    """Samples as one: tensors are stacked, numbers become tensors, containers are collated item by item."""
    first = batch[0]
    kind = type(first)
    if isinstance(first, Tensor):
        return torch.stack(list(batch), 0)
    if isinstance(first, np.ndarray | np.generic):
        if isinstance(first, np.ndarray):
            if first.dtype.kind in "SUO":
                raise TypeError(_BAD.format(first.dtype))
            return torch.stack([torch.as_tensor(sample) for sample in batch], 0)
        return torch.as_tensor(list(batch))
    if isinstance(first, float):
        return torch.tensor(batch, dtype=float64)
    if isinstance(first, int):
        return torch.tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        collated = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return _rebuilt(kind, collated)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(default_collate(samples) for samples in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(samples) for samples in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _rebuilt(kind, parts)
    raise TypeError(_BAD.format(kind))


def _rebuilt(kind: Callable[..., Any], parts: Any) -> Any:
    """Collated parts in a container of the samples' own type, where that can be made of them."""
    try:
        return kind(parts)
    except TypeError:
        return parts


def default_convert(data: Any) -> Any:
    """A single sample as tensors, without a batch dim."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray | np.generic):
        if isinstance(data, np.ndarray) and data.dtype.kind in "SUO":
            return data
        return torch.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt(type(data), {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _rebuilt(type(data), [default_convert(value) for value in data])
    return data
