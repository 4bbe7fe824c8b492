"""torch.compiler: nothing is compiled here, so its helpers hand functions back as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark a function as not to be compiled."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Mark a function as safe to capture."""
    return fn


def is_compiling() -> bool:
    """Whether code is being captured: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether code is being captured: never."""
    return False


def is_exporting() -> bool:
    """Whether code is being exported: never."""
    return False


def reset() -> None:
    """Forget compiled code: there is none."""


def cudagraph_mark_step_begin() -> None:
    """Mark a step for captured CUDA graphs: there are none."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The backends that `torch.compile` knows."""
    return ["eager"]


def set_stance(stance: str = "default", **unused: Any) -> None:
    """Choose how eagerly to compile: nothing is compiled either way."""
