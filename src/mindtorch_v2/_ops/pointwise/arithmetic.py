"""Arithmetic, element by element: sums, products, quotients, remainders and signs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.single_pass import LARGE
from ..._core.tensor import Tensor
from ..._dispatch.dispatcher import as_operator, operator_form
from ..._dispatch.facts import ComplexError, OutGrad, Promotion
from ..._dispatch.out_dtypes import castable
from ..._dispatch.promotion import as_number, number_for, rank
from ..._dispatch.registry import aten, composite, op
from .._support.blockwise import BLOCK, in_blocks_of_one
from .._support.common import no_kernel, scalar_name
from .._support.flops import per_element
from .._support.half import is_half, rounded_once
from .._support.numbers import MOST, number_of
from .._support.out_rules import real_like_self
from ._large_pairs import SOME, fill_floor_divide, fill_fmod, fill_remainder, large_pair

_array = np.array
_BOOL = np.dtype(np.bool_)
_FLOAT32 = np.dtype(np.float32)
_ONE = 1  # the default alpha, compared by identity: any other goes through the checks
_ZERO = np.zeros((), np.float32)
_numbers: dict[Any, np.ndarray] = {}
_NUMBERS_KEPT = 1000
_WIDE = 1 << 63


def number(value, dtype):
    """A number as a 0-d array, which ufuncs take faster than the number itself; those of float32 are cached."""
    if dtype is not _FLOAT32:
        return _array(value, dtype)
    if not value:  # 0.0 and -0.0 would be one key
        return _ZERO if math.copysign(1, value) > 0 else _array(value, _FLOAT32)
    array = _numbers.get(value)
    if array is None:
        array = _array(value, _FLOAT32)
        if len(_numbers) < _NUMBERS_KEPT:
            _numbers[value] = array
    return array


def wrapped_number(value, dtype):
    """A number that stood for the first operand, as a 0-d array of the dtype in which NumPy is to compute."""
    return value.astype(dtype) if isinstance(value, np.generic) else number(value, dtype)


def _is_plain(value, dtype):
    """Whether a number and its dtype are float32 and anything that surely fits it."""
    kind = value.__class__
    return dtype is _FLOAT32 and ((kind is float and -MOST <= value <= MOST) or (kind is int and -_WIDE <= value < _WIDE))


def fitting_number(value, dtype):
    """A number as a 0-d array; RuntimeError where the dtype cannot hold it."""
    return number(value, dtype) if _is_plain(value, dtype) else number_of(value, dtype)


def count(self, *_rest):
    """FLOPs of one operation per element of the first operand, as torch counts them."""
    return math.prod(self)


def conj(value):
    """The conjugate, for the formulas where torch writes `.conj()`; real tensors and numbers are returned as they are."""
    kind = value.__class__
    if kind is float or kind is int:
        return value
    if isinstance(value, Tensor):
        return aten._conj(value) if value._array.dtype.kind in "cW" else value
    return value.conjugate()


def zero_grad(g):
    """The derivative of a function that is flat wherever it has one."""
    return aten.zeros_like(g)


def scaled(t, factor):
    """t * factor as a gradient has it, conjugated; t itself where the factor is 1."""
    return t if factor == 1 else t * conj(factor)


# ---------------------------------------------------------------- sums


def check_factor(name, value, kind):
    """RuntimeError for a bool or float factor where the result's dtype has no such; `kind` is NumPy's letter for it."""
    if value.__class__ is bool and kind != "b":
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if value.__class__ is float and kind in "iub":
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


def _times(other, alpha, dtype):
    """other * alpha in the dtype of the sum; other may be a number."""
    if _is_plain(alpha, dtype):
        return np.multiply(other, number(alpha, dtype))
    check_factor("alpha", alpha, dtype.kind)
    if alpha.__class__ is complex and dtype.kind not in "cW":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return np.multiply(other, number_of(alpha, dtype))


def _half_sum(combine, self, other, alpha, out):
    """A sum with a factor that is rounded to half precision, as torch does it, while its product is not."""
    if alpha.__class__ is float:
        alpha = float(self.dtype.type(alpha))
    return rounded_once(lambda self, other: combine(self, _times(other, alpha, self.dtype)), out, self, other)


@op(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    shared_from=LARGE,
    half_in_float32="fV",
    deprecated=("self alpha other",),
    promote=Promotion.SAME,
    inplace=True,
    flops=count,
    number_first=True,
    out_overload="out",
    torch_counts_flops=True,
)
def add(self, other, alpha, out=None):
    """Adds `other`, times `alpha`, to the input.

    >>> torch.add(torch.tensor([1, 2]), torch.tensor([10, 20]), alpha=2)
    tensor([21, 42])
    """
    if alpha is not _ONE:
        if is_half(self.dtype):
            return _half_sum(np.add, self, other, alpha, out)
        other = _times(other, alpha, self.dtype)
    return np.add(self, other, out)


add.vjp(self=lambda g: g, other=lambda g, alpha: scaled(g, alpha))


def _no_bool_difference(self, error):
    if self.dtype is _BOOL:
        return RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    return error


@op(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    shared_from=LARGE,
    half_in_float32="fV",
    deprecated=("self alpha other",),
    promote=Promotion.NUMBER,
    inplace=True,
    flops=count,
    aliases=("subtract",),
    number_first=True,
    out_overload="out",
)
def sub(self, other, alpha, out=None):
    """Subtracts `other`, times `alpha`, from the input.

    >>> torch.sub(torch.tensor([10, 20]), torch.tensor([1, 2]), alpha=2)
    tensor([ 8, 16])
    """
    if alpha is not _ONE:
        if is_half(self.dtype):
            return _half_sum(np.subtract, self, other, alpha, out)
        other = _times(other, alpha, self.dtype)
    try:
        return np.subtract(self, other, out)
    except TypeError as error:
        raise _no_bool_difference(self, error) from None


sub.vjp(self=lambda g: g, other=lambda g, alpha: scaled(-g, alpha))


@op(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote=Promotion.NUMBER,
    node="RsubBackward1",
    flops=count,
    last_first=True,
    number_form=True,
    out=False,
)
def rsub(self, other, alpha):
    """Subtracts the input, times `alpha`, from `other`.

    >>> torch.rsub(torch.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])
    """
    if alpha is not _ONE:
        self = _times(self, alpha, self.dtype)
    try:
        return np.subtract(other, self)
    except TypeError as error:
        raise _no_bool_difference(self, error) from None


rsub.vjp(self=lambda g, alpha: scaled(-g, alpha), other=lambda g: g)


@op("neg(Tensor self) -> Tensor", promote=Promotion.SAME, inplace=True, flops=count, aliases=("negative",))
def neg(self, out=None):
    """Turns the sign of each element.

    >>> torch.neg(torch.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    try:
        return np.negative(self, out)
    except TypeError:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert "
            "a mask, use the `~` or `logical_not()` operator instead."
        ) from None


