"""torch._export.wrappers: marks for an exporter of programs. There is none, so what is marked runs as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def mark_subclass_constructor_exportable_experimental(constructor_subclass: Callable[..., None]) -> Callable[..., None]:
    """Mark the `__init__` of a subclass of Tensor; it runs as it is."""
    if constructor_subclass.__name__ != "__init__":
        raise RuntimeError(
            "torch._export.wrappers.mark_constructor_exportable_experimental can only be applied on subclass "
            f"tensor.__init__, not on {constructor_subclass.__name__}"
        )

    @functools.wraps(constructor_subclass)
    def construct(*args: Any, **kwargs: Any) -> None:
        constructor_subclass(*args, **kwargs)

    return construct


def allow_in_pre_dispatch_graph(func: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the `__init__` of a subclass of Tensor, or `apply` of an autograd Function; it runs as it is."""
    if func.__name__ == "__init__":
        return mark_subclass_constructor_exportable_experimental(func)
    if func.__name__ != "apply":
        raise RuntimeError(
            f"torch._export.wrappers.allow_in_pre_dispatch_graph can only be applied on custom autograd "
            f"functions' apply, not on {func.__name__}"
        )
    return func
