"""torch.autograd.function: ops whose forward and backward the user writes."""

from __future__ import annotations

from .._autograd.context import BackwardCFunction, FunctionCtx
from .._autograd.function import Function, FunctionMeta, InplaceFunction, once_differentiable
from .._lazy_imports import lazy_exports as _lazy_exports

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