neg.vjp(self=lambda g: -g)

# ---------------------------------------------------------------- products and quotients

mul = op(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    np.multiply,
    half_in_float32="fV",
    promote=Promotion.SAME,
    inplace=True,
    flops=count,
    aliases=("multiply",),
    number_first=True,
    out_overload="out",
    torch_counts_flops=True,
    wide_numbers=True,
    doc="""Multiplies element by element.

    >>> torch.mul(torch.tensor([1, 2]), torch.tensor([10, 20]))
    tensor([10, 40])
    """,
)
mul.vjp(self=lambda g, other: g * conj(other), other=lambda g, self: g * conj(self))


def _quotient_grad(g, self, other):
    slope = conj((self / other) / other)
    return -g * slope


div = op(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    np.divide,
    half_in_float32="fV",
    promote=Promotion.FLOAT,
    inplace=True,
    flops=count,
    aliases=("divide",),
    number_first=True,
    out_overload="out",
    wide_numbers=True,
    doc="""Divides by `other`; `rounding_mode` may be "trunc" or "floor".

    >>> torch.div(torch.tensor([7.0, -7.0]), 2)
    tensor([ 3.5000, -3.5000])
    >>> torch.div(torch.tensor([7.0, -7.0]), 2, rounding_mode="floor")
    tensor([ 3., -4.])
    """,
)
div.vjp(self=lambda g, other: g / conj(other), other=_quotient_grad)


def _check_whole(name, self, divisor):
    """Integers have no infinity to return: torch raises. Truth values are not divided without a remainder at all."""
    if self.dtype is _BOOL:
        raise no_kernel(f"{name}_cpu", self)
    if not np.all(divisor) and np.size(self):
        raise RuntimeError("ZeroDivisionError")


def _truncated(self, other, out=None):
    """Integer division rounded toward zero, where NumPy rounds down."""
    quotient = np.floor_divide(self, other)
    # One too low where the division was not exact and the signs differ.
    quotient += (np.remainder(self, other) != 0) & ((self < 0) != (np.asarray(other) < 0))
    return quotient if out is None else np.positive(quotient, out)  # which broadcasts no target, as copyto would


