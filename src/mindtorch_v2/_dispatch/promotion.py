"""Converts an op's operands to one dtype, by torch's rules, before NumPy computes with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.layout import dense_cast
from .._core.tensor import Tensor, make_tensor
from .facts import Promotion

INTEGER_QUOTIENT = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of "
    "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
    "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future "
    "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
)
_NUMBERS = (bool, int, float, complex)
# (mode, default dtype, operand types...) -> the NumPy dtype to compute in
_targets: dict[tuple[Any, ...], np.dtype] = {}


def rank(operand: Any) -> tuple[dt.dtype, int]:
    """The dtype of an operand and its rank, the pair that `dt.result_type` takes."""
    if isinstance(operand, Tensor):
        array = operand._array
        return dt.from_numpy(array.dtype), dt.ZERO_DIM_TENSOR if array.ndim == 0 else dt.DIM_TENSOR
    return dt.number_dtype(operand), dt.NUMBER


def computation_dtype(mode: Promotion, operands: tuple[Any, ...]) -> dt.dtype:
    """The dtype in which an op of this promotion computes; TypeError or RuntimeError where the promotion refuses a dtype."""
    ranked = [rank(operand) for operand in operands]
    bools = [kind is dt.bool_ for kind, _ in ranked] if mode is Promotion.NUMBER else []
    if any(bools):
        if all(bools):
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                "`logical_xor()` operator instead."
            )
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a "
            "mask, use the `~` or `logical_not()` operator instead."
        )
    if mode is Promotion.QUOTIENT and not any(kind.is_floating_point or kind.is_complex for kind, _ in ranked[-2:]):
        raise RuntimeError(INTEGER_QUOTIENT)
    result = dt.result_type(*ranked)
    if mode is Promotion.ONE and any(kind is not result for kind, _ in ranked):
        raise TypeError("operands of several dtypes")
    if mode is Promotion.WEIGHT:
        alike = ranked if ranked[-1][1] == dt.DIM_TENSOR else ranked[:-1]
        if any(kind is not ranked[0][0] for kind, _ in alike):
            raise TypeError("operands of several dtypes")
    if mode is Promotion.REAL and result.is_complex:
        raise TypeError("complex numbers have no order")
    if mode is Promotion.FLOAT and not (result.is_floating_point or result.is_complex):
        return dt.get_default_dtype()
    return result


def number_for(number: Any, target: np.dtype) -> Any:
    """A Python number that NumPy can combine with arrays of `target` without changing their dtype."""
    if target.kind in "iu":
        limits = np.iinfo(target)
        if not limits.min <= number <= limits.max:  # torch wraps around where NumPy raises
            if not -(1 << 63) <= number < 1 << 64:
                raise OverflowError("int too big to convert")
            return np.array(int(number) & (1 << limits.bits) - 1, dtype=f"u{target.itemsize}").view(target)[()]
    elif target.kind in "VW":  # beside bfloat16, complex32 and the like NumPy does not take Python numbers as weak
        return target.type(number)
    return number


def promote(mode: Promotion, operands: tuple[Any, ...]) -> list[Any]:
    """Arrays (and numbers, as they are) of one dtype for `operands`, which are Tensors and Python numbers."""
    key = (
        mode,
        dt.get_default_dtype(),
        *[(o._array.dtype, not o._array.ndim) if isinstance(o, Tensor) else type(o) for o in operands],
    )
    target = _targets.get(key)
    if target is None:
        target = _targets[key] = computation_dtype(mode, operands).np
    prepared: list[Any] = []
    for operand in operands:
        if isinstance(operand, Tensor):
            array = operand._array
            prepared.append(array if array.dtype == target else dense_cast(array, target))
        else:
            prepared.append(operand if mode is Promotion.FITTING else number_for(operand, target))
    return prepared


def number_like(number: complex, other: Any, true_division: bool = False) -> Tensor:
    """A number as the 0-d tensor that leaves the dtype of `other`, a tensor, as the number itself would.

    true_division: the quotient of integers is a floating point number, so that `other` need not hold the number.
    """
    own = dt.number_dtype(number)
    if isinstance(other, Tensor) and own is not dt.bool_:  # a bool never changes it, and some ops refuse one
        own = dt.result_type(rank(other), rank(number))
    if own is dt.int64 and isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
        raise OverflowError("int too big to convert")
    if true_division and own.np.kind in "iu":
        own = dt.get_default_dtype()
    if own in (dt.float16, dt.bfloat16) and other._array.ndim:
        own = dt.float32  # which leaves the dtype of `other` as well, and keeps the digits
    return make_tensor(np.asarray(number).astype(own.np))


def is_number(value: Any) -> bool:
    """Whether a value may stand for a tensor in arithmetic."""
    return isinstance(value, (_NUMBERS, np.number | np.bool_))


def as_number(value: Any) -> Any:
    """A NumPy scalar as the Python number it is."""
    return value.item() if isinstance(value, np.generic) else value
