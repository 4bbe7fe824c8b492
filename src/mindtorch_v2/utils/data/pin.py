"""Batches in page-locked memory, from which a device copies while the program goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._core.tensor import Tensor


def pinned(batch: Any) -> Any:
    """The batch with every tensor pinned, in containers of the same kinds; what has a `pin_memory` method uses that."""
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if isinstance(batch, str | bytes):
        return batch
    if isinstance(batch, Mapping):
        items = {key: pinned(value) for key, value in batch.items()}
        return items if type(batch) is dict else type(batch)(items)  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(pinned(value) for value in batch))
    if isinstance(batch, tuple | list):
        return type(batch)(pinned(value) for value in batch)
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    return batch
