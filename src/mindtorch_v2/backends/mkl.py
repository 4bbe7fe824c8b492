"""torch.backends.mkl: MKL is not used here."""

from __future__ import annotations

from .._lazy_imports import lazy_exports as _lazy_exports
from ._flags import absent_backend

absent_backend(globals(), enabled=True)

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
