"""Rounding, and the parts that floating point numbers are made of."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.facts import Batching, ComplexError, Layout, OutGrad, Overlap, Promotion
from ..._dispatch.registry import aten, composite, op
from .._support.blockwise import BLOCK, in_blocks_of_one
from .._support.common import home_of, no_kernel
from .._support.elementwise import need_real
from .._support.flops import per_element
from .._support.out_rules import exactly
from ._large_pairs import SOME, fill_copysign, fill_nextafter, large_pair
from .arithmetic import conj, count, zero_grad

_array = np.array

# ---------------------------------------------------------------- to whole numbers


_DOCS = {
    "ceil": """The smallest integer that is not below each element.

    >>> torch.ceil(torch.tensor([-1.5, 0.2]))
    tensor([-1.,  1.])
    """,
    "floor": """The largest integer that is not above each element.

    >>> torch.floor(torch.tensor([-1.5, 0.2]))
    tensor([-2.,  0.])
    """,
    "trunc": """Cuts off the fraction of each element.

    >>> torch.trunc(torch.tensor([-1.7, 1.7]))
    tensor([-1.,  1.])
    """,
}


def _no_bool(name, ufunc):
    """A kernel that torch does not define for bool, where NumPy does."""

    def kernel(self, out=None):
        if self.dtype.kind == "b":
            raise no_kernel(f"{name}_vml_cpu", self)
        return ufunc(self, out)

    return kernel


for _name, _ufunc in (("ceil", np.ceil), ("floor", np.floor), ("trunc", np.trunc)):
    op(
        f"{_name}(Tensor self) -> Tensor",
        _no_bool(_name, _ufunc),
        half_in_float32="fV",
        promote=Promotion.SAME,
        inplace=True,
        flops=count,
        complex_error=ComplexError(NotImplementedError, "{} is not supported for complex inputs"),
        doc=_DOCS[_name],
    ).vjp(self=zero_grad)

composite(
    "fix(Tensor self) -> Tensor",
    lambda self: aten.trunc(self),
    out=True,
    doc="""Cuts off the fraction of each element, as `trunc` does.

    >>> torch.fix(torch.tensor([-1.7, 1.7]))
    tensor([-1.,  1.])
    """,
)
composite("fix_(Tensor(a!) self) -> Tensor(a!)", lambda self: aten.trunc_(self))


@op(
    "round(Tensor self) -> Tensor",
    half_in_float32="fV",
    promote=Promotion.SAME,
    inplace=True,
    flops=count,
    aliases=("special_round",),
)
def round_(self, out=None):
    """Rounds to the nearest integer, halves to the even one, or to `decimals` places.

    >>> torch.round(torch.tensor([0.5, 1.5, 2.6]))
    tensor([0., 2., 3.])
    >>> torch.round(torch.tensor([1.2345]), decimals=2)
    tensor([1.2300])
    """
    kind = self.dtype.kind
    if kind == "f":
        return np.rint(self, out)
    if kind == "b":
        raise no_kernel("round_vml_cpu", self)
    need_real("round_vml_cpu", self)
    return np.positive(self, out) if kind in "iu" else np.rint(self, out)


round_.vjp(self=zero_grad)


_MOST_DECIMALS = 308  # the largest power of ten in float64


@op(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    promote=Promotion.SAME,
    inplace=True,
    node="RoundBackward1",
    samples=lambda make: [(make(3, 4), {"decimals": 1})],
    aliases=("special_round",),
)
def round_decimals(self, decimals, out=None):
    if self.dtype.kind in "iub":
        raise no_kernel("round_cpu", self)
    need_real("round_vml_cpu", self)
    if decimals == 0:
        return np.rint(self, out)
    scale = _array(10.0 ** abs(decimals) if abs(decimals) <= _MOST_DECIMALS else np.inf, self.dtype)
    if decimals > 0:
        return np.divide(np.rint(np.multiply(self, scale)), scale, out)
    return np.multiply(np.rint(np.divide(self, scale)), scale, out)


round_decimals.vjp(self=zero_grad)


@op("frac(Tensor self) -> Tensor", promote=Promotion.SAME, inplace=True, flops=per_element(1))
def frac(self, out=None):
    """What lies behind the decimal point, with the sign of the element.

    >>> torch.frac(torch.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """
    if self.dtype.kind in "iub":
        raise no_kernel("frac_cpu", self)
    if self.size > BLOCK and (fractions := in_blocks_of_one(_fill_frac, self, out)) is not None:
        return fractions
    return np.subtract(self, np.trunc(self), out)


def _fill_frac(out, x):
    whole = np.trunc(x, None if np.may_share_memory(out, x) else out)
    np.subtract(x, whole, out)


frac.vjp(self=lambda g: g)


@op(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    promote=Promotion.SAME,
    inplace=True,
)
def nan_to_num(self, nan, posinf, neginf, out=None):
    """Puts numbers in place of nan and of the infinities: 0 and the largest of the dtype unless others are given.

    >>> torch.nan_to_num(torch.tensor([float("nan"), float("inf"), 1.0]), posinf=9.0)
    tensor([0., 9., 1.])
    """
    if self.dtype.kind in "iub":
        return self.copy() if out is None else out
    limits = dt.finfo(dt.from_numpy(self.dtype))
    if self.size > BLOCK:

        def fill(target, block):
            np.copyto(target, block)
            if not np.isfinite(block).all():
                _replace(target, nan, posinf, neginf, limits)

        if (result := in_blocks_of_one(fill, self, out)) is not None:
            return result
    result = np.array(self, order="K") if out is None else out
    for part in (result.real, result.imag) if result.dtype.kind == "c" else (result,):
        _replace(part, nan, posinf, neginf, limits)
    return result


def _replace(part, nan, posinf, neginf, limits):
    # All places before any value: what takes nan's place may be infinite itself.
    places = np.isnan(part), part == np.inf, part == -np.inf
    for place, replacement, usual in zip(places, (nan, posinf, neginf), (0.0, limits.max, limits.min), strict=True):
        part[place] = usual if replacement is None else float(replacement)


nan_to_num.vjp(self=lambda g, self: g * self.isfinite())

# ---------------------------------------------------------------- sign, neighbors, exponent


@op(
    "signbit(Tensor self) -> Tensor",
    nondiff=True,
    shape=lambda self: (self._array.shape, np.dtype(np.bool_)),
    batching=Batching.POINTWISE,
)
def signbit(self):
    """Which elements have the sign bit set, also -0.0.

    >>> torch.signbit(torch.tensor([-1.0, 0.0, -0.0]))
    tensor([ True, False,  True])
    """
    if self.dtype.kind in "cW":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return np.signbit(self) if self.dtype.kind in "fV" else self < 0


def _flat(other):
    """The gradient of an operand that only decides something."""
    return aten.zeros(other._array.shape, dtype=other.dtype, device=home_of(other)) if isinstance(other, Tensor) else None


def _copysign_grad(g, self, result):
    ratio = result / self
    return g * ratio.masked_fill_(self == 0, 0.0)


def _copysign(self, other, out=None):
    if self.size >= SOME and (result := large_pair(fill_copysign, self, other, out)) is not None:
        return result
    return np.copysign(self, other, out)


copysign = op(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    _copysign,
    promote=Promotion.FLOAT,
    inplace=True,
    out_overload="out",
    doc="""The size of each element with the sign of `other`.

    >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-1.0, 1.0]))
    tensor([-1.,  2.])
    """,
)
copysign.vjp(
    self=_copysign_grad,
    other=lambda g, other_shape, other_dtype: aten.zeros(other_shape, dtype=other_dtype, device=home_of(g)),
)


@op("nextafter(Tensor self, Tensor other) -> Tensor", promote=Promotion.SAME, tensors_only=True, inplace=True)
def nextafter(self, other, out=None):
    """The next floating point number from each element in the direction of `other`.

    >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) > 1
    tensor([True])
    """
    if self.dtype.kind in "iubc":
        raise TypeError("only floating point numbers have a next one")
    if self.size >= SOME and (neighbors := large_pair(fill_nextafter, self, other, out)) is not None:
        return neighbors
    return np.nextafter(self, other, out)


def _nextafter_other(g, other_shape, other_dtype):
    """No value is saved: the direction has no slope."""
    return aten.zeros(other_shape, dtype=other_dtype, device=home_of(g))


nextafter.vjp(self=lambda g, self, other: aten.where(self != other, g, 0.0), other=_nextafter_other)


@op(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    layout=Layout.OPERANDS,
    inplace=True,
    shape=lambda self, values: (np.broadcast_shapes(self._array.shape, values._array.shape), self._array.dtype),
    batching=Batching.POINTWISE,
    checks_overlap=Overlap.PART,
    out_dtype=exactly(lambda want, have: "heaviside is not yet implemented for tensors with different dtypes."),
    out_grad=OutGrad.WRITTEN,
)
def heaviside(self, values):
    """0 for negative elements, 1 for positive ones, `values` where an element is 0.

    >>> torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if self.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return np.where(self == 0, values, np.greater(self, 0).astype(self.dtype))


