"""Smooth activations, and relu."""

from __future__ import annotations

import math

import numpy as np

from ..._autograd.graph import without_history
from ..._core.single_pass import LARGE
from ..._dispatch.errors import no_order
from ..._dispatch.facts import Batching, Layout, Promotion
from ..._dispatch.registry import aten, composite, op, packets
from .._support import special_math
from .._support.blockwise import BLOCK, blockwise, in_blocks, splits
from .._support.common import like_first
from .._support.elementwise import at_least, clipped, constant, log1p_exp_minus_abs, logistic, need_float, where_true
from .._support.erf import reciprocal_normal_cdf32
from .._support.flops import per_element
from .._support.half import in_float32, is_narrow
from ..pointwise.arithmetic import conj

_F32 = np.dtype(np.float32)


# ---------------------------------------------------------------- relu, tanh, sigmoid


_clamp_min, _clamp_min_ = (packets[name].overloads[""] for name in ("clamp_min", "clamp_min_"))


def _clamped(clamp):
    """What torch's kernel does: an op that keeps each element at or above 0."""

    def form(self):
        kind = self._array.dtype
        if kind is not _F32 and kind.kind in "bcW":
            raise _no_relu(kind.kind)
        return without_history(clamp.call, (self, 0), {})

    return form


def _no_relu(kind):
    return RuntimeError("Boolean inputs not supported for relu") if kind == "b" else no_order()


