"""torch._dynamo.eval_frame: the class of compiled modules, and what its decorators are called there."""

from __future__ import annotations

from .._compile import OptimizedModule
from ..compiler import disable, reset, set_stance

__all__ = ["OptimizedModule", "disable", "reset", "set_stance"]
