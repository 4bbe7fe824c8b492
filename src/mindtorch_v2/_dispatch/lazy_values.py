"""Views whose values are not what their memory holds: `conj()` of a complex tensor, and `imag` of such a conjugate.

They carry CONJUGATED or NEGATED among their dispatch keys, so that tensors without cost nothing: an entry leaves its short
path for any key. Ops then pass through `execute_lazy`, the one gate between such tensors and kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.keys import AUTOGRAD, CONJUGATED, LAZY, NEGATED
from .._core.tensor import Tensor, make_alias, make_view
from .registry import OpSpec, aten


def execute_lazy(
    op: OpSpec,
    args: tuple[Any, ...],
    execute: Callable[[OpSpec, tuple[Any, ...]], Any],
    execute_eager: Callable[[OpSpec, tuple[Any, ...], int], Any],
) -> Any:
    """Run an op on tensors of which some are lazy; the two functions are the dispatcher's.

    A view of such a tensor is one, too; every other kernel gets the values in memory of their own, and what it writes
    into such a tensor is stored so that the view shows it. An op with a kernel for "lazy" looks after itself.
    """
    kernel = op.kernels.get("lazy")
    if kernel is not None:
        return kernel(*args)
    if op.composite and (not op.below_autograd or op.schema.mutates):
        return op.kernel(*args)
    if op.schema.is_view:
        source = next(a for a in args if isinstance(a, Tensor))
        result = op.kernel(*args) if op.composite else execute_eager(op, args, source._keys)
        for view in result if isinstance(result, tuple) else (result,):
            view._keys |= source._keys & LAZY
        return result
    resolved = tuple([_resolved_argument(arg) for arg in args])
    result = execute(op, resolved)
    if not op.schema.mutates:
        return result
    for argument, given, written in zip(op.schema.arguments, args, resolved, strict=True):
        if argument.written:
            _store_written(given, written)
    return args[0] if result is resolved[0] else result


def _resolved_argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        return resolved_copy(value) if value._keys & LAZY else value
    if isinstance(value, list | tuple) and any(isinstance(one, Tensor) for one in value):
        return [_resolved_argument(one) for one in value]
    return value


def _store_written(given: Any, written: Any) -> None:
    """Bring what a kernel has written into resolved copies to the tensors that it was meant for."""
    if isinstance(given, list | tuple):
        for one, copy in zip(given, written, strict=True):
            _store_written(one, copy)
    elif given is not written:
        aten.copy_(held_values(given), stored_values(written, given))


def held_values(tensor: Tensor) -> Tensor:
    """An alias that shows what the memory of a tensor holds, be it conjugated or not."""
    alias = make_alias(tensor._array, tensor)
    alias._keys &= ~LAZY
    return alias


def turned(tensor: Tensor, bit: int) -> Tensor:
    """A view of a tensor with one bit of LAZY changed: conjugated or negated values in the same memory."""
    view = make_view(tensor._array.view(), tensor)
    view._keys = (tensor._keys & ~AUTOGRAD) ^ bit
    return view


def resolved_copy(tensor: Tensor, bits: int = LAZY) -> Tensor:
    """A copy of a lazy tensor that holds the values which its `bits` stand for; its other bits stay."""
    wanted = tensor._keys & bits
    copied = held_values(tensor)
    if wanted & CONJUGATED:
        copied = aten.conj_physical(copied)
    if wanted & NEGATED:
        copied = aten.neg_(copied) if wanted & CONJUGATED else aten.neg(copied)
    copied._keys |= tensor._keys & LAZY & ~bits
    return copied


def resolved(tensor: Tensor) -> Tensor:
    """The tensor itself, or where it is lazy a copy that holds its values. Records no history."""
    return resolved_copy(tensor) if tensor._keys & LAZY else tensor


def stored_values(values: Tensor, target: Tensor) -> Tensor:
    """What is to be in the memory of `target` so that it shows these values."""
    eager = resolved(values)
    if not target._keys & LAZY:
        return eager
    alias = held_values(eager)
    alias._keys |= target._keys & LAZY
    return resolved_copy(alias)
