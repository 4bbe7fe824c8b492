"""Powers and roots, element by element."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.facts import Layout, Promotion
from ..._dispatch.registry import aten, composite, op
from .._support.blockwise import BLOCK, in_blocks_of_one
from .._support.common import no_kernel
from .._support.elementwise import constant, need_float
from .._support.numbers import number_of
from ._large_pairs import SOME, fill_hypot, large_pair
from .arithmetic import conj, count, number, zero_grad
from .scalar_forms import mul_number

_array = np.array

# ---------------------------------------------------------------- roots


def _sqrt_grad(g, result):
    return g / conj(mul_number(result, 2))


sqrt = op(
    "sqrt(Tensor self) -> Tensor",
    np.sqrt,
    half_in_float32="fV",
    promote=Promotion.FLOAT,
    inplace=True,
    flops=count,
    doc="""The square root of each element; nan for negative ones.

    >>> torch.sqrt(torch.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """,
)
sqrt.vjp(self=_sqrt_grad)


@op("hypot(Tensor self, Tensor other) -> Tensor", promote=Promotion.SAME, tensors_only=True, inplace=True, flops=count)
def hypot(self, other, out=None):
    """The length of the hypotenuse: `sqrt(input**2 + other**2)` without overflow.

    >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
    tensor([5.])
    """
    need_float("hypot_cpu", self)
    if self.size >= SOME and (length := large_pair(fill_hypot, self, other, out)) is not None:
        return length
    return np.hypot(self, other, out)


hypot.vjp(self=lambda g, self, result: g * self / result, other=lambda g, other, result: g * other / result)


@op("rsqrt(Tensor self) -> Tensor", promote=Promotion.FLOAT, inplace=True, flops=count)
def rsqrt(self, out=None):
    """One divided by the square root of each element.

    >>> torch.rsqrt(torch.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
    """
    if self.size > BLOCK and (result := in_blocks_of_one(_fill_rsqrt, self, out)) is not None:
        return result
    root = np.sqrt(self, out)
    return np.reciprocal(root, root if out is None and root.ndim else out)


def _fill_rsqrt(out, x):
    np.sqrt(x, out)
    np.divide(constant(1, x.dtype), out, out)  # NumPy's reciprocal takes twice as long


def _rsqrt_grad(g, result):
    cubed = conj(result.pow(3))
    return mul_number(g, -0.5) * cubed


rsqrt.vjp(self=_rsqrt_grad)


# ---------------------------------------------------------------- powers


def _integer_power(self, exponent, out):
    """Integers to a number: negative exponents are an error, as torch has it."""
    if exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if self.dtype.kind == "b":
        return np.logical_or(self, not exponent, out)
    return np.power(self, number_of(exponent, self.dtype), out)


@op(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    promote=Promotion.FITTING,
    promoted=("self", "exponent"),
    inplace=True,
    flops=count,
    samples=lambda make: [(make(3, 4), 2), (make(3, 4), 2.5), (make(3, 4), 0)],
)
def pow_scalar(self, exponent, out=None):
    """Each element to the power of `exponent`.

    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    >>> torch.pow(2, torch.tensor([1, 2, 3]))
    tensor([2, 4, 8])
    """
    if exponent == 2:
        return np.square(self, out)
    if self.dtype.kind in "iub":
        return _integer_power(self, exponent, out)
    if exponent == 0.5:
        return np.sqrt(self, out)
    if exponent == -1:
        return np.reciprocal(self, out)
    if exponent == 3:
        if self.size > BLOCK and (cubes := in_blocks_of_one(_fill_cubes, self, out)) is not None:
            return cubes
        return np.multiply(np.multiply(self, self), self, out)
    if exponent == -0.5:
        return np.reciprocal(np.sqrt(self), out)
    if exponent.__class__ is complex or self.dtype.kind == "c":
        return np.power(self, exponent, out)
    return np.power(self, number(exponent, self.dtype), out)


def _fill_cubes(out, x):
    square = np.multiply(x, x, None if np.may_share_memory(out, x) else out)
    np.multiply(square, x, out)


def _pow_scalar_grad(g, self, exponent):
    if exponent == 0 and exponent is not False:  # which torch does not take for 0
        return zero_grad(g)
    return g * conj(mul_number(self.pow(exponent - 1), exponent))


pow_scalar.vjp(self=_pow_scalar_grad)


@op(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    promote=Promotion.SAME,
    inplace=True,
    node="PowBackward1",
    flops=count,
)
def pow_tensor(self, exponent, out=None):
    kind = self.dtype.kind
    if kind == "i" and (exponent < 0).any():
        return _reciprocal_power(self, exponent, out)
    if kind == "b":
        raise no_kernel("pow", self)
    if kind == "c":
        return _complex_power(self, exponent, out)
    return np.power(self, exponent, out)


def _complex_power(base, exponent, out=None):
    """`exp(exponent * log(base))`, as C computes it: 0 to the power of 0 is nan, where NumPy has 1."""
    undefined = (base == 0) & (exponent == 0)
    power = np.power(base, exponent, out)
    if undefined.any():
        power = np.asarray(power)
        power[undefined] = complex(math.nan, math.nan)
    return power


def _reciprocal_power(self, exponent, out):
    """Integers to integers of which some are negative: reciprocals are cut off to 0, but for those of 1 and -1."""
    signs = np.where(exponent & 1, self, self * self)
    power = np.power(self, np.maximum(exponent, 0))
    result = np.where(exponent < 0, np.where(np.abs(self) == 1, signs, 0), power)
    return result if out is None else np.positive(result, out)  # which broadcasts no target, as copyto would


def _pow_self_grad(g, self, exponent):
    slope = exponent * self.pow(exponent - 1)
    moved = g * conj(slope)
    zero = aten.scalar_tensor(0.0, dtype=g.dtype)
    return aten.where(exponent == 0, zero, moved)


def _is_flat(exponent):
    """Where a power of 0 stays 0 (or 1) as the exponent moves."""
    if exponent.dtype.is_complex:
        return aten.logical_and(aten.real(exponent) >= 0, aten.imag(exponent) == 0)
    return exponent >= 0


def _pow_exponent_grad(g, self, exponent, result):
    flat = _is_flat(exponent)
    flat = aten.logical_and(self == 0, flat)
    common = aten.result_type(self, exponent)
    slope = conj(result * aten.to(self, dtype=common).log())
    return g * aten.where(flat, aten.scalar_tensor(0.0, dtype=slope.dtype), slope)


pow_tensor.vjp(self=_pow_self_grad, exponent=_pow_exponent_grad)


@op(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    promote=Promotion.SAME,
    promoted=("self", "exponent"),
    layout=Layout.ROW_MAJOR,
    node="PowBackward2",
    flops=count,
    tensors_only=True,
    samples=lambda make: [(2.0, make(3, 4))],
)
def pow_of_number(self, exponent):
    if exponent.dtype.kind == "b":
        raise no_kernel("pow", exponent)
    base = _array(self, exponent.dtype)
    if exponent.dtype.kind == "i" and (exponent < 0).any():
        return _reciprocal_power(base, exponent, None)
    return _complex_power(base, exponent) if exponent.dtype.kind == "c" else np.power(base, exponent)


def _pow_of_number_grad(g, self, exponent, result):
    if self == 0:
        flat = _is_flat(exponent)
        return aten.where(flat, 0.0, g * (result * -math.inf))
    log = math.log(self) if not isinstance(self, complex) and self > 0 else complex(np.log(complex(self)))
    if isinstance(log, complex) and not isinstance(self, complex):
        log = log if result.dtype.is_complex else math.nan
    return g * conj(result * log)


pow_of_number.vjp(exponent=_pow_of_number_grad)

composite(
    "square(Tensor self) -> Tensor",
    lambda self: aten.pow(self, 2),
    out_form=lambda self, out: aten.pow(self, 2, out=out),
    doc="""The square of each element.

    >>> torch.square(torch.tensor([2.0, -3.0]))
    tensor([4., 9.])
    """,
)
composite("square_(Tensor(a!) self) -> Tensor(a!)", lambda self: aten.pow_(self, 2))


def _wide(t):
    """float_power computes in double precision."""
    return aten.to(t, dtype=dt.complex128 if t.dtype.is_complex else dt.float64)


def _float_power_into(self, exponent, out):
    operands = [one.dtype if isinstance(one, Tensor) else dt.number_dtype(one) for one in (self, exponent)]
    wanted = dt.complex128 if any(kind.is_complex for kind in operands) else dt.float64
    if out.dtype is not wanted:
        raise RuntimeError(
            f"the output given to float_power has dtype {out.dtype.scalar_name} but the operation's result requires dtype "
            f"{wanted.scalar_name}"
        )
    self, exponent = (aten.to(one, dtype=wanted) if isinstance(one, Tensor) else one for one in (self, exponent))
    return aten.pow(self, exponent, out=out)


composite(
    "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    lambda self, exponent: aten.pow(_wide(self), exponent),
    samples=lambda make: [(make(3, 4), 2.5)],
    out_form=_float_power_into,
    doc="""Powers computed in double precision, whatever the operands are.

    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """,
)
composite(
    "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    lambda self, exponent: aten.pow(_wide(self), _wide(exponent)),
    out_form=_float_power_into,
)
composite(
    "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
    lambda self, exponent: aten.pow(self, _wide(exponent)),
    samples=lambda make: [(2.0, make(3, 4))],
    out_form=_float_power_into,
)


def _float_power_in_place(self, exponent):
    wanted = dt.complex128 if self.dtype.is_complex else dt.float64
    if self.dtype is not wanted:
        raise RuntimeError(
            "the base given to float_power_ has dtype "
            f"{self.dtype.scalar_name} but the operation's result requires dtype {wanted.scalar_name}"
        )
    return aten.pow_(self, exponent)


composite("float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)", _float_power_in_place, samples=lambda make: [])
composite("float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", _float_power_in_place, samples=lambda make: [])
