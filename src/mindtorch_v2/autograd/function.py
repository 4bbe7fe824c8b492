"""torch.autograd.function: ops with a derivative written by the user."""

from __future__ import annotations

from .._autograd.context import BackwardCFunction, FunctionCtx
from .._autograd.function import Function, FunctionMeta, InplaceFunction, once_differentiable

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]
