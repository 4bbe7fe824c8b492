"""torch.utils.dlpack: memory shared with other libraries."""

from __future__ import annotations

from .._ops.creation.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
