"""torch.storage: the memory behind tensors, as bytes or as numbers."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

from ._core.untyped_storage import StorageBase as StorageBase
from ._core.untyped_storage import UntypedStorage
from ._ops.creation import legacy_constructors
from ._typed_storage import LEGACY as _LEGACY
from ._typed_storage import TypedStorage
from ._typed_storage import _dtype_to_storage_type_map as _dtype_to_storage_type_map
from ._typed_storage import _get_always_warn_typed_storage_removal as _get_always_warn_typed_storage_removal
from ._typed_storage import _LegacyStorage as _LegacyStorage
from ._typed_storage import _reset_warn_typed_storage_removal as _reset_warn_typed_storage_removal
from ._typed_storage import _set_always_warn_typed_storage_removal as _set_always_warn_typed_storage_removal
from ._typed_storage import _storage_type_to_dtype_map as _storage_type_to_dtype_map
from ._typed_storage import _warn_typed_storage_removal as _warn_typed_storage_removal
from .serialization import load

__all__ = ["TypedStorage", "UntypedStorage"]


def _classes() -> set[Any]:
    """All storage classes, those of devices that are absent included."""
    return {TypedStorage, UntypedStorage, *_LEGACY.values(), *import_module(".cuda", __package__)._storage_types.values()}


def _tensor_types() -> set[Any]:
    """The legacy tensor types: torch.FloatTensor, torch.cuda.FloatTensor ..."""
    here = {kind for kind in legacy_constructors.FUNCTIONS.values() if isinstance(kind, type)}
    return here | set(import_module(".cuda", __package__)._tensor_types.values())


def _load_from_bytes(b: bytes) -> Any:
    """What a plain pickle of torch's tensors calls for the memory in it."""
    return load(io.BytesIO(b), weights_only=False)


def __getattr__(name: str) -> Any:
    """FloatStorage and the others, which torch keeps at its top."""
    if name in _LEGACY:
        return _LEGACY[name]
    if name == "Storage":
        return _LEGACY["FloatStorage"]
    if name == "_storage_classes":
        return _classes()
    if name == "_tensor_classes":
        return _tensor_types()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
