"""torch.jit.isinstance: whether an object is of a type that names what it contains."""

from __future__ import annotations

import builtins
import types
import typing
import warnings
from typing import Any

_LOST = (
    "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, List[int] would "
    "become list and therefore falsely return True for List[float] or List[str]."
)
_BARE = {
    list: "a contained type. Please add a contained type, e.g. {}[int]",
    tuple: "a contained type. Please add a contained type, e.g. {}[int]",
    dict: "contained types. Please add contained type, e.g. {}[int, int]",
}


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a type such as `List[int]`, its elements included, or of one of a tuple of types."""
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    origin = typing.get_origin(target_type)
    bare = origin if origin is not None else target_type
    if bare in _BARE and not typing.get_args(target_type):
        name = getattr(target_type, "__name__", str(target_type))
        raise RuntimeError(f"Attempted to use {name} without {_BARE[bare].format(name)}")
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, each) for each in typing.get_args(target_type))
    if origin not in _BARE:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if not builtins.isinstance(obj, origin):
        return False
    inner = typing.get_args(target_type)
    if not obj:
        warnings.warn(_LOST, stacklevel=2)
        return True
    if origin is dict:
        return all(isinstance(key, inner[0]) and isinstance(value, inner[1]) for key, value in obj.items())
    if origin is list:
        return all(isinstance(each, inner[0]) for each in obj)
    return len(obj) == len(inner) and all(map(isinstance, obj, inner))
