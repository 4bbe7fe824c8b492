"""torch._dynamo.eval_frame: the class of compiled modules, and what its decorators are called there."""

from __future__ import annotations

from .._compile import OptimizedModule
from ..compiler import disable, reset, set_stance

__all__ = ["OptimizedModule", "disable", "is_dynamo_supported", "reset", "set_stance"]


def is_dynamo_supported() -> bool:
    """Whether code can be compiled: it cannot, it runs as it is."""
    return False
