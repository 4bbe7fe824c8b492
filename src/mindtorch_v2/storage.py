"""torch.storage: the bytes behind tensors."""

from __future__ import annotations

import io
from typing import Any

from ._core.untyped_storage import UntypedStorage
from .serialization import load

__all__ = ["UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """What a plain pickle of torch's tensors calls for the memory in it."""
    return load(io.BytesIO(b), weights_only=False)