@op(
    "relu(Tensor self) -> Tensor",
    inplace=True,
    shape=like_first,
    batching=Batching.POINTWISE,
    shared_from=LARGE,
    out=False,
    recorded_form=_clamped(_clamp_min),
    recorded_form_in_place=_clamped(_clamp_min_),
    inner_row=(_clamp_min, (0,)),
)
def relu(self, out=None):
    """The element where it is positive, 0 elsewhere.

    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    kind = self.dtype
    if kind is not _F32 and kind.kind in "bcW":
        raise _no_relu(kind.kind)
    return at_least(self, 0, out)


relu.vjp(self=lambda g, result: aten.threshold_backward(g, result, 0))


@op(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 0.5)],
    batching=Batching.POINTWISE,
    flops=per_element(2),
)
def threshold_backward(grad_output, self, threshold):
    if threshold and is_narrow(self.dtype):  # a threshold that the dtype does not have must not be rounded
        self = self.astype(_F32)
    limit = constant(threshold, self.dtype)
    if grad_output.size <= BLOCK or self.dtype != grad_output.dtype or not splits(grad_output, self):
        return where_true(~np.less_equal(self, limit), grad_output)  # the slope at nan is 1

    def work(target, grads, values):
        target[...] = where_true(~np.less_equal(values, limit), grads)

    return in_blocks(work, np.empty_like(grad_output), grad_output, self, passes=5)


threshold_backward.vjp(
    grad_output=lambda g, self, threshold: aten.threshold_backward(g, self, threshold), self=lambda g: aten.zeros_like(g)
)

tanh = op(
    "tanh(Tensor self) -> Tensor",
    np.tanh,
    promote=Promotion.FLOAT,
    inplace=True,
    flops=per_element(1),
    doc="""The hyperbolic tangent of each element.

    >>> torch.tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """,
)
tanh.vjp(self=lambda g, result: aten.tanh_backward(g, result))


@op(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    shape=like_first,
    batching=Batching.POINTWISE,
    flops=per_element(2),
)
def tanh_backward(grad_output, output):
    slope = np.asarray(np.multiply(output, output))
    np.subtract(constant(1, slope.dtype), slope, slope)
    if slope.dtype.kind == "c":
        np.conjugate(slope, slope)
    return np.multiply(grad_output, slope, slope)


tanh_backward.vjp(
    grad_output=lambda g, output: aten.tanh_backward(g, conj(output)),
    output=lambda g, grad_output, output: conj(g) * (-2 * conj(output) * grad_output),
)

sigmoid = op(
    "sigmoid(Tensor self) -> Tensor",
    logistic,
    promote=Promotion.FLOAT,
    inplace=True,
    aliases=("special_expit",),
    flops=per_element(3),
    doc="""`1 / (1 + exp(-x))`.

    >>> torch.sigmoid(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """,
)
sigmoid.vjp(self=lambda g, result: aten.sigmoid_backward(g, result))


@op(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    shape=like_first,
    batching=Batching.POINTWISE,
    flops=per_element(2),
)
def sigmoid_backward(grad_output, output):
    slope = np.asarray(np.subtract(constant(1, output.dtype), output))
    np.multiply(slope, output, slope)
    if slope.dtype.kind == "c":
        np.conjugate(slope, slope)
    return np.multiply(grad_output, slope, slope)


sigmoid_backward.vjp(
    grad_output=lambda g, output: aten.sigmoid_backward(g, conj(output)),
    output=lambda g, grad_output, output: conj(g) * grad_output * (1 - 2 * conj(output)),
)

# ---------------------------------------------------------------- gelu

_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBE = 0.044715


def _normal_cdf(x, out=None):
    if x.dtype is _F32:
        reciprocal = reciprocal_normal_cdf32(x, out)
        return np.reciprocal(reciprocal, reciprocal)
    erf = np.asarray(special_math.erf(x * math.sqrt(0.5)))
    erf += 1
    return np.multiply(erf, constant(0.5, x.dtype), out)


def _gelu_tanh(x, out=None):
    """tanh of the polynomial that stands in for erf, and x²."""
    square = np.asarray(np.multiply(x, x))
    made = np.asarray(np.multiply(square, constant(_TANH_CUBE * _TANH_SCALE, x.dtype), out))
    np.add(made, constant(_TANH_SCALE, x.dtype), made)
    np.multiply(made, x, made)
    return np.tanh(made, made), square


def _check_gelu(approximate):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


@op(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    layout=Layout.OPERANDS,
    inplace=True,
    shape=like_first,
    batching=Batching.POINTWISE,
    flops=per_element(8),
)
@blockwise
def gelu(self, approximate, out=None):
    """`x` times the normal distribution's probability of lying below `x`.

    >>> F.gelu(torch.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    need_float("GeluKernelImpl", self)
    if approximate == "none":
        if self.dtype is _F32:
            reciprocal = reciprocal_normal_cdf32(self, out)
            return np.divide(self, reciprocal, reciprocal)
        result = np.asarray(_normal_cdf(self, out))
        return np.multiply(result, self, result)
    _check_gelu(approximate)
    result, _ = _gelu_tanh(self, out)
    np.add(result, constant(1, result.dtype), result)
    np.multiply(result, self, result)
    return np.multiply(result, constant(0.5, result.dtype), result)


gelu.vjp(self=lambda g, self, approximate: aten.gelu_backward(g, self, approximate=approximate))


@op(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    layout=Layout.OPERANDS,
    shape=like_first,
    flops=per_element(14),
)
@blockwise
def gelu_backward(grad_output, self, approximate, out=None):
    _check_gelu(approximate)
    kind = self.dtype
    if approximate == "none":
        slope = np.asarray(_normal_cdf(self, out))
        density = np.asarray(np.multiply(self, self))
        np.multiply(density, constant(-0.5, kind), density)
        np.exp(density, density)
        np.multiply(density, constant(_INV_SQRT_2PI, kind), density)
        np.multiply(density, self, density)
        np.add(slope, density, slope)
        return np.multiply(slope, grad_output, slope)
    inner, square = _gelu_tanh(self)
    # slope = s (1 + 3 c x²), and the derivative is (1 + t) / 2 + x (1 - t²) slope / 2
    np.multiply(square, constant(1.5 * _TANH_SCALE * _TANH_CUBE, kind), square)
    np.add(square, constant(0.5 * _TANH_SCALE, kind), square)
    np.multiply(square, self, square)
    slope = np.asarray(np.multiply(inner, inner, out))
    np.subtract(constant(1, kind), slope, slope)
    np.multiply(slope, square, slope)
    np.multiply(inner, constant(0.5, kind), inner)
    np.add(inner, constant(0.5, kind), inner)
    np.add(slope, inner, slope)
    return np.multiply(slope, grad_output, slope)


def _gelu_second(g, grad_output, self, approximate):
    if approximate == "none":
        return g * grad_output * (-0.5 * self * self).exp() * (2 - self * self) * _INV_SQRT_2PI
    square = self * self
    inner = (_TANH_SCALE * self * (1 + _TANH_CUBE * square)).tanh()
    slope = _TANH_SCALE * (1 + 3 * _TANH_CUBE * square)
    bend = 1 - inner * inner
    return (
        g
        * grad_output
        * (bend * slope - self * inner * bend * slope * slope + 0.5 * self * bend * (6 * _TANH_SCALE * _TANH_CUBE * self))
    )


gelu_backward.vjp(
    grad_output=lambda g, self, approximate: aten.gelu_backward(g, self, approximate=approximate),
    self=_gelu_second,
)

# ---------------------------------------------------------------- silu, mish


@op("silu(Tensor self) -> Tensor", inplace=True, shape=like_first, batching=Batching.POINTWISE, flops=per_element(4))
@blockwise
def silu(self, out=None):
    """`x * sigmoid(x)`.

    >>> F.silu(torch.tensor([-1.0, 1.0]))
    tensor([-0.2689,  0.7311])
    """
    need_float("silu_cpu", self, "iub")
    divisor = np.asarray(np.negative(self, out))
    np.exp(divisor, divisor)
    np.add(divisor, constant(1, divisor.dtype), divisor)
    return np.divide(self, divisor, divisor)


silu.vjp(self=lambda g, self: aten.silu_backward(g, self))


@op("silu_backward(Tensor grad_output, Tensor self) -> Tensor", shape=like_first, flops=per_element(5))
@blockwise
def silu_backward(grad_output, self, out=None):
    s = logistic(self)
    # s (1 + x (1 - s))
    slope = np.asarray(np.subtract(constant(1, s.dtype), s, out))
    np.multiply(slope, self, slope)
    np.add(slope, constant(1, s.dtype), slope)
    np.multiply(slope, s, slope)
    return np.multiply(slope, grad_output, slope)


def _silu_slope(self):
    s = self.sigmoid()
    return s * (1 + self * (1 - s))


def _silu_bend(self):
    s = self.sigmoid()
    return s * (1 - s) * (2 + self * (1 - 2 * s))


silu_backward.vjp(
    grad_output=lambda g, self: g * _silu_slope(self), self=lambda g, grad_output, self: g * grad_output * _silu_bend(self)
)


def _mish_ratio(x):
    """tanh(softplus(x)) = n / (n + 2) with n = e (e + 2), e = exp(x); 1 in floats from x = 20 on. Also e / (1 + e)."""
    e = np.asarray(np.exp(clipped(np.asarray(x), -np.inf, 40.0)))
    n = np.asarray(np.add(e, constant(2, e.dtype)))
    np.multiply(n, e, n)
    made = np.asarray(np.add(n, constant(2, e.dtype)))
    np.divide(n, made, made)
    return made, np.divide(e, e + constant(1, e.dtype))


@op("mish(Tensor self) -> Tensor", inplace=True, shape=like_first, batching=Batching.POINTWISE, flops=per_element(5))
@blockwise
def mish(self, out=None):
    """`x * tanh(softplus(x))`.

    >>> F.mish(torch.tensor([-1.0, 1.0]))
    tensor([-0.3034,  0.8651])
    """
    need_float("mish_cpu", self)
    ratio, _ = _mish_ratio(self)
    return np.multiply(ratio, self, out)


mish.vjp(self=lambda g, self: aten.mish_backward(g, self))


@op("mish_backward(Tensor grad_output, Tensor self) -> Tensor", shape=like_first, flops=per_element(14))
@blockwise
def mish_backward(grad_output, self, out=None):
    t, s = _mish_ratio(self)
    return np.multiply(grad_output, t + self * s * (1 - t * t), out)


def _mish_slope(self):
    t = aten.softplus(self).tanh()
    return t + self * self.sigmoid() * (1 - t * t)


def _mish_bend(self):
    t, s = aten.softplus(self).tanh(), self.sigmoid()
    u = 1 - t * t
    return u * s * (2 + self * (1 - s) - 2 * self * t * s)


mish_backward.vjp(
    grad_output=lambda g, self: g * _mish_slope(self), self=lambda g, grad_output, self: g * grad_output * _mish_bend(self)
)

# ---------------------------------------------------------------- softplus, log_sigmoid


@op(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    shape=like_first,
    batching=Batching.POINTWISE,
    flops=per_element(3),
)
@in_float32
def softplus(self, beta, threshold):
    """`log(1 + exp(beta * x)) / beta`: a smooth `relu`.

    >>> F.softplus(torch.tensor([-1.0, 1.0]))
    tensor([0.3133, 1.3133])
    """
    need_float("softplus_cpu", self)
    scaled = self if beta == 1 else self * constant(beta, self.dtype)
    result = log1p_exp_minus_abs(scaled)
    np.add(result, np.maximum(scaled, constant(0, self.dtype)), result)
    if beta != 1:
        np.divide(result, constant(beta, self.dtype), result)
    above = scaled > threshold
    return np.where(above, self, result) if above.any() else result


softplus.vjp(self=lambda g, self, beta, threshold: aten.softplus_backward(g, self, beta, threshold))


@op(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 1, 20)],
)
@in_float32
def softplus_backward(grad_output, self, beta, threshold):
    scaled = np.asarray(self * constant(beta, self.dtype))
    above = scaled > threshold
    grad = logistic(scaled, scaled)
    np.multiply(grad, grad_output, grad)
    return np.where(above, grad_output, grad) if above.any() else grad


