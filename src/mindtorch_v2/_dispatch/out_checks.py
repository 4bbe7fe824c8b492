"""What a call with `out=` is refused for, in torch's order and words.

Ops that promote their operands iterate over them: they look at shared memory first, then at shapes, then at dtypes, and only
then at what their kernel can do. Other ops look at their own arguments first, then at the dtype of `out`, and give it its shape
before anything else is asked of its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.keys import META
from .._core.tensor import Tensor
from . import entry_globals
from .errors import (
    broadcast_mismatch,
    not_implemented,
    operands_of,
    overlapping_input,
    overlapping_read,
    overlapping_write,
    refused_before_kernel,
    refuses_complex,
    repeats_memory,
    torch_error,
    type_name,
)
from .facts import OutGrad, Overlap, Promotion
from .promotion import computation_dtype, is_number
from .registry import OpSpec


def tensors_in(args: tuple[Any, ...]) -> list[Tensor]:
    """The tensors among an op's arguments, those in lists included."""
    tensors = []
    for value in args:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif value.__class__ is list or value.__class__ is tuple:
            tensors += [each for each in value if isinstance(each, Tensor)]
    return tensors


def targets_of(op: OpSpec, out: Any) -> tuple[Tensor, ...]:
    """The tensors in `out=`; TypeError unless there are as many as the op has results."""
    count, several = len(op.schema.returns), isinstance(out, list | tuple)
    if several != (count > 1) or (not several and not isinstance(out, Tensor)):
        raise TypeError(
            f"{op.schema.name}(): argument 'out' must be {'Tensor' if count == 1 else 'tuple of Tensors'}, not "
            f"{type(out).__name__}"
        )
    targets = tuple(out) if several else (out,)
    if len(targets) != count:
        raise torch_error(TypeError(f"expected tuple of {count} elements but got {len(targets)}"))
    for at, target in enumerate(targets):
        if not isinstance(target, Tensor):
            raise TypeError(
                f"expected Tensor as element {at} in argument {len(op.schema.arguments)}, but got {type_name(target)}"
            )
    return targets


def on_device(
    op: OpSpec, args: tuple[Any, ...], sources: list[Tensor], keys: int, targets: tuple[Tensor, ...]
) -> tuple[Any, ...]:
    """The arguments of a call, those of a factory with the device of its target. RuntimeError where either the targets or the
    operands have no memory."""
    for target in targets:
        if sources and (target._keys ^ keys) & META:
            place = "meta" if keys & META else sources[0].device
            raise RuntimeError(
                f"Attempting to copy from device {place} to device {target.device}, but cross-device copies are not allowed!"
            )
        if not sources and target._keys & META:
            arguments = op.schema.arguments
            args = tuple(target.device if a.name == "device" else v for a, v in zip(arguments, args, strict=True))
    return args


_RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the required output "
    "shape {}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
    "have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
    "t.resize_(0)."
)


def resize_warning(target: Tensor, shape: tuple[int, ...]) -> str:
    """What torch warns of where `out=` has elements, but not the result's shape."""
    return _RESIZED.format(list(target._array.shape), list(shape))


def check_writable(target: Tensor) -> None:
    """RuntimeError for memory that several elements share. A lazy copy gets memory of its own here."""
    if repeats_memory(target):
        raise overlapping_write()


def check_grad(op: OpSpec, targets: tuple[Tensor, ...], sources: Sequence[Tensor]) -> None:
    """What an op with `out=` says of a call in which a tensor is tracked: it requires grad, or has a tangent alone."""
    name = op.schema.name
    if not any(each.requires_grad for each in (*targets, *sources)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    if op.out_grad is OutGrad.NONE:
        return
    if op.out_grad is OutGrad.WRITTEN:
        name = op.name
        try:
            for target in targets:
                entry_globals.check_in_place(target)
            return
        except RuntimeError:
            pass
    raise RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad."
    )


def check_iterated(op: OpSpec, args: tuple[Any, ...], sources: list[Tensor], target: Tensor) -> None:
    """What an op that iterates over its operands has against the memory it is to write, as it is before it takes a shape."""
    if refuses_complex(op, args):
        raise not_implemented(op, [dt.complex64])
    check_writable(target)
    shared = target._storage is not None
    given = False
    for source in sources:
        if source is target:
            given = True
        elif shared and source._storage is not None:
            overlapping_input(target._array, source._array)
    if given:
        # The tensor is read as well, so that it keeps its shape.
        shapes = [source._array.shape for source in sources]
        if any(shape != target._array.shape for shape in shapes) and broadcast_mismatch(shapes) is None:
            whole = np.broadcast_shapes(*shapes)
            if whole != target._array.shape:
                raise RuntimeError(
                    f"output with shape {list(target._array.shape)} doesn't match the broadcast shape {list(whole)}"
                )


def check_apart_from(op: OpSpec, args: tuple[Any, ...], target: Tensor, keeps_shape: bool) -> None:
    """The same for an op that reads and writes in an order of its own: of its operands only a tensor that it starts from may
    be the target. Of one that does not keep its shape no part counts: it is given memory first."""
    if op.checks_overlap is None or (op.checks_overlap is Overlap.PART and not keeps_shape):
        return
    only_part = op.checks_overlap is Overlap.PART
    if not only_part:
        check_writable(target)
    starts = op.checks_overlap is Overlap.ANY and isinstance(args[0], Tensor)
    for source in tensors_in(args[1:] if starts else args):
        if source is target:
            if only_part:
                continue
            raise overlapping_read()
        if source._storage is not None and target._storage is not None:
            overlapping_input(target._array, source._array, same=not only_part)


def check_before_kernel(op: OpSpec, args: tuple[Any, ...], target: Tensor) -> None:
    """What an op that iterates refuses before its kernel is asked: for calls on which the kernel failed."""
    earlier = refused_before_kernel(op, args)
    if earlier is not None:
        raise earlier
    operands = operands_of(op, args)
    if op.promote is not Promotion.COMPARE and all(isinstance(one, Tensor) or is_number(one) for one in operands):
        plain = Promotion.FLOAT if op.promote is Promotion.FLOAT else Promotion.SAME
        op.out_dtype(computation_dtype(plain, tuple(operands)), target.dtype)
