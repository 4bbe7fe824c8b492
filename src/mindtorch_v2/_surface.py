"""The torch-like surface: functions, Tensor methods and operators, all taken from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _ops, _tensor_methods
from ._autograd import graph, inplace, methods  # noqa: F401  give ops their history
from ._core import dtype
from ._core.blas import get_num_threads, set_num_threads  # noqa: F401
from ._core.tensor import Tensor
from ._dispatch import interception, registry  # noqa: F401
from ._dispatch.facts import Surface


def _install() -> None:
    """Give Tensor a method for every op whose first argument is a tensor, then what is written by hand."""
    own = {*vars(Tensor)}
    for name, packet in registry.packets.items():
        if "::" in name or name in own:
            continue
        if any(spec.schema.is_method and Surface.METHOD in spec.surface for spec in packet):
            setattr(Tensor, name, packet.function)
    for family in (*_ops.families(), _tensor_methods, methods):
        for table in ("OPERATORS", "METHODS", "PROPERTIES"):
            for name, value in getattr(family, table, {}).items():
                setattr(Tensor, name, value)


_install()


def functions() -> dict[str, Any]:
    """torch.<name>: every op, and what the families wrote by hand."""
    made = {name: packet.function for name, packet in registry.packets.items() if "::" not in name}
    for family in (*_ops.families(), _tensor_methods, methods):
        made.update(getattr(family, "FUNCTIONS", {}))
    return made


# nn, optim and the rest write `torch.add(...)` with this module as their torch. Names of builtins (sum, any, float) are
# torch's from here on, so nothing of this module may run below.
globals().update(functions() | dtype.DTYPES | dtype.ALIASES)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
