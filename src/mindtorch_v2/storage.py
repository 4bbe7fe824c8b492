"""torch.storage: the bytes behind tensors."""

from __future__ import annotations

from ._core.untyped_storage import UntypedStorage

__all__ = ["UntypedStorage"]
