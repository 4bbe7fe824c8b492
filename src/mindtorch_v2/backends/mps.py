"""torch.backends.mps: says that Metal is not available here."""

from __future__ import annotations

from .._lazy_imports import lazy_exports as _lazy_exports
from ._flags import absent_backend

absent_backend(globals())


def is_built() -> bool:
    """Whether the package was built with MPS: never."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is macOS of at least some version: MPS is not there, so it does not matter."""
    return False


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
