"""torch.utils: data loading, checkpointing, and small tools."""

from __future__ import annotations

from . import data

__all__ = ["data"]
