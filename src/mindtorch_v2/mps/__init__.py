"""torch.mps: never available here, and it says so."""

from __future__ import annotations

from .._absent_device import absent
from .._lazy_imports import lazy_exports as _lazy_exports

globals().update(absent("MPS"))

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
