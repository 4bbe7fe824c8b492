"""Files of recordings: read any of them back, save them, check them, and write them for other tools."""

from __future__ import annotations

from ._recovery import Recovery, TraceError

__all__ = ["Recovery", "TraceError"]
