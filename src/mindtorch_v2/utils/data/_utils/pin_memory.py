"""Batches in page-locked memory, from which a device copies while the program goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._core.tensor import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """The batch with every tensor pinned, in containers of the same kinds; what has a `pin_memory` method uses that."""
    if isinstance(data, Tensor):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Mapping):
        items = {key: pin_memory(value) for key, value in data.items()}
        return items if type(data) is dict else type(data)(items)  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(value) for value in data))
    if isinstance(data, tuple | list):
        return type(data)(pin_memory(value) for value in data)
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    return data