@op(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    promote=Promotion.FITTING,
    inplace=True,
    node="DivBackward2",
    flops=count,
    samples=lambda make: [(make(3, 4), make(3, 4), {"rounding_mode": None})],
    aliases=("divide",),
    number_first=True,
    out_overload="out_mode",
)
def div_mode(self, other, rounding_mode, out=None):
    whole = self.dtype.kind in "iub"
    divisor = other
    if not isinstance(other, np.ndarray):
        other = number_for(other, self.dtype)
    if rounding_mode is None:
        if is_half(self.dtype) and not isinstance(divisor, np.ndarray):
            return rounded_once(lambda self: np.divide(self, float(divisor)), out, self)
        if not whole:
            return np.divide(self, other, out)
        if out is not None and out.dtype.kind in "iub":
            raise RuntimeError(
                f"result type {dt.get_default_dtype().scalar_name} can't be cast to the desired output type {scalar_name(out)}"
            )
        # The number as it was given: it need not fit the integers' dtype.
        return np.divide(self, divisor if divisor is other else float(divisor)).astype(dt.get_default_dtype().np)
    if whole:
        _check_whole(f"div_{rounding_mode}", self, other)
    elif self.dtype.kind == "c":
        if out is None:
            raise no_kernel(f"div_{rounding_mode}_cpu", self)
        raise TypeError("complex numbers are not rounded")
    if rounding_mode == "floor":
        return floor_divide.kernel(self, other, out)
    if rounding_mode != "trunc":
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    return _truncated(self, other, out) if whole else np.trunc(np.divide(self, other), out)


div_mode.vjp(
    self=lambda g, other, rounding_mode: g / conj(other) if rounding_mode is None else zero_grad(g),
    other=lambda g, self, other, rounding_mode: _quotient_grad(g, self, other) if rounding_mode is None else zero_grad(g),
)

for _kind, _samples in (("Tensor", None), ("Scalar", lambda make: [(make(3, 4), 2)])):
    composite(
        f"true_divide.{_kind}(Tensor self, {_kind} other) -> Tensor",
        lambda self, other: aten.div(self, other),
        samples=_samples,
        number_first=True,
        out_form=lambda self, other, out: aten.div(self, other, out=out),
        out_overload="out",
        doc="""Divides; integers become floating point numbers.

        >>> torch.true_divide(torch.tensor([1, 3]), 2)
        tensor([0.5000, 1.5000])
        """,
    )
    composite(
        f"true_divide_.{_kind}(Tensor(a!) self, {_kind} other) -> Tensor(a!)",
        lambda self, other: aten.div_(self, other),
        samples=_samples,
    )


