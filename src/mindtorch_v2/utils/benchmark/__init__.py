"""torch.utils.benchmark: timing of small pieces of code."""

from __future__ import annotations

from ..._lazy_imports import lazy_exports as _lazy_exports
from .timer import Measurement, Timer, timer

__all__ = ["Measurement", "Timer", "timer"]

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
