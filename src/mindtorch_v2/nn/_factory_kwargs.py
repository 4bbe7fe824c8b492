"""factory_kwargs: from what a module was made with, what its tensors are made with."""

from __future__ import annotations

from typing import Any

_SIMPLE = {"device", "dtype", "memory_format"}


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """device, dtype and memory_format, given as such or in a dict `factory_kwargs`, but not in both."""
    if kwargs is None:
        return {}
    if kwargs.keys() - _SIMPLE - {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - _SIMPLE - {'factory_kwargs'}}")
    options = dict(kwargs.get("factory_kwargs", {}))
    for key in _SIMPLE & kwargs.keys():
        if key in options:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        options[key] = kwargs[key]
    return options