def _softplus_second(g, grad_output, self, beta, threshold):
    scaled = self * beta
    return aten.sigmoid_backward(g * grad_output, scaled.sigmoid()) * (scaled < threshold).type_as(g) * beta


softplus_backward.vjp(
    grad_output=lambda g, self, beta, threshold: aten.softplus_backward(g, self, beta, threshold),
    self=_softplus_second,
)


@op(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    node="LogSigmoidBackward0",
    layout=Layout.ROW_MAJOR,
    shape=lambda self: [like_first(self), ((0,), self._array.dtype)],
    flops=per_element(3),
)
@in_float32
def log_sigmoid_forward(self):
    """What `log_sigmoid` computes, and a buffer for its derivative.

    >>> torch.ops.aten.log_sigmoid_forward(torch.tensor([0.0]))[0]
    tensor([-0.6931])
    """
    need_float("log_sigmoid_cpu", self)
    made = log1p_exp_minus_abs(self)
    return np.subtract(np.minimum(self, constant(0, self.dtype)), made, made), np.empty(0, self.dtype)


log_sigmoid_forward.not_differentiable("result1").vjp(self=lambda g, self, result1: aten.log_sigmoid_backward(g, self, result1))


@op("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", shape=like_first)
@in_float32
def log_sigmoid_backward(grad_output, self, buffer):
    # 1 - sigmoid(x) is sigmoid(-x): 1 / (1 + exp(x)).
    made = np.asarray(np.exp(self))
    np.add(made, constant(1, made.dtype), made)
    return np.divide(grad_output, made, made)


log_sigmoid_backward.vjp(
    grad_output=lambda g, self, buffer: aten.log_sigmoid_backward(g, self, buffer),
    self=lambda g, grad_output, self: -(g * grad_output * self.sigmoid() * (1 - self.sigmoid())),
)

composite(
    "log_sigmoid(Tensor self) -> Tensor",
    lambda self: aten.log_sigmoid_forward(self)[0],
    out=True,
    doc="""The logarithm of the sigmoid, without overflow.

    >>> F.logsigmoid(torch.tensor([0.0]))
    tensor([-0.6931])
    """,
)
