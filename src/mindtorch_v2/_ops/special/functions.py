"""Exponentials, logarithms, circular and hyperbolic functions, and the special functions."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core.tensor import Tensor
from ..._core.threads import threads
from ..._dispatch.facts import ComplexError, Layout, Promotion
from ..._dispatch.registry import aten, composite, op
from .._support import special_math
from .._support.common import home_of, like_first, no_derivative, no_kernel, scalar_name
from .._support.elementwise import constant, log_add_exp, need_real
from .._support.erf import erf32
from .._support.flops import per_element
from .._support.numbers import number_of
from ..pointwise.arithmetic import conj, count

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_NOT_FOR_COMPLEX = ComplexError(RuntimeError, "{} is not supported for complex tensors.")


def _unary(name, kernel, grad, **options):
    """Declare a function of one tensor that turns integers into floats, and its in-place form."""
    made = op(
        f"{name}(Tensor self) -> Tensor", kernel, promote=Promotion.FLOAT, inplace=not name.startswith("special_"), **options
    )
    made.vjp(self=grad)
    return made


# ---------------------------------------------------------------- exponentials and logarithms

_unary(
    "exp",
    np.exp,
    lambda g, result: g * conj(result),
    flops=count,
    doc="""The exponential of each element.

    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
)
_unary(
    "exp2",
    np.exp2,
    lambda g, result: (g * conj(result)) * math.log(2),
    flops=count,
    aliases=("special_exp2",),
    doc="""Two to the power of each element.

    >>> torch.exp2(torch.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """,
)
_unary(
    "expm1",
    np.expm1,
    lambda g, result: g * (conj(result) + 1),
    flops=count,
    aliases=("special_expm1",),
    doc="""`exp(x) - 1`, exact for small x.

    >>> torch.expm1(torch.tensor([0.0, 1e-6]))
    tensor([0.0000e+00, 1.0000e-06])
    """,
)
_unary(
    "log",
    np.log,
    lambda g, self: g / conj(self),
    flops=count,
    doc="""The natural logarithm of each element.

    >>> torch.log(torch.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """,
)
_unary(
    "log2",
    np.log2,
    lambda g, self: g / (conj(self) * math.log(2)),
    flops=count,
    doc="""The logarithm to base 2.

    >>> torch.log2(torch.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """,
)
_unary(
    "log10",
    np.log10,
    lambda g, self: g / (conj(self) * math.log(10)),
    flops=count,
    doc="""The logarithm to base 10.

    >>> torch.log10(torch.tensor([2.0, 5.0]))
    tensor([0.3010, 0.6990])
    """,
)
_unary(
    "log1p",
    np.log1p,
    lambda g, self: g / conj(self + 1),
    flops=count,
    aliases=("special_log1p",),
    doc="""`log(1 + x)`, exact for small x.

    >>> torch.log1p(torch.tensor([0.0, 1e-6]))
    tensor([0.0000e+00, 1.0000e-06])
    """,
)


def _log_sum(name, ufunc, exponential, *, doc=None):
    def kernel(self, other):
        if self.dtype.kind in "iub":
            raise no_kernel(f"{name}_cpu", self)
        return ufunc(self, other)

    made = op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        kernel,
        promote=Promotion.SAME,
        tensors_only=True,
        flops=per_element(3),
        doc=doc,
    )
    made.vjp(
        self=lambda g, self, other: g / conj(exponential(other - self) + 1),
        other=lambda g, self, other: g / conj(exponential(self - other) + 1),
    )


_log_sum(
    "logaddexp",
    log_add_exp,
    lambda t: t.exp(),
    doc="""`log(exp(input) + exp(other))` without overflow.

    >>> torch.logaddexp(torch.tensor([0.0, 100.0]), torch.tensor([0.0, 1.0]))
    tensor([  0.6931, 100.0000])
    """,
)
_log_sum(
    "logaddexp2",
    np.logaddexp2,
    lambda t: aten.pow(2.0, t),
    doc="""`log2(2**input + 2**other)` without overflow.

    >>> torch.logaddexp2(torch.tensor([3.0]), torch.tensor([3.0]))
    tensor([4.])
    """,
)

# ---------------------------------------------------------------- circular and hyperbolic functions

