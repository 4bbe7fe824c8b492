"""torch.utils.benchmark: timing of small pieces of code."""

from __future__ import annotations

from .timer import Measurement, Timer, timer

__all__ = ["Measurement", "Timer", "timer"]
