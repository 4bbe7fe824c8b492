"""torch.utils.benchmark: timing of small pieces of code, and tables of the times."""

from __future__ import annotations

from ..._lazy_imports import lazy_exports as _lazy_exports
from .compare import Colorize, Compare
from .results import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from .timer import Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
