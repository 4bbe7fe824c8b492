"""Nested state as flat names, and which process writes which part of which tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._core.tensor import Tensor
from .._groups import get_rank, get_world_size, is_initialized
from .._objects import all_gather_object
from ..tensor import DTensor, Shard, shard_bounds
from .api import CheckpointException
from .stateful import Stateful

Path = tuple[Any, ...]


def flat_state(state: Mapping[str, Any]) -> dict[str, tuple[Path, Any]]:
    """Paths and values by name: the keys of nested dicts and lists joined by dots."""
    flat: dict[str, tuple[Path, Any]] = {}

    def walk(value: Any, path: Path) -> None:
        if isinstance(value, Mapping) and value:
            for key, each in value.items():
                walk(each, (*path, key))
        elif isinstance(value, list) and any(isinstance(each, Tensor | Mapping | list) for each in value):
            for at, each in enumerate(value):
                walk(each, (*path, at))
        else:
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"two values of the state have the name {name!r}")
            flat[name] = path, value

    walk(state, ())
    return flat


def put(state: Any, path: Path, value: Any) -> None:
    """Set the value at a path of nested dicts and lists."""
    for key in path[:-1]:
        state = state[key]
    state[path[-1]] = value


def states_of(state: dict[str, Any]) -> dict[str, Any]:
    """The state with every object that has one of its own replaced by it."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state.items()}


def part_of(tensor: Any) -> tuple[Tensor, tuple[int, ...], tuple[int, ...]]:
    """This process's part of a tensor, where it begins, and the sizes of the whole."""
    if isinstance(tensor, DTensor):
        placement, mesh = tensor.placements[0], tensor.device_mesh
        if isinstance(placement, Shard):
            begin, _ = shard_bounds(tensor.full_shape[placement.dim], mesh.size(), mesh.get_local_rank())
            offsets = [0] * len(tensor.full_shape)
            offsets[placement.dim] = begin
            return tensor.to_local(), tuple(offsets), tuple(tensor.full_shape)
        return tensor.to_local(), (0,) * tensor.dim(), tuple(tensor.shape)
    return tensor.detach(), (0,) * tensor.dim(), tuple(tensor.shape)


def is_alone(no_dist: bool) -> bool:
    """Whether this process saves or loads without others."""
    return no_dist or not is_initialized()


def together(what: str, alone: bool, group: Any, function: Callable[[], Any]) -> list[Any]:
    """What a function returned in every process, by rank; CheckpointException in all of them if one raised."""
    if alone:
        return [function()]
    try:
        mine: Any = (True, function())
    except Exception as error:
        mine = (False, error)
    answers: list[Any] = [None] * get_world_size(group)
    all_gather_object(answers, mine, group=group)
    failures = {rank: answer[1] for rank, answer in enumerate(answers) if not answer[0]}
    if failures:
        raise CheckpointException(what, failures)
    return [answer[1] for answer in answers]


def rank_of(alone: bool, group: Any) -> int:
    """This process's rank."""
    return 0 if alone else get_rank(group)
