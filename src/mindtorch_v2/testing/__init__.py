"""torch.testing: comparing tensors, and making them for tests."""

from __future__ import annotations

from .._lazy_imports import lazy_exports as _lazy_exports
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
