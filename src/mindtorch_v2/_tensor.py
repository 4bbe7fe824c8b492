"""torch._tensor: the class of tensors, and what checkpoints make tensors of subclasses with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core.tensor import Tensor
from ._serialization.rebuild import with_type

__all__ = ["Tensor"]


def _rebuild_from_type_v2(func: Callable[..., Tensor], new_type: type, args: tuple[Any, ...], state: Any) -> Tensor:
    """What `func(*args)` gives, as a tensor of a class and with the attributes of one that was saved."""
    return with_type(func(*args), new_type, state)
