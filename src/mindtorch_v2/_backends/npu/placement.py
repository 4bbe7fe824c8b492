"""Which device an op runs on: the one its tensors are on."""

from __future__ import annotations

from typing import Any

from ..._core.keys import NPU
from ..._core.tensor import Tensor
from ..._dispatch.errors import overlapping_write
from ..._dispatch.registry import OpSpec
from . import tensors

_INDEXING = ("index", "index_put", "index_put_", "_index_put_impl_")


def home(op: OpSpec, args: tuple[Any, ...], among: list[Tensor] | None = None) -> int:
    """The index of the device that an op's tensors are on, or that it was asked to make one on.

    Tensors of two devices are an error, as in torch, except that a CPU tensor without dims counts as a number and that
    indices may be on the CPU. `among` are the tensors among the arguments, where they are known.
    """
    first: Tensor | None = None
    others: list[Tensor] = []
    for value in tensors_among(args) if among is None else among:
        if not value._keys & NPU:
            others.append(value)
        elif first is None:
            first = value
        elif tensors.index_of(first) != tensors.index_of(value) and op.schema.name != "copy_":
            raise _mixed(op, first, value)
    if first is not None and op.schema.name != "copy_":
        for value in others:
            if value._array.ndim and op.schema.name not in _INDEXING:
                raise _mixed(op, first, value)
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.type_text == "Device?" and value is not None:
            return tensors.device_index(value)
    assert first is not None
    return tensors.index_of(first)


_FILLS = ("fill_", "zero_", "masked_fill_")  # which write the same wherever elements share a place


def check_written(op: OpSpec, args: tuple[Any, ...]) -> None:
    """RuntimeError in torch's words for a write into an expanded tensor."""
    if (
        op.schema.mutates
        and op.schema.name not in _FILLS
        and isinstance(args[0], Tensor)
        and not args[0]._array.flags.writeable
    ):
        raise overlapping_write()


def _mixed(op: OpSpec, first: Tensor, second: Tensor) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first.device} and "
        f"{second.device}! (when running {op.name})"
    )


def tensors_among(args: tuple[Any, ...]) -> list[Tensor]:
    """The tensors among an op's arguments, those in lists included."""
    flattened = []
    for value in args:
        if isinstance(value, Tensor):
            flattened.append(value)
        elif isinstance(value, list | tuple):
            flattened += [each for each in value if isinstance(each, Tensor)]
    return flattened
