"""Circular and hyperbolic functions, and the sinus cardinalis."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core.threads import threads
from ..._dispatch.facts import ComplexError, Promotion
from ..._dispatch.registry import aten, op
from .._support.elementwise import constant
from .._support.flops import per_element
from ..pointwise.arithmetic import conj, count
from ._declare import unary

_NOT_FOR_COMPLEX = ComplexError(RuntimeError, "{} is not supported for complex tensors.")

unary(
    "sin",
    np.sin,
    lambda g, self: g * conj(self.cos()),
    flops=count,
    doc="""The sine of each element.

    >>> torch.sin(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """,
)
unary(
    "cos",
    np.cos,
    lambda g, self: g * -conj(self.sin()),
    flops=count,
    doc="""The cosine of each element.

    >>> torch.cos(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """,
)
unary(
    "tan",
    np.tan,
    lambda g, result: g * conj(result.pow(2) + 1),
    flops=count,
    doc="""The tangent of each element.

    >>> torch.tan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """,
)
unary(
    "asin",
    np.arcsin,
    lambda g, self: g * conj((-self * self + 1).rsqrt()),
    flops=per_element(1),
    aliases=("arcsin",),
    doc="""The arc sine of each element, in radians.

    >>> torch.asin(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """,
)
unary(
    "acos",
    np.arccos,
    lambda g, self: g * -conj((-self * self + 1).rsqrt()),
    flops=per_element(1),
    aliases=("arccos",),
    doc="""The arc cosine of each element, in radians.

    >>> torch.acos(torch.tensor([1.0, 0.0]))
    tensor([0.0000, 1.5708])
    """,
)
unary(
    "atan",
    np.arctan,
    lambda g, self: g / conj(self * self + 1),
    flops=per_element(1),
    aliases=("arctan",),
    doc="""The arc tangent of each element, in radians.

    >>> torch.atan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """,
)
unary(
    "sinh",
    np.sinh,
    lambda g, self: g * conj(self.cosh()),
    flops=per_element(1),
    doc="""The hyperbolic sine of each element.

    >>> torch.sinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """,
)
unary(
    "cosh",
    np.cosh,
    lambda g, self: g * conj(self.sinh()),
    flops=per_element(1),
    doc="""The hyperbolic cosine of each element.

    >>> torch.cosh(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """,
)
unary(
    "asinh",
    np.arcsinh,
    lambda g, self: g * conj((self.pow(2) + 1).rsqrt()),
    flops=per_element(1),
    aliases=("arcsinh",),
    doc="""The inverse hyperbolic sine of each element.

    >>> torch.asinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """,
)


def _acosh_grad(g, self):
    if self._array.dtype.kind != "c":
        return g * (self * self - 1).rsqrt()
    return g * conj((self - 1).rsqrt() * (self + 1).rsqrt())  # one root of the product would be on the wrong branch


unary(
    "acosh",
    np.arccosh,
    _acosh_grad,
    samples=lambda make: [(make(3, 4) + 1.5,)],
    flops=per_element(1),
    aliases=("arccosh",),
    doc="""The inverse hyperbolic cosine of each element.

    >>> torch.acosh(torch.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """,
)


def _atanh_grad(g, self):
    square = self.pow(2)
    rest = aten.fill_(aten.empty_like(square), 1).sub_(square)
    return (g * 1) / conj(rest)


unary(
    "atanh",
    np.arctanh,
    _atanh_grad,
    flops=per_element(1),
    aliases=("arctanh",),
    doc="""The inverse hyperbolic tangent of each element.

    >>> torch.atanh(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """,
)

atan2 = op(
    "atan2(Tensor self, Tensor other) -> Tensor",
    np.arctan2,
    promote=Promotion.FLOAT,
    tensors_only=True,
    inplace=True,
    aliases=("arctan2",),
    flops=per_element(1),
    doc="""The angle of the point (other, input), in the right quadrant.

    >>> torch.atan2(torch.tensor([1.0, -1.0]), torch.tensor([-1.0, -1.0]))
    tensor([ 2.3562, -2.3562])
    """,
)


@atan2.vjp
def _(g, self, other, needs):
    square = self * self + other * other
    inverse = square.reciprocal()
    # With history, the reciprocal is needed as it was.
    fill = aten.masked_fill if threads.state.grad_enabled else aten.masked_fill_
    inverse = fill(inverse, square == 0, 0.0)
    return (g * other * inverse if needs[0] else None), (g * -self * inverse if needs[1] else None)


unary(
    "deg2rad",
    np.deg2rad,
    lambda g: g * (math.pi / 180),
    flops=per_element(1),
    complex_error=_NOT_FOR_COMPLEX,
    doc="""Degrees as radians.

    >>> torch.deg2rad(torch.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """,
)


def _degrees(self, out=None):
    """The factor in the dtype itself, which rounds it; narrow types are computed in float32."""
    if self.dtype.kind != "f" or self.dtype.itemsize == 2:
        return np.rad2deg(self, out)
    return np.multiply(self, constant(180 / math.pi, self.dtype), out)


unary(
    "rad2deg",
    _degrees,
    lambda g: g * (180 / math.pi),
    flops=per_element(1),
    complex_error=_NOT_FOR_COMPLEX,
    doc="""Radians as degrees.

    >>> torch.rad2deg(torch.tensor([3.141592653589793]))
    tensor([180.])
    """,
)


@op("sinc(Tensor self) -> Tensor", promote=Promotion.FLOAT, inplace=True, aliases=("special_sinc",), flops=per_element(2))
def sinc(self):
    """`sin(pi x) / (pi x)`, and 1 at 0.

    >>> torch.sinc(torch.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    angle = np.multiply(self, np.array(math.pi, self.dtype))
    return np.where(
        self == 0,
        np.array(1, self.dtype),
        np.divide(np.sin(angle), np.where(self == 0, 1, angle).astype(self.dtype, copy=False)),
    )


def _sinc_grad(g, self):
    angle = self * math.pi
    scale = self * self * math.pi
    sine = angle.sin()
    slope = (angle * angle.cos() - sine) / scale
    moved = g * conj(slope)
    zero = aten.scalar_tensor(0.0, dtype=moved.dtype)
    return aten.where(scale == 0, zero, moved)


sinc.vjp(self=_sinc_grad)
