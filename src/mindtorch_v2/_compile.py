"""torch.compile: accepts code and runs it eagerly, which is what its results mean anyway."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .nn.modules.module import Module

# Names that torch knows: which of them compiles a model changes no result.
_BACKENDS = frozenset(
    [
        "aot_eager",
        "aot_eager_decomp_partition",
        "aot_ts",
        "cudagraphs",
        "eager",
        "eager_noexcept",
        "hpu_backend",
        "inductor",
        "ipex",
        "npu",
        "onnxrt",
        "openxla",
        "openxla_eval",
        "tensorrt",
        "torchair",
        "ts",
        "tvm",
    ]
)
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


class OptimizedModule(Module):
    """A module handed through `torch.compile`: calls and attributes are the original's."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._orig_mod = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)


def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> Any:
    """The function itself, which nothing would have traced; a decorator without one."""
    return fn if fn is not None else functools.partial(_disable_dynamo, recursive=recursive)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The model or function itself, run eagerly; the options choose how torch would compile it and change no result."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if isinstance(backend, str) and backend not in _BACKENDS:
        raise import_module("._dynamo.exc", __package__).InvalidBackend(
            f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if isinstance(model, Module):
        return model if disable else OptimizedModule(model)
    if not callable(model):
        raise RuntimeError(f"torch.compile expected a callable, got {type(model).__name__}")
    function: Callable[..., Any] = model

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return function if disable else call
