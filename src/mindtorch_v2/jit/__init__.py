"""torch.jit: accepts code and runs it eagerly. Scripted and traced objects behave like the originals."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from .._lazy_imports import lazy_exports as _lazy_exports
from ..futures import Future
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from ._isinstance import isinstance

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "optimized_execution",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class Error(Exception):
    """An error of a TorchScript program: there are none, so that it never comes."""


JITException = Error


class Attribute(NamedTuple):
    """A value of a module and the type that TorchScript would give it; here the module has this pair."""

    value: Any
    type: Any


class TracerWarning(Warning):
    """A trace that may not hold for other inputs: functions are run as they are here, so that it never comes."""


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """A future of a call, which is made at once."""
    _warn_of("fork")
    future: Future[Any] = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future


def wait(future: Future[Any]) -> Any:
    """The result of `fork`."""
    _warn_of("wait")
    return future.wait()


_fork, _wait = fork, wait


def _warn_of(name: str) -> None:
    message = f"`torch.jit.{name}` is deprecated. Please use `torch.compile` instead."
    warnings.warn(message, DeprecationWarning, stacklevel=3)


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: nothing is traced."""
    return fn


_script_if_tracing = script_if_tracing


def _overload(func: Callable[..., Any]) -> Callable[..., Any]:
    """Marks one of several signatures of a function for the compiler."""
    return func


def _overload_method(func: Callable[..., Any]) -> Callable[..., Any]:
    """Marks one of several signatures of a method for the compiler."""
    return func


class ScriptFunction:
    """A scripted or traced function: calls go to the original."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.name = self.__name__ = getattr(function, "__name__", "function")
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The original function's result."""
        return self._function(*args, **kwargs)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """NotImplementedError: there is no compiled program to write."""
        raise NotImplementedError(
            "torch.jit: scripted functions cannot be saved: save what they are made of. See docs/compatibility.md"
        )


class ScriptModule(Module):
    """A scripted or traced module: calls, attributes, parameters and state are the original's."""

    def __init__(self, original: Module | None = None) -> None:
        super().__init__()
        if original is not None:
            object.__setattr__(self, "_original", original)
            self.__dict__["training"] = original.training
            for name in ("_parameters", "_buffers", "_modules"):
                self.__dict__[name] = original.__dict__[name]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The original module's result, with its hooks."""
        return self._original(*args, **kwargs)

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return type(self._original).__name__

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            original = self.__dict__.get("_original")
            if original is None:
                raise
            return getattr(original, name)

    def train(self, mode: bool = True) -> ScriptModule:
        """Switch the original between training and evaluation, too."""
        super().train(mode)
        if "_original" in self.__dict__:
            self._original.train(mode)
        return self

    def save(self, *args: Any, **kwargs: Any) -> None:
        """NotImplementedError: there is no compiled program to write; state_dict() can be saved."""
        raise NotImplementedError(
            "torch.jit: scripted modules cannot be saved: save the state_dict(). See docs/compatibility.md"
        )


RecursiveScriptModule = TopLevelTracedModule = ScriptModule


def _check_initialized(module: Module) -> None:
    """RuntimeError for lazy modules that have not seen an input."""
    for each in reversed(list(module.modules())):  # children come first, as they are compiled first
        for name, value in (*each._parameters.items(), *each._buffers.items()):
            if is_lazy(value):
                kind = f"{type(each).__module__}.{type(each).__qualname__}".replace("mindtorch_v2.", "torch.", 1)
                raise RuntimeError(f"'{kind}' has uninitialized parameters {name}. Did you forget to run a forward pass?")


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The object itself, run eagerly: a module becomes a ScriptModule, a function a ScriptFunction."""
    if builtins.isinstance(obj, ScriptModule | ScriptFunction):
        return obj
    if builtins.isinstance(obj, Module):
        _check_initialized(obj)
        return ScriptModule(obj)
    if builtins.isinstance(obj, type):
        return obj
    if not callable(obj):
        raise RuntimeError(f"torch.jit.script expected a module, a class or a function, got {type(obj).__name__}")
    return ScriptFunction(obj)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """Run the example once, as tracing does, and hand the function back to run eagerly."""
    if example_inputs is not None:
        func(*(example_inputs if builtins.isinstance(example_inputs, tuple | list) else (example_inputs,)))
    elif example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    else:
        raise RuntimeError("example_inputs or example_kwarg_inputs is required to trace")
    return script(func)


def trace_module(mod: Module, inputs: dict[str, Any], **options: Any) -> Any:
    """Run each method's example once and hand the module back to run eagerly."""
    for name, example in inputs.items():
        getattr(mod, name)(*(example if builtins.isinstance(example, tuple | list) else (example,)))
    return script(mod)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The module itself; there is nothing to fold."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your "
            "module before freezing."
        )
    return mod


def export(fn: Any) -> Any:
    """Mark a method to be compiled."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function to be left to Python."""
    return drop if callable(drop) else (lambda fn: fn)


def unused(fn: Any) -> Any:
    """Mark a function that scripts never call."""
    return fn


def interface(obj: Any) -> Any:
    """Mark a class as an interface."""
    return obj


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value; the type is for a compiler."""
    return the_value


def is_scripting() -> bool:
    """Whether this runs inside a script: never."""
    return False


def is_tracing() -> bool:
    """Whether this runs inside a trace: never."""
    return False


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Choose whether scripts are optimized: they are not."""
    yield


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write a script to a file: not supported."""
    raise NotImplementedError("torch.jit.save: save the state_dict() with torch.save. See docs/compatibility.md")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Read a script from a file: not supported."""
    raise NotImplementedError(
        "torch.jit.load: TorchScript archives cannot be read: save a state_dict() where PyTorch is installed. "
        "See docs/compatibility.md"
    )


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