_unary(
    "sin",
    np.sin,
    lambda g, self: g * conj(self.cos()),
    flops=count,
    doc="""The sine of each element.

    >>> torch.sin(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """,
)
_unary(
    "cos",
    np.cos,
    lambda g, self: g * -conj(self.sin()),
    flops=count,
    doc="""The cosine of each element.

    >>> torch.cos(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """,
)
_unary(
    "tan",
    np.tan,
    lambda g, result: g * conj(result.pow(2) + 1),
    flops=count,
    doc="""The tangent of each element.

    >>> torch.tan(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """,
)
_unary(
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
_unary(
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
_unary(
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
_unary(
    "sinh",
    np.sinh,
    lambda g, self: g * conj(self.cosh()),
    flops=per_element(1),
    doc="""The hyperbolic sine of each element.

    >>> torch.sinh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """,
)
_unary(
    "cosh",
    np.cosh,
    lambda g, self: g * conj(self.sinh()),
    flops=per_element(1),
    doc="""The hyperbolic cosine of each element.

    >>> torch.cosh(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """,
)
_unary(
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


_unary(
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


_unary(
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


_unary(
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


_unary(
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

# ---------------------------------------------------------------- quotients and products that pass through 0


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


def _times_log(name, log, pole):
    """self * log(other), 0 where self is 0 whatever the logarithm, nan where other is."""

    def kernel(self, other):
        if self.dtype.kind in "cW":
            raise no_kernel(f"{name}_cpu", self)
        if other.__class__ is not np.ndarray:
            other = np.array(other, self.dtype)
        if other.dtype.kind == "c":
            raise TypeError("complex numbers")
        value = np.multiply(self, log(other))
        product = np.where((self == 0) & ~np.isnan(other), np.zeros((), value.dtype), value)
        return product.astype(value.dtype, copy=False)

    def self_grad(name):
        def grad(g, self, other):
            moved = getattr(aten, name)(g, other)
            dead = other <= pole
            return moved.masked_fill(aten.bitwise_and(self == 0, dead), 0.0)

        return grad

    return kernel, self_grad


_xlogy, _xlogy_self_grad = _times_log("xlogy", np.log, 0)

xlogy = op(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    _xlogy,
    promote=Promotion.FLOAT,
    inplace=True,
    aliases=("special_xlogy",),
    flops=per_element(2),
    out_overload="OutTensor",
    doc="""`input * log(other)`, and 0 where the input is 0.

    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """,
)
xlogy.vjp(self=_xlogy_self_grad("xlogy"), other=lambda g, self, other: (g * self) / other)

xlogy_of_number = op(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    lambda self, other: _xlogy(np.array(self, other.dtype), other),
    promote=Promotion.FLOAT,
    promoted=("self", "other"),
    node="XlogyBackward1",
    tensors_only=True,
    samples=lambda make: [(0.5, make(3, 4))],
    aliases=("special_xlogy",),
    flops=per_element(2),
    out_overload="OutScalar_Self",
)
xlogy_of_number.vjp(other=lambda g, self, other: (g * self) / other)

_xlog1py, _xlog1py_self_grad = _times_log("xlog1py", np.log1p, -1)

xlog1py = op(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    _xlog1py,
    promote=Promotion.FLOAT,
    node="SpecialXlog1PyBackward0",
    flops=per_element(2),
    doc="""`input * log1p(other)`, and 0 where the input is 0.

    >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """,
)
xlog1py.vjp(self=_xlog1py_self_grad("special_xlog1py"), other=lambda g, self, other: (g * self) / (other + 1))

xlog1py_of_number = op(
    "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
    lambda self, other: _xlog1py(np.array(self, other.dtype), other),
    promote=Promotion.FLOAT,
    promoted=("self", "other"),
    node="SpecialXlog1PyBackward1",
    tensors_only=True,
    samples=lambda make: [(0.5, make(3, 4))],
    flops=per_element(2),
)
xlog1py_of_number.vjp(other=lambda g, self, other: (g * self) / (other + 1))


@op("special_entr(Tensor self) -> Tensor", promote=Promotion.FLOAT, flops=per_element(2))
def entr(self):
    """The entropy `-x log(x)` of each element; minus infinity for negative ones.

    >>> torch.special.entr(torch.tensor([0.0, 0.5, -1.0]))
    tensor([0.0000, 0.3466,   -inf])
    """
    entropy = np.where(self > 0, -self * np.log(np.where(self > 0, self, 1)), np.where(self == 0, 0, -np.inf))
    return np.where(np.isnan(self), self, entropy).astype(self.dtype, copy=False)


def _entr_grad(g, self):
    slope = -(self.log() + 1)
    return g * slope


entr.vjp(self=_entr_grad)

# ---------------------------------------------------------------- logit


@op(
    "logit(Tensor self, float? eps=None) -> Tensor",
    promote=Promotion.FLOAT,
    inplace=True,
    samples=lambda make: [(make(3, 4),), (make(3, 4), 0.2)],
    aliases=("special_logit",),
    flops=per_element(3),
)
def logit(self, eps):
    """The inverse of the sigmoid, `log(x / (1 - x))`; `eps` keeps x away from 0 and 1.

    >>> torch.logit(torch.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    if self.dtype.kind == "c":
        raise TypeError("complex numbers")
    if eps is not None:
        if isinstance(eps, Tensor):
            eps = float(number_of(eps.item(), np.dtype(np.float64)))
        self = np.minimum(np.maximum(self, np.array(eps, self.dtype)), np.array(1 - eps, self.dtype))
    return np.log(np.divide(self, np.subtract(np.array(1, self.dtype), self)))


logit.vjp(self=lambda g, self, eps: aten.logit_backward(g, self, eps))


@op(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4)), (make(3, 4), make(3, 4), 0.2)],
)
def logit_backward(grad_output, self, eps):
    low = 0.0 if eps is None else eps
    slope = np.divide(grad_output, np.multiply(self, np.subtract(np.array(1, self.dtype), self)))
    outside = np.array(np.nan if eps is None else 0.0, slope.dtype)
    return np.where((self >= low) & (self <= 1 - low), slope, outside)


def _logit_double(g, grad_output, self, eps):
    slope = (self * 2 - 1) / (self * (1 - self)).square()
    moved = g * grad_output * slope
    if eps is None:
        return moved
    return moved.masked_fill((self < eps).logical_or_(self > 1 - eps), 0.0)


logit_backward.vjp(grad_output=lambda g, self, eps: aten.logit_backward(g, self, eps), self=_logit_double)

# ---------------------------------------------------------------- the error function


def _in_double(function):
    """A kernel that computes in float64, which the special functions take, and returns the input's dtype."""

    def kernel(self):
        if self.dtype.kind in "cW":  # W: complex32
            raise NotImplementedError(f"{function.__name__} not implemented for '{scalar_name(self)}'")
        return np.asarray(function(self.astype(np.float64, copy=False))).astype(self.dtype, copy=False)

    return kernel


_erf_in_double = _in_double(special_math.erf)


def _erf(self):
    return erf32(self) if self.dtype is np.dtype(np.float32) else _erf_in_double(self)


def _gaussian(g, self, factor):
    bell = factor * (-self.pow(2)).exp()
    return bell * g


_unary(
    "erf",
    _erf,
    lambda g, self: _gaussian(g, self, _TWO_OVER_ROOT_PI),
    flops=per_element(1),
    aliases=("special_erf",),
    doc="""The error function.

    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
)
_unary(
    "erfc",
    _in_double(special_math.erfc),
    lambda g, self: _gaussian(g, self, -_TWO_OVER_ROOT_PI),
    flops=per_element(1),
    aliases=("special_erfc",),
    doc="""One minus the error function, exact where that is small.

    >>> torch.erfc(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """,
)
_unary(
    "erfinv",
    _in_double(special_math.erfinv),
    lambda g, self: (0.5 * math.sqrt(math.pi)) * self.erfinv().pow(2).exp() * g,
    flops=per_element(1),
    aliases=("special_erfinv",),
    doc="""The inverse of the error function.

    >>> torch.erfinv(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """,
)
_unary(
    "special_erfcx",
    _in_double(special_math.erfcx),
    lambda g, self, result: ((self * 2) * result - _TWO_OVER_ROOT_PI) * g,
    doc="""The scaled complementary error function, `exp(x**2) * erfc(x)`.

    >>> torch.special.erfcx(torch.tensor([0.0, 10.0]))
    tensor([1.0000, 0.0561])
    """,
)
_unary(
    "special_ndtri",
    _in_double(special_math.ndtri),
    lambda g, result: g * (math.sqrt(2 * math.pi) * (result.square() / 2).exp()),
    doc="""The inverse of the normal distribution's cumulative probability.

    >>> torch.special.ndtri(torch.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """,
)
_unary(
    "special_log_ndtr",
    _in_double(special_math.log_ndtr),
    lambda g, self, result: g * ((-(result + self.pow(2) / 2)).exp() / math.sqrt(2 * math.pi)),
    doc="""The logarithm of the normal distribution's cumulative probability, exact far out.

    >>> torch.special.log_ndtr(torch.tensor([0.0, -10.0]))
    tensor([ -0.6931, -53.2313])
    """,
)
composite(
    "special_ndtr(Tensor self) -> Tensor",
    lambda self: (aten.erf(self * math.sqrt(0.5)) + 1) * 0.5,
    out=True,
    doc="""The cumulative probability of the normal distribution.

    >>> torch.special.ndtr(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """,
)

# ---------------------------------------------------------------- the gamma function

_unary(
    "lgamma",
    _in_double(special_math.lgamma),
    lambda g, self: g * self.digamma(),
    flops=per_element(1),
    aliases=("special_gammaln",),
    doc="""The logarithm of the absolute value of the gamma function.

    >>> torch.lgamma(torch.tensor([3.0, 0.5]))
    tensor([0.6931, 0.5724])
    """,
)
_unary(
    "digamma",
    _in_double(special_math.digamma),
    lambda g, self: g * aten.polygamma(1, self),
    flops=per_element(1),
    aliases=("special_digamma", "special_psi"),
    doc="""The logarithmic derivative of the gamma function.

    >>> torch.digamma(torch.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """,
)


@op(
    "polygamma(int n, Tensor self) -> Tensor",
    promote=Promotion.FLOAT,
    samples=lambda make: [(1, make(3, 4) + 1)],
    aliases=("special_polygamma",),
    flops=per_element(1),
)
def polygamma(n, self):
    """The n-th derivative of the digamma function.

    >>> torch.polygamma(1, torch.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _in_double(lambda x: special_math.polygamma(n, x))(self)


polygamma.vjp(self=lambda g, n, self: g * aten.polygamma(n + 1, self))

polygamma_ = composite(
    "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
    lambda self, n: aten.polygamma(n, self, out=self),
    node="PolygammaBackward1",
    samples=lambda make: [(make(3, 4) + 1, 1)],
    flops=per_element(1),
)
polygamma_.vjp(self=lambda g, n, self: g * aten.polygamma(n + 1, self))


@op(
    "mvlgamma(Tensor self, int p) -> Tensor",
    layout=Layout.ROW_MAJOR,
    promote=Promotion.FLOAT,
    inplace=True,
    samples=lambda make: [(make(3, 4) + 2, 2)],
    aliases=("special_multigammaln",),
)
def mvlgamma(self, p):
    """The logarithm of the multivariate gamma function of dimension `p`.

    >>> torch.mvlgamma(torch.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    need_real("mvlgamma", self)
    x = self.astype(np.float64)[..., None] + (1 - np.arange(1, p + 1)) / 2
    total = special_math.lgamma(x).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
    return np.asarray(total).astype(self.dtype, copy=False)


def _mvlgamma_grad(g, self, p):
    halves = aten.arange(-p / 2 + 0.5, 0.5, 0.5, dtype=self.dtype, device=home_of(self))
    return g * (self.unsqueeze(-1) + halves).digamma_().sum(-1)


mvlgamma.vjp(self=_mvlgamma_grad)


def _pair_in_double(function, name):
    def kernel(self, other):
        wanted = self.dtype if isinstance(self, np.ndarray) else other.dtype
        need_real(name, np.empty(0, wanted))
        result = function(np.asarray(self, np.float64), np.asarray(other, np.float64))
        return np.asarray(result).astype(wanted, copy=False)

    return kernel


def _zeta(self, other):
    array = self if isinstance(self, np.ndarray) else other
    if array.dtype.name not in ("float32", "float64"):
        raise no_kernel("zeta_cpu", array)
    return _zeta_in_double(self, other)


_zeta_in_double = _pair_in_double(special_math.zeta, "zeta_cpu")

zeta = op(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    _zeta,
    promote=Promotion.FLOAT,
    samples=lambda make: [(make(3, 4).detach() + 2, make(3, 4))],
    flops=per_element(1),
    doc="""The Hurwitz zeta function.

    >>> torch.special.zeta(torch.tensor([2.0]), torch.tensor([1.0]))
    tensor([1.6449])
    """,
)
zeta.vjp(self=no_derivative("zeta"), other=lambda g, self, other: g * -(self * aten.special_zeta(self + 1, other)))

zeta_of_number = op(
    "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
    _zeta,
    promote=Promotion.FLOAT,
    promoted=("self", "other"),
    node="SpecialZetaBackward1",
    tensors_only=True,
    samples=lambda make: [(3.0, make(3, 4))],
    flops=per_element(1),
)
zeta_of_number.vjp(other=lambda g, self, other: g * (aten.special_zeta(self + 1.0, other) * -self))


def _incomplete_grad(sign):
    return lambda g, self, other: g * (sign * ((self - 1) * other.log() - other - self.lgamma()).exp())


def _second_only(make):
    return [(make(3, 4).detach() + 0.5, make(3, 4) + 0.5)]


igamma = op(
    "igamma(Tensor self, Tensor other) -> Tensor",
    _pair_in_double(special_math.gammainc, "igamma_cpu"),
    promote=Promotion.FLOAT,
    tensors_only=True,
    inplace=True,
    samples=_second_only,
    aliases=("special_gammainc",),
    flops=per_element(1),
    doc="""The regularized lower incomplete gamma function of order `input` at `other`.

    >>> torch.igamma(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor([0.6321, 0.5940])
    """,
)
igamma.vjp(self=no_derivative("igamma: input"), other=_incomplete_grad(1))
igammac = op(
    "igammac(Tensor self, Tensor other) -> Tensor",
    _pair_in_double(special_math.gammaincc, "igammac_cpu"),
    promote=Promotion.FLOAT,
    tensors_only=True,
    inplace=True,
    samples=_second_only,
    aliases=("special_gammaincc",),
    flops=per_element(1),
    doc="""The regularized upper incomplete gamma function of order `input` at `other`.

    >>> torch.igammac(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor([0.3679, 0.4060])
    """,
)
igammac.vjp(self=no_derivative("igammac: input"), other=_incomplete_grad(-1))

# ---------------------------------------------------------------- modified Bessel functions


def _away_from_zero(self):
    """Where |x| is large enough to divide by x, and x with a harmless value elsewhere."""
    tiny = 2.220446049250313e-16 if self._array.dtype == np.float64 else 1.1920928955078125e-07
    large = self.abs() > tiny
    return large, aten.where(large, self, aten.scalar_tensor(tiny, dtype=self.dtype))


def _i1_grad(g, self, result):
    large, safe = _away_from_zero(self)
    slope = aten.i0(safe) - result * safe.reciprocal()
    return g * aten.where(large, slope, aten.scalar_tensor(0.5, dtype=self.dtype))


def _i1e_grad(g, self, result):
    large, safe = _away_from_zero(self)
    rate = safe.sgn() + safe.reciprocal()
    slope = aten.special_i0e(safe) - result * rate
    return g * aten.where(large, slope, aten.scalar_tensor(0.5, dtype=self.dtype))


_unary(
    "i0",
    _in_double(special_math.i0),
    lambda g, self: g * aten.special_i1(self),
    flops=per_element(1),
    aliases=("special_i0",),
    doc="""The modified Bessel function of the first kind and order 0.

    >>> torch.i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
)
_unary(
    "special_i0e",
    _in_double(special_math.i0e),
    lambda g, self, result: g * (aten.special_i1e(self) - self.sgn() * result),
    node="SpecialI0EBackward0",
    flops=per_element(1),
    doc="""The modified Bessel function of order 0, scaled by `exp(-|x|)`.

    >>> torch.special.i0e(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """,
)
_unary(
    "special_i1",
    _in_double(special_math.i1),
    _i1_grad,
    flops=per_element(1),
    doc="""The modified Bessel function of the first kind and order 1.

    >>> torch.special.i1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
)
_unary(
    "special_i1e",
    _in_double(special_math.i1e),
    _i1e_grad,
    node="SpecialI1EBackward0",
    flops=per_element(1),
    doc="""The modified Bessel function of order 1, scaled by `exp(-|x|)`.

    >>> torch.special.i1e(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """,
)

# The order comes first in the op and second in the method.
METHODS = {"polygamma": lambda self, n: aten.polygamma(n, self)}

# ---------------------------------------------------------------- ops of other families that torch.special lists

composite(
    "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    lambda self, dim, dtype: aten.softmax(self, dim, dtype),
    samples=lambda make: [(make(3, 4), 1)],
    doc="""The softmax along a dim: exponentials divided by their sum.

    >>> torch.special.softmax(torch.tensor([1.0, 1.0]), 0)
    tensor([0.5000, 0.5000])
    """,
)
composite(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    lambda self, dim, dtype: aten.log_softmax(self, dim, dtype),
    samples=lambda make: [(make(3, 4), 1)],
    doc="""The logarithm of the softmax along a dim.

    >>> torch.special.log_softmax(torch.tensor([1.0, 1.0]), 0)
    tensor([-0.6931, -0.6931])
    """,
)
composite(
    "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    lambda self, dim, keepdim: aten.logsumexp(self, dim, keepdim),
    samples=lambda make: [(make(3, 4), 1)],
    out=True,
    doc="""The logarithm of the sum of exponentials along a dim, without overflow.

    >>> torch.special.logsumexp(torch.tensor([1.0, 1.0]), 0)
    tensor(1.6931)
    """,
)
