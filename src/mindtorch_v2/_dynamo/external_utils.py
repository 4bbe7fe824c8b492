"""torch._dynamo.external_utils: whether code is being captured, under its older name."""

from __future__ import annotations

from ..compiler import is_compiling

__all__ = ["is_compiling"]
