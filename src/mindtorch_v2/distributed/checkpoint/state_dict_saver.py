"""torch.distributed.checkpoint.state_dict_saver: save."""

from __future__ import annotations

import enum
import os
import warnings
from concurrent.futures import Future
from typing import Any

from ..._core.tensor import Tensor
from .._absent import absent_class
from ._plan import flat_state, is_alone, part_of, rank_of, states_of, together
from .filesystem import FileSystemWriter
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorProperties, TensorStorageMetadata

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state of all processes into a folder. Shards are written by those that have them, the rest by the first process.

    All processes call it with states of the same names.
    """
    if planner is not None:
        raise NotImplementedError("checkpoint.save(planner=)")
    if not use_collectives:
        raise NotImplementedError("checkpoint.save(use_collectives=False)")
    if storage_writer is None:
        if not checkpoint_id:
            raise RuntimeError("`checkpoint_id` must be specified if storage_writer is None.")
        storage_writer = FileSystemWriter(checkpoint_id)
    writer, alone = storage_writer, is_alone(no_dist)
    rank = rank_of(alone, process_group)

    def write() -> Any:
        writer.check()
        entries: dict[str, Any] = {}
        items: list[tuple[str, tuple[int, ...], Any]] = []
        paths = {}
        for name, (path, value) in flat_state(states_of(state_dict)).items():
            paths[name] = path
            if not isinstance(value, Tensor):
                entries[name] = BytesStorageMetadata()
                if rank == 0:
                    items.append((name, (), value))
                continue
            part, offsets, size = part_of(value)
            is_shard = tuple(part.shape) != size
            entry = TensorStorageMetadata(TensorProperties(str(value.dtype).rpartition(".")[2]), size, [])
            if (rank == 0 or is_shard) and (part.numel() or not is_shard):
                entry.chunks.append(ChunkStorageMetadata(offsets, tuple(part.shape)))
                items.append((name, offsets, part.clone()))
            entries[name] = entry
        return entries, paths, writer.write(rank, items)

    written = together("write", alone, process_group, write)
    metadata = Metadata({})
    for entries, paths, places in written:
        metadata.planner_data.update(paths)
        metadata.storage_data.update(places)
        for name, entry in entries.items():
            known = metadata.state_dict_metadata.setdefault(name, entry)
            if known is not entry and isinstance(known, TensorStorageMetadata):
                known.chunks += [chunk for chunk in entry.chunks if chunk not in known.chunks]
    together("finish", alone, process_group, lambda: writer.finish(metadata) if rank == 0 else None)
    return metadata


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: FileSystemWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> Metadata:
    """`save` under its name of before. The first process writes the metadata: `coordinator_rank` must be 0."""
    if coordinator_rank:
        raise NotImplementedError("checkpoint.save_state_dict(coordinator_rank=)")
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions.Please use `save` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return save(state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner)


class AsyncCheckpointerType(enum.Enum):
    """Where torch's async_save writes."""

    THREAD, PROCESS = "thread", "process"


AsyncSaveResponse = absent_class(__name__, "AsyncSaveResponse")


def async_save(state_dict: dict[str, Any], **options: Any) -> Future[Any]:
    """NotImplementedError: collectives of a second thread would mix with those of the program."""
    raise NotImplementedError("checkpoint.async_save: use save")
