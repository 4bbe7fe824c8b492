"""The torch-like surface: functions, Tensor methods and operators, all taken from the registry."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from . import _ops, _tensor_methods
from ._autograd import graph, inplace, methods  # noqa: F401  give ops their history
from ._core import dtype
from ._core.blas import get_num_threads, set_num_threads  # noqa: F401
from ._core.tensor import Tensor
from ._dispatch import interception, registry  # noqa: F401
from ._dispatch.facts import Surface
from ._dispatch.offered import module_of

# Comparing with a member is quicker than asking a Flag.
_NONE, _METHOD = Surface.NONE, Surface.METHOD
_OF_TORCH = (Surface.BOTH, Surface.FUNCTION)
_OF_TENSORS = (Surface.BOTH, _METHOD)


def _add(names: dict[str, Any], added: dict[str, Any], source: str) -> None:
    """Put `added` into `names`; ValueError for a name that is there already, so that nothing is overwritten silently."""
    twice = sorted(names.keys() & added.keys())
    if twice:
        raise ValueError(f"{source} sets {', '.join(twice)}: set before")
    names.update(added)


def _add_handwritten(names: dict[str, Any], *tables: str) -> None:
    for family in (*_ops.families(), _tensor_methods, methods):
        for table in tables:
            _add(names, getattr(family, table, {}), f"{family.__name__}.{table}")


def _is_offered(packet: registry.Packet, place: Surface) -> bool:
    """Whether an op itself is what stands at a place under its name, not something written by hand."""
    for spec in packet:  # noqa: SIM110  all() is torch.all in this module
        if spec.surface is _NONE or (spec.handwritten is not _NONE and place in spec.handwritten):
            return False
    return True


def tensor_attributes(own: dict[str, Any]) -> dict[str, Any]:
    """Tensor's attributes: its `own` class body, a method for every op that takes a tensor first, and what is handwritten."""
    attributes = dict(own)
    for name, packet in registry.packets.items():
        if "::" in name or name in own or not _is_offered(packet, _METHOD):
            continue
        for spec in packet:
            if spec.schema.is_method and spec.surface in _OF_TENSORS:
                attributes[name] = packet.function
                break
    _add_handwritten(attributes, "OPERATORS", "METHODS", "PROPERTIES")
    return attributes


def functions() -> dict[str, Any]:
    """Every op, and what the families wrote by hand: what the rooms above the ops call."""
    named = {
        name: packet.function
        for name, packet in registry.packets.items()
        if "::" not in name and _is_offered(packet, Surface.FUNCTION)
    }
    _add_handwritten(named, "FUNCTIONS")
    for name, function in named.items():
        # Some are written beside an op of their own name, under another one.
        if type(function) is FunctionType and function.__module__ != "torch":
            function.__name__ = function.__qualname__ = name
    return named


def public_functions() -> dict[str, Any]:
    """torch.<name>: the functions that torch has under that name."""
    named = functions()
    for name, packet in registry.packets.items():
        surface = next(iter(packet)).surface
        if surface not in _OF_TORCH and name in named:
            function = named.pop(name)
            if type(function) is FunctionType:
                # Where pickles and code made from graphs find it.
                function.__module__ = module_of(name, surface)
                function.__qualname__ = f"Tensor.{name}" if surface is _METHOD else name
    return named


def _install() -> None:
    own = {**vars(Tensor)}
    for name, value in tensor_attributes(own).items():
        if name not in own:
            setattr(Tensor, name, value)


_install()

# nn, optim and the rest write `torch.add(...)` with this module as their torch. Names of builtins (sum, any, float) are
# torch's from here on, so no function of this module uses them.
globals().update(functions() | dtype.DTYPES | dtype.ALIASES)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
