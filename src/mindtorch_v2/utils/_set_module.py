"""torch.utils.set_module: where an object says that it is defined."""

from __future__ import annotations

from typing import Any


def set_module(obj: Any, mod: str) -> None:
    """Set `obj.__module__`, which its repr and its documentation show; TypeError if that is no text."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
