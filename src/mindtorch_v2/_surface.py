"""The torch-like surface: functions, Tensor methods and operators, all taken from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _ops, _tensor_methods
from ._autograd import graph, inplace, methods  # noqa: F401  give ops their history
from ._core import dtype
from ._core.blas import get_num_threads, set_num_threads  # noqa: F401
from ._core.tensor import Tensor
from ._dispatch import interception, registry  # noqa: F401

# Ops that are no Tensor methods, or whose method, operator or property of the same name is written by hand.
_NOT_METHODS = frozenset(
    {
        "__and__",
        "__iand__",
        "__ilshift__",
        "__ior__",
        "__irshift__",
        "__ixor__",
        "__lshift__",
        "__or__",
        "__rshift__",
        "__xor__",
        "as_strided",
        "as_strided_scatter",
        "contiguous",
        "detach",
        "detach_",
        "imag",
        "item",
        "mH",
        "mT",
        "nonzero",
        "norm",
        "numpy_T",
        "real",
        "split",
        "stft",
        "to",
        "unique_consecutive",
        "where",
    }
)
# Ops whose torch.* function is written by hand: it takes what a schema cannot say, such as any number of tensors.
_NOT_FUNCTIONS = frozenset(
    {
        "as_strided",
        "as_strided_copy",
        "as_strided_scatter",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "block_diag",
        "broadcast_tensors",
        "cartesian_prod",
        "cdist",
        "chain_matmul",
        "einsum",
        "meshgrid",
        "nonzero",
        "norm",
        "rand",
        "randn",
        "randperm",
        "split",
        "split_copy",
        "split_with_sizes_copy",
        "stft",
        "tensordot",
        "unbind_copy",
        "unique_consecutive",
    }
)


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


def tensor_attributes(own: dict[str, Any]) -> dict[str, Any]:
    """Tensor's attributes: its `own` class body, a method for every op that takes a tensor first, and what is handwritten."""
    attributes = dict(own)
    for name, packet in registry.packets.items():
        if "::" in name or name in _NOT_METHODS or name in own:
            continue
        for spec in packet:
            if spec.schema.is_method:
                attributes[name] = packet.function
                break
    _add_handwritten(attributes, "OPERATORS", "METHODS", "PROPERTIES")
    return attributes


def functions() -> dict[str, Any]:
    """torch.<name>: every op, and what the families wrote by hand."""
    named = {
        name: packet.function for name, packet in registry.packets.items() if "::" not in name and name not in _NOT_FUNCTIONS
    }
    _add_handwritten(named, "FUNCTIONS")
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
