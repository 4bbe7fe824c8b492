"""torch.distributed.collective_utils: a function's result in every process, or its error in all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._objects import all_gather_object, broadcast_object_list
from ._process_group import ProcessGroup

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]


@dataclass
class SyncPayload:
    """What one process has to tell: a value, or why there is none."""

    stage_name: str | None
    success: bool
    payload: Any
    exception: Exception | None = None


def _payload(data_or_fn: Any, success: bool, stage_name: str | None) -> SyncPayload:
    """The data itself, or what a function returns or raises."""
    if not callable(data_or_fn):
        return SyncPayload(stage_name, success, data_or_fn)
    try:
        return SyncPayload(stage_name, success, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def broadcast(
    data_or_fn: Any, *, success: bool = True, stage_name: str | None = None, rank: int = 0, pg: ProcessGroup | None = None
) -> Any:
    """Data of one process, or what a function returns there, in every process; RuntimeError in all of them if it raises."""
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    told = SyncPayload(stage_name, success, None)
    if (rank if pg is None else pg.rank()) == rank:
        told = _payload(data_or_fn, success, stage_name)
    if pg is not None:
        shared = [told]
        broadcast_object_list(shared, rank, pg)
        told = shared[0]
    if not told.success:
        stage = f": stage {stage_name}" if stage_name is not None else ""
        reason = f": exception {told.exception}" if told.exception is not None else ""
        raise RuntimeError(f"Rank {rank} failed{stage}{reason}") from told.exception
    return told.payload


def all_gather(data_or_fn: Any, stage_name: str | None = None, pg: ProcessGroup | None = None) -> list[Any]:
    """The data of every process, or what a function returns there, by rank; RuntimeError in all of them if one raises."""
    mine = _payload(data_or_fn, True, stage_name)
    if pg is None:
        if not mine.success:
            raise RuntimeError(f"all_gather failed with exception {mine.exception}") from mine.exception
        return [mine.payload]
    told: list[Any] = [None] * pg.size()
    all_gather_object_enforce_type(pg, told, mine)
    stages = [f"Unexpected stage name received from rank {rank}: {each.stage_name}" for rank, each in enumerate(told)]
    odd = [text for text, each in zip(stages, told, strict=True) if each.stage_name != told[0].stage_name]
    errors = [each.exception for each in told if each.exception is not None]
    if odd or errors:
        raise RuntimeError("; ".join([*odd, *map(repr, errors)])) from (errors[0] if errors else None)
    return [each.payload for each in told]


def all_gather_object_enforce_type(
    pg: ProcessGroup,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """all_gather_object of objects that must be alike, by default of one type; TypeError if one is not."""
    all_gather_object(object_list, obj, pg)
    first = object_list[0]
    for rank, other in enumerate(object_list):
        if not type_checker(other, first):
            raise TypeError(f"Object type at index {rank} is {type(other)}, while first object type is {type(first)}")
