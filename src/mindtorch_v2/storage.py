"""torch.storage: the memory behind tensors, as bytes or as numbers."""

from __future__ import annotations

import io
from typing import Any

from ._core.untyped_storage import UntypedStorage
from ._typed_storage import LEGACY as _LEGACY
from ._typed_storage import TypedStorage
from ._typed_storage import _LegacyStorage as _LegacyStorage
from ._typed_storage import _warn_typed_storage_removal as _warn_typed_storage_removal
from .serialization import load

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """What a plain pickle of torch's tensors calls for the memory in it."""
    return load(io.BytesIO(b), weights_only=False)


def __getattr__(name: str) -> Any:
    """FloatStorage and the others, which torch keeps at its top."""
    if name in _LEGACY:
        return _LEGACY[name]
    if name == "Storage":
        return _LEGACY["FloatStorage"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