@op(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    promote=Promotion.SAME,
    inplace=True,
    flops=per_element(1),
    kernel_name="div_floor_cpu",
    number_first=True,
    out_grad=OutGrad.WRITTEN,
)
def floor_divide(self, other, out=None):
    """Divides and rounds towards minus infinity.

    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    if self.dtype.kind in "iub":
        _check_whole("div_floor", self, other)
    elif self.size >= SOME and (quotient := large_pair(fill_floor_divide, self, other, out)) is not None:
        return quotient
    return np.floor_divide(self, other, out)


def _modulo(name, ufunc, *, doc=None):
    @op(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote=Promotion.SAME,
        inplace=True,
        node=f"{name.title()}Backward1",
        samples=lambda make: [(make(3, 4), make(3, 4) * 0.1 + 0.35)],
        flops=per_element(1),
        number_form=True,
        doc=doc,
    )
    def kernel(self, other, out=None):
        if self.dtype.kind in "iub":
            _check_whole(name, self, other)
        return ufunc(self, other, out)

    kernel.vjp(
        self=lambda g: g,
        other=lambda g, self, other: -g * aten.div(self, other, rounding_mode="floor" if name == "remainder" else "trunc"),
    )


def _remainder(self, other, out=None):
    """The remainder that has the divisor's sign, but for 0, which keeps that of the dividend: NumPy gives it the divisor's."""
    if self.dtype.kind in "iu":
        return np.remainder(self, other, out)
    if self.size >= SOME and (rest := large_pair(fill_remainder, self, other, out)) is not None:
        return rest
    remainder = np.asarray(np.remainder(self, other))
    if np.count_nonzero(remainder) != remainder.size:
        np.copysign(remainder, self, remainder, where=remainder == 0)
    if out is None:
        return remainder
    return np.positive(remainder, out)  # which broadcasts no target, as copyto would


_modulo(
    "remainder",
    _remainder,
    doc="""The remainder of a division that rounds down: it has the sign of the divisor.

    >>> torch.remainder(torch.tensor([7.0, -7.0]), 3)
    tensor([1., 2.])
    """,
)


def _fmod(self, other, out=None):
    if self.size >= SOME and (rest := large_pair(fill_fmod, self, other, out)) is not None:
        return rest
    return np.fmod(self, other, out)


_modulo(
    "fmod",
    _fmod,
    doc="""The remainder of a division that rounds towards zero: it has the sign of the input.

    >>> torch.fmod(torch.tensor([7.0, -7.0]), 3)
    tensor([ 1., -1.])
    """,
)


@op(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    promote=Promotion.SAME,
    promoted=("self", "other"),
    tensors_only=True,
    samples=lambda make: [(0.8, make(3, 4))],
    flops=per_element(1),
    number_form=True,
    out=False,
)
def remainder_of_number(self, other):
    if other.dtype.kind in "iub":
        _check_whole("remainder", other, other)
    return _remainder(wrapped_number(self, other.dtype), other)


reciprocal = op(
    "reciprocal(Tensor self) -> Tensor",
    np.reciprocal,
    promote=Promotion.FLOAT,
    inplace=True,
    flops=count,
    doc="""One divided by each element.

    >>> torch.reciprocal(torch.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """,
)
reciprocal.vjp(self=lambda g, result: g * -conj(result * result))

# ---------------------------------------------------------------- magnitude and sign


def _abs(self, out=None):
    if self.dtype is _BOOL:
        raise no_kernel("abs_cpu", self)
    if out is self and self.dtype.kind in "cW":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return np.abs(self, out)


abs_ = op(
    "abs(Tensor self) -> Tensor",
    _abs,
    promote=Promotion.SAME,
    inplace=True,
    flops=count,
    shape=lambda self: (self._array.shape, np.abs(np.empty(0, self._array.dtype)).dtype),
    aliases=("absolute",),
    out_rule=real_like_self,
    out_dtype=castable,
    doc="""The absolute value of each element; the length of complex numbers.

    >>> torch.abs(torch.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """,
)
abs_.vjp(self=lambda g, self: g * self.sgn())


def _sign(self, out=None):
    if self.dtype is _BOOL:
        return np.logical_or(self, self, out)
    if self.size > BLOCK and (signs := in_blocks_of_one(_fill_signs, self, out)) is not None:
        return signs
    infinite = np.isinf(self) if self.dtype.kind == "c" else None
    signs = np.asarray(np.sign(self, out))
    if self.dtype.kind in "fV":
        # torch counts nan as neither positive nor negative.
        np.copyto(signs, 0, where=np.isnan(signs), casting="unsafe")
    elif infinite is not None:
        # torch divides by the length: an infinite number has no direction.
        np.copyto(signs, complex(np.nan, np.nan), where=infinite)
    return signs


def _fill_signs(out, x):
    positive, negative = np.greater(x, 0).view(np.int8), np.less(x, 0).view(np.int8)
    np.copyto(out, np.subtract(positive, negative, positive))  # 0 for nan, as torch has it


def _sgn_grad(g, result, self):
    """The part of g that turns the phase, over the modulus; nothing where the modulus is 0. Zero for real numbers."""
    if self._array.dtype.kind != "c":
        return zero_grad(g)
    modulus = self.abs()
    twice = modulus * 2
    turned = (g - result * (conj(g) * result)) / twice
    return turned.masked_fill_(modulus == 0, 0.0)


sgn = op(
    "sgn(Tensor self) -> Tensor",
    _sign,
    promote=Promotion.SAME,
    inplace=True,
    doc="""The direction of each number: its sign, and for complex ones the number divided by its length.

    >>> torch.sgn(torch.tensor([3 + 4j]))
    tensor([0.6000+0.8000j])
    """,
)
sgn.vjp(self=_sgn_grad)

sign = op(
    "sign(Tensor self) -> Tensor",
    _sign,
    promote=Promotion.REAL,
    inplace=True,
    complex_error=ComplexError(
        NotImplementedError,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    ),
    doc="""-1, 0 or 1 by the sign of each element.

    >>> torch.sign(torch.tensor([-3.0, 0.0, 5.0]))
    tensor([-1.,  0.,  1.])
    """,
)
sign.vjp(self=zero_grad)


@composite("positive(Tensor(a) self) -> Tensor(a)")
def positive(self):
    """The input itself; refuses bools.

    >>> torch.positive(torch.tensor([1.0, -2.0]))
    tensor([ 1., -2.])
    """
    if self._array.dtype is _BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


# ---------------------------------------------------------------- operators


def _wrapped(number, other):
    """A number as a tensor, made by the op with which torch makes it, that leaves the other operand's dtype as it is."""
    dtype = dt.result_type(rank(other), rank(number))
    if dtype.np.kind in "iu":
        number = int(number_for(number, dtype.np))  # too wide a number wraps around
    return aten.scalar_tensor(number, dtype=dtype)


# Operators that are not an op of the same name.
OPERATORS = {
    "__mod__": operator_form("remainder"),
    "__imod__": operator_form("remainder_"),
    "__rmod__": as_operator(lambda self, other: aten.remainder(other, self)),
    "__floordiv__": operator_form("floor_divide"),
    "__ifloordiv__": operator_form("floor_divide_"),
    "__rfloordiv__": as_operator(lambda self, other: aten.floor_divide(_wrapped(as_number(other), self), self)),
    "__pos__": aten.positive,
    "__rdiv__": as_operator(lambda self, other: aten.reciprocal(self) * other),
}
