"""Making one batch of several samples."""

from __future__ import annotations

import collections.abc
import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import _surface as torch
from ...._core import shared_memory
from ...._core.dtype import float64
from ...._core.storage import FOREIGN, Storage
from ...._core.tensor import Tensor
from . import worker

CollateMap = dict[Any, Callable[..., Any]]
default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_convert(data: Any) -> Any:
    """A single sample as tensors, without a batch dim."""
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray | np.generic):
        if isinstance(data, np.ndarray) and data.dtype.kind in "SUO":
            return data
        return torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _rebuilt_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, str | bytes):
        return _rebuilt_sequence(data, [default_convert(value) for value in data])
    return data


def _rebuilt_mapping(like: Any, items: dict[Any, Any]) -> Any:
    """Items in a mapping of another's type, with its attributes, where that can be made of them."""
    try:
        if isinstance(like, collections.abc.MutableMapping):
            clone = copy.copy(like)
            clone.update(items)
            return clone
        return type(like)(items)  # type: ignore[call-arg]
    except TypeError:
        return items


def _rebuilt_sequence(like: Any, parts: list[Any]) -> Any:
    """Parts in a sequence of another's type, with its attributes, where that can be made of them."""
    try:
        if isinstance(like, collections.abc.MutableSequence):
            clone = copy.copy(like)
            for at, part in enumerate(parts):
                clone[at] = part
            return clone
        return type(like)(parts)  # type: ignore[call-arg]
    except TypeError:
        return parts


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Samples as one: by the map's function for the first sample's type, or item by item for containers."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            for listed, candidate in collate_fn_map.items():
                if isinstance(first, listed):
                    function = candidate
                    break
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        items = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return _rebuilt_mapping(first, items)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence):
        if not all(len(sample) == len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple) else _rebuilt_sequence(first, parts)
    raise TypeError(default_collate_err_msg_format.format(kind))


def _in_shared_memory(first: Any, count: int) -> Any:
    """Room for a batch where the parent process can see it, so that it is written once and not copied after."""
    shape = (count, *first._array.shape)
    data = shared_memory.new_segment(count * first._array.nbytes).data
    tensor: Any = object.__new__(Tensor)
    tensor._array = data.view(first._array.dtype).reshape(shape)
    tensor._keys, tensor._base, tensor._storage = 0, None, Storage(data, external=FOREIGN)
    return tensor


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Tensors of one shape, stacked."""
    samples = list(batch)
    first = samples[0]
    plain = all(type(sample) is Tensor and sample._keys == 0 and sample.shape == first.shape for sample in samples)
    if worker.get_worker_info() is not None and plain and all(sample.dtype is first.dtype for sample in samples):
        room = _in_shared_memory(first, len(samples))
        np.stack([sample._array for sample in samples], out=room._array)
        return room
    return torch.stack(samples, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Arrays as tensors, stacked; TypeError for text and objects."""
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise TypeError(default_collate_err_msg_format.format(first.dtype))
    return collate([torch.as_tensor(sample) for sample in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """NumPy's numbers in a tensor of their dtype."""
    return torch.as_tensor(list(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Numbers in a tensor of float64."""
    return torch.tensor(batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Integers or truth values in a tensor."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Text as it is."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Samples as one: tensors are stacked, numbers become tensors, containers are collated item by item."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
