"""RemovableHandle: what registering a hook returns."""

from __future__ import annotations

from ..._autograd.handles import RemovableHandle

__all__ = ["RemovableHandle"]
