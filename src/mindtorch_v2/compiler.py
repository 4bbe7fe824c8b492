"""torch.compiler: nothing is compiled here, so its helpers hand functions back as they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from ._lazy_imports import lazy_exports as _lazy_exports


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark a function as not to be compiled."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Mark a function as safe to capture."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Mark a function whose result does not change."""
    return fn


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Any:
    """A decorator that names a function to capture in place of another, which is what runs here."""
    return lambda traceable: traceable


def nested_compile_region(fn: Any = None, options: Any = None) -> Any:
    """Mark a function that is compiled once for all of its calls."""
    return (lambda function: function) if fn is None else fn


def compile(*args: Any, **kwargs: Any) -> Any:
    """`torch.compile` under another name."""
    return import_module("._compile", __package__).compile(*args, **kwargs)


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


class set_stance(AbstractContextManager[None]):
    """Chooses how eagerly to compile, from now on or inside a block; nothing is compiled either way."""

    _STANCES = (
        "default",
        "force_eager",
        "eager_on_recompile",
        "fail_on_recompile",
        "eager_then_compile",
        "aot_eager_then_compile",
    )

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself: it runs as it would under any stance."""
        return fn


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
