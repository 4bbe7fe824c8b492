"""torch.export: models are not captured as programs; libraries ask whether something is one."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any, NoReturn

from .._lazy_imports import lazy_exports as _lazy_exports
from ..utils._pytree import register_dataclass as _register

__all__ = ["Dim", "ExportedProgram", "export", "load", "register_dataclass", "save", "unflatten"]

_INSTEAD = (
    "save the state_dict() and export it where PyTorch is installed, or trace with torch.fx.symbolic_trace. "
    "See docs/compatibility.md"
)


class ExportedProgram:
    """A captured program, for `isinstance`: none can be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"torch.export.ExportedProgram: {_INSTEAD}")


class Dim:
    """A size that may change, by name, for `dynamic_shapes`."""

    AUTO, STATIC, DYNAMIC = "Dim.AUTO", "Dim.STATIC", "Dim.DYNAMIC"

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, float("inf") if max is None else max
        if high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self.__name__ = name
        self.min, self.max = low, high


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: nothing captures a model as a program."""
    raise NotImplementedError(f"torch.export.export: {_INSTEAD}")


def save(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there are no programs to save."""
    raise NotImplementedError(f"torch.export.save: {_INSTEAD}")


def load(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: programs cannot be read."""
    raise NotImplementedError("torch.export.load: programs that PyTorch exported cannot be read. See docs/compatibility.md")


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Make a dataclass a node of trees, so that functions of trees look inside of it."""
    _register(cls, serialized_type_name=serialized_type_name)


# A function and a module, as in torch: importing the module later must not hide the function.
unflatten = _import_module(".unflatten", __name__).unflatten

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