@op(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    promote=Promotion.FLOAT,
    tensors_only=True,
    inplace=True,
    flops=per_element(1),
    out_overload="out",
)
def ldexp(self, other, out=None):
    """Multiplies each element by a power of two: `input * 2**other`.

    >>> torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([2, 3]))
    tensor([ 4., 24.])
    """
    return np.multiply(self, np.exp2(other), out)


ldexp.vjp(self=lambda g, other: g * conj(aten.pow(2.0, other)), other=lambda g, result: g * conj(result * math.log(2)))


@op(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    shape=lambda self: [(self._array.shape, self._array.dtype), (self._array.shape, np.dtype(np.int32))],
    batching=Batching.POINTWISE,
)
def frexp(self):
    """Splits each element into a mantissa in [0.5, 1) and a power of two.

    >>> torch.frexp(torch.tensor([1.0, 10.0]))
    torch.return_types.frexp(
    mantissa=tensor([0.5000, 0.6250]),
    exponent=tensor([1, 4], dtype=torch.int32))
    """
    if self.dtype.kind not in "fV":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return np.frexp(self)


frexp.vjp(self=lambda g, result1: g / result1.exp2())

# ---------------------------------------------------------------- whole numbers


def _of_integers(name, ufunc, *, doc=None):
    def kernel(self, other, out=None):
        if self.dtype.kind not in "iu":
            raise TypeError("only integers have divisors")
        return ufunc(self, other, out)

    op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        kernel,
        promote=Promotion.SAME,
        tensors_only=True,
        inplace=True,
        nondiff=True,
        samples=lambda make: [(make.ints(20, 3, 4), make.ints(20, 3, 4))],
        flops=per_element(1),
        doc=doc,
    )


_of_integers(
    "gcd",
    np.gcd,
    doc="""The greatest common divisor of each pair.

    >>> torch.gcd(torch.tensor([12, 9]), torch.tensor([18, 6]))
    tensor([6, 3])
    """,
)
_of_integers(
    "lcm",
    np.lcm,
    doc="""The least common multiple of each pair.

    >>> torch.lcm(torch.tensor([4, 6]), torch.tensor([6, 8]))
    tensor([12, 24])
    """,
)
