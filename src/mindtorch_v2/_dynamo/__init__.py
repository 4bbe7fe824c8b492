"""torch._dynamo: marks and switches of the compiler. `torch.compile` runs code as it is, whatever they say."""

from __future__ import annotations

from typing import Any

from .._lazy_imports import lazy_exports as _lazy_exports
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset, set_stance
from . import config

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
    "set_stance",
]


def is_dynamo_supported() -> bool:
    """Whether code can be captured: it cannot, and `torch.compile` runs it eagerly."""
    return False


def graph_break(msg: str = "") -> None:
    """End the graph being captured: there is none."""


def mark_dynamic(
    t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None, max: int | None = None
) -> None:
    """Tell the compiler that sizes of a tensor will change; code that is not compiled takes any size."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Tell the compiler that sizes of a tensor may change."""


def mark_unbacked(t: Any, index: Any, **options: Any) -> None:
    """Tell the compiler that it must not look at a size."""


def mark_static(t: Any, index: Any = None) -> None:
    """Tell the compiler that sizes of a tensor will not change."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Tell the compiler that a tensor stays where it is in memory."""


def forbid_in_graph(fn: Any) -> Any:
    """Mark a function as one that must not be captured."""
    return fn


disallow_in_graph = forbid_in_graph


def optimize(*args: Any, **kwargs: Any) -> Any:
    """A decorator that compiles: functions are run as they are."""
    return disable()


def run(fn: Any = None) -> Any:
    """The function, run without compiling it anew."""
    return optimize() if fn is None else fn


__getattr__, __dir__ = _lazy_exports(
    __name__,
    ("_trace_wrapped_higher_order_op", "eval_frame", "exc", "external_utils", "utils"),
    {".eval_frame": ("OptimizedModule",)},
)
