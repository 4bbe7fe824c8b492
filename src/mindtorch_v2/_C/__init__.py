"""Names that torch keeps in its compiled module and that scripts reach for there."""

from __future__ import annotations

from . import _profiler

__all__ = ["_profiler"]
