"""torch.utils._contextlib: the base of blocks that can decorate functions, as `no_grad` does."""

from __future__ import annotations

from .._autograd.decorator_context import DecoratorContextManager as _DecoratorContextManager

__all__ = ["_DecoratorContextManager"]
