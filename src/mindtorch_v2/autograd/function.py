"""torch.autograd.function: ops whose forward and backward the user writes."""

from __future__ import annotations

from .._autograd.context import BackwardCFunction, FunctionCtx
from .._autograd.function import Function, FunctionMeta, InplaceFunction, once_differentiable

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]
