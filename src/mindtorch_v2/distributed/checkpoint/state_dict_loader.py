"""torch.distributed.checkpoint.state_dict_loader: load."""

from __future__ import annotations

import os
import warnings
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._core.tensor import Tensor
from ._plan import flat_state, is_alone, part_of, put, states_of, together
from .filesystem import FileSystemReader
from .metadata import Metadata, TensorStorageMetadata
from .stateful import Stateful

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state's tensors with what a folder has for them, in place; each process takes the part that it has of a tensor."""
    if planner is not None:
        raise NotImplementedError("checkpoint.load(planner=)")
    if storage_reader is None:
        if not checkpoint_id:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader is None.")
        storage_reader = FileSystemReader(checkpoint_id)
    reader = storage_reader

    def read() -> None:
        metadata = reader.read_metadata()
        states = states_of(state_dict)
        for name, (path, value) in flat_state(states).items():
            if name not in metadata.state_dict_metadata:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            if isinstance(value, Tensor):
                _fill(reader, metadata, name, value)
            else:
                put(states, path, reader.read(metadata.storage_data[name, ()]))
        for key, value in state_dict.items():
            if isinstance(value, Stateful):
                value.load_state_dict(states[key])
            else:
                state_dict[key] = states[key]

    together("read", is_alone(no_dist), process_group, read)


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: FileSystemReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """`load` under its name of before. Every process reads for itself: `coordinator_rank` must be 0."""
    if coordinator_rank:
        raise NotImplementedError("checkpoint.load_state_dict(coordinator_rank=)")
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)


def _fill(reader: FileSystemReader, metadata: Metadata, name: str, tensor: Tensor) -> None:
    """Copy into a part of a tensor what the saved parts have of it."""
    entry = metadata.state_dict_metadata[name]
    part, offsets, size = part_of(tensor)
    if not isinstance(entry, TensorStorageMetadata):
        raise RuntimeError(f"{name} is a tensor here, and something else in the checkpoint")
    if tuple(entry.size) != size:
        raise ValueError(f"Size mismatch between saved {tuple(entry.size)} and current: {size} for {name}")
    with no_grad():
        for chunk in entry.chunks:
            begin = [max(a, b) for a, b in zip(offsets, chunk.offsets, strict=True)]
            end = [min(a + s, b + t) for a, s, b, t in zip(offsets, part.shape, chunk.offsets, chunk.sizes, strict=True)]
            if any(a >= b for a, b in zip(begin, end, strict=True)):
                continue
            saved = reader.read(metadata.storage_data[name, chunk.offsets])
            target = part
            for dim, (a, b) in enumerate(zip(begin, end, strict=True)):
                target = target.narrow(dim, a - offsets[dim], b - a)
                saved = saved.narrow(dim, a - chunk.offsets[dim], b - a)
            target.copy_(saved)
