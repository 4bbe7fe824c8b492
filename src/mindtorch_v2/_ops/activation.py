"""Activations, element by element."""

from __future__ import annotations

import math

import numpy as np

from .._dispatch.registry import aten, composite, op
from ._common import like_first
from ._erf import erf32

_ZERO = {np.dtype(np.float32): np.zeros((), np.float32)}


def _zero(array):
    """0 as an array of the same dtype: ufuncs take it faster than a Python number."""
    made = _ZERO.get(array.dtype)
    if made is None:
        made = _ZERO[array.dtype] = np.zeros((), array.dtype)
    return made


def _need_float(name, array):
    if array.dtype.kind in "iub":
        raise RuntimeError(f'"{name}_cpu" not implemented for \'{_SCALAR_NAMES.get(array.dtype.name, array.dtype.name)}\'')


_SCALAR_NAMES = {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}

# ---------------------------------------------------------------- relu, tanh, sigmoid


@op("relu(Tensor self) -> Tensor", inplace=True, shape=like_first)
def relu(self, out=None):
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    return np.maximum(self, _zero(self), out=out)


relu.vjp(self=lambda g, result: aten.threshold_backward(g, result, 0))


@op("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor", shape=like_first)
def threshold_backward(grad_output, self, threshold):
    return np.multiply(grad_output, np.greater(self, _zero(self) if threshold == 0 else threshold))


threshold_backward.vjp(grad_output=lambda g, self, threshold: aten.threshold_backward(g, self, threshold),
                       self=lambda g: aten.zeros_like(g))

tanh = op("tanh(Tensor self) -> Tensor", np.tanh, promote="float", inplace=True)
tanh.vjp(self=lambda g, result: aten.tanh_backward(g, result))


@op("tanh_backward(Tensor grad_output, Tensor output) -> Tensor", shape=like_first)
def tanh_backward(grad_output, output):
    made = np.multiply(output, output)
    np.subtract(1, made, made)
    return np.multiply(grad_output, made, made)


tanh_backward.vjp(grad_output=lambda g, output: aten.tanh_backward(g, output),
                  output=lambda g, grad_output, output: g * (-2 * output * grad_output))


@op("sigmoid(Tensor self) -> Tensor", promote="float", inplace=True)
def sigmoid(self, out=None):
    # exp of a large number overflows to inf, and 1 / (1 + inf) is the right 0.
    made = np.asarray(np.negative(self, out))
    np.exp(made, made)
    np.add(made, _one(made), made)
    return np.reciprocal(made, made)


_ONE = {np.dtype(np.float32): np.ones((), np.float32)}


def _one(array):
    made = _ONE.get(array.dtype)
    if made is None:
        made = _ONE[array.dtype] = np.ones((), array.dtype)
    return made


sigmoid.vjp(self=lambda g, result: aten.sigmoid_backward(g, result))


@op("sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", shape=like_first)
def sigmoid_backward(grad_output, output):
    made = np.subtract(1, output)
    return grad_output * made * output


sigmoid_backward.vjp(grad_output=lambda g, output: aten.sigmoid_backward(g, output),
                     output=lambda g, grad_output, output: g * grad_output * (1 - 2 * output))


# ---------------------------------------------------------------- gelu, silu, mish, softplus


def _sigmoid(x):
    made = np.exp(-x)
    made += 1
    return np.reciprocal(made, made if isinstance(made, np.ndarray) else None)


_erf64 = np.vectorize(math.erf, otypes=[np.float64])


def _erf(x):
    if x.dtype == np.float64:
        return _erf64(x)
    return erf32(x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)


_SQRT_HALF = math.sqrt(0.5)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBE = 0.044715


@op("gelu(Tensor self, *, str approximate='none') -> Tensor", inplace=True, shape=like_first)
def gelu(self, approximate):
    _need_float("GeluKernelImpl", self)
    if approximate == "none":
        made = _erf(np.multiply(self, _SQRT_HALF))
        made += 1
        made *= self
        made *= 0.5
        return made
    _check_gelu(approximate)
    made = np.multiply(self, self)
    made *= _TANH_CUBE
    made += 1
    made *= self
    made *= _TANH_SCALE
    made = np.tanh(made)
    made += 1
    made *= self
    made *= 0.5
    return made


def _check_gelu(approximate):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


gelu.vjp(self=lambda g, self, approximate: aten.gelu_backward(g, self, approximate=approximate))


@op("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor", shape=like_first)
def gelu_backward(grad_output, self, approximate):
    _check_gelu(approximate)
    if approximate == "none":
        made = _erf(np.multiply(self, _SQRT_HALF))
        made += 1
        made *= 0.5
        density = np.multiply(self, self)
        density *= -0.5
        density = np.exp(density)
        density *= _INV_SQRT_2PI
        density *= self
        made += density
        made *= grad_output
        return made
    square = self * self
    inner = np.tanh(_TANH_SCALE * self * (1 + _TANH_CUBE * square))
    slope = _TANH_SCALE * (1 + 3 * _TANH_CUBE * square)
    return grad_output * (0.5 * (1 + inner) + 0.5 * self * (1 - inner * inner) * slope)


def _gelu_second(g, grad_output, self, approximate):
    if approximate == "none":
        return g * grad_output * (-0.5 * self * self).exp() * (2 - self * self) * _INV_SQRT_2PI
    square = self * self
    inner = (_TANH_SCALE * self * (1 + _TANH_CUBE * square)).tanh()
    slope = _TANH_SCALE * (1 + 3 * _TANH_CUBE * square)
    bend = 1 - inner * inner
    return g * grad_output * (bend * slope - self * inner * bend * slope * slope
                              + 0.5 * self * bend * (6 * _TANH_SCALE * _TANH_CUBE * self))


gelu_backward.vjp(
    grad_output=lambda g, self, approximate: aten.gelu_backward(g, self, approximate=approximate),
    self=lambda g, grad_output, self, approximate: _gelu_second(g, grad_output, self, approximate))


@op("silu(Tensor self) -> Tensor", inplace=True, shape=like_first)
def silu(self):
    _need_float("silu", self)
    made = np.asarray(_sigmoid(self))
    return np.multiply(made, self, made)


silu.vjp(self=lambda g, self: aten.silu_backward(g, self))


@op("silu_backward(Tensor grad_output, Tensor self) -> Tensor", shape=like_first)
def silu_backward(grad_output, self):
    s = _sigmoid(self)
    return grad_output * s * (1 + self * (1 - s))


def _silu_slope(self):
    s = self.sigmoid()
    return s * (1 + self * (1 - s))


def _silu_bend(self):
    s = self.sigmoid()
    return s * (1 - s) * (2 + self * (1 - 2 * s))


silu_backward.vjp(grad_output=lambda g, self: g * _silu_slope(self),
                  self=lambda g, grad_output, self: g * grad_output * _silu_bend(self))


def _softplus(x):
    return np.logaddexp(x, np.zeros((), x.dtype))


@op("mish(Tensor self) -> Tensor", inplace=True, shape=like_first)
def mish(self):
    _need_float("mish", self)
    return self * np.tanh(_softplus(self))


mish.vjp(self=lambda g, self: aten.mish_backward(g, self))


@op("mish_backward(Tensor grad_output, Tensor self) -> Tensor", shape=like_first)
def mish_backward(grad_output, self):
    t = np.tanh(_softplus(self))
    return grad_output * (t + self * _sigmoid(self) * (1 - t * t))


def _mish_slope(self):
    t = aten.softplus(self).tanh()
    return t + self * self.sigmoid() * (1 - t * t)


def _mish_bend(self):
    t, s = aten.softplus(self).tanh(), self.sigmoid()
    u = 1 - t * t
    return u * s * (2 + self * (1 - s) - 2 * self * t * s)


mish_backward.vjp(grad_output=lambda g, self: g * _mish_slope(self),
                  self=lambda g, grad_output, self: g * grad_output * _mish_bend(self))


@op("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", shape=like_first)
def softplus(self, beta, threshold):
    _need_float("softplus", self)
    scaled = self * beta
    return np.where(scaled > threshold, self, _softplus(scaled) / beta).astype(self.dtype, copy=False)


softplus.vjp(self=lambda g, self, beta, threshold: aten.softplus_backward(g, self, beta, threshold))


@op("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor", shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 1, 20)])
def softplus_backward(grad_output, self, beta, threshold):
    scaled = self * beta
    return np.where(scaled > threshold, grad_output, grad_output * _sigmoid(scaled)).astype(self.dtype, copy=False)


def _softplus_second(g, grad_output, self, beta, threshold):
    s = (self * beta).sigmoid()
    return aten.where(self * beta > threshold, 0.0, g * grad_output * s * (1 - s) * beta)


softplus_backward.vjp(
    grad_output=lambda g, self, beta, threshold: aten.softplus_backward(g, self, beta, threshold),
    self=lambda g, grad_output, self, beta, threshold: _softplus_second(g, grad_output, self, beta, threshold))


@op("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", node="LogSigmoidBackward0",
    shape=lambda self: [like_first(self), ((0,), self._array.dtype)])
def log_sigmoid_forward(self):
    return -_softplus(-self), np.empty(0, self.dtype)


log_sigmoid_forward.vjp(self=lambda g, self, result1: aten.log_sigmoid_backward(g, self, result1))


@op("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", shape=like_first)
def log_sigmoid_backward(grad_output, self, buffer):
    return grad_output * _sigmoid(-self)


log_sigmoid_backward.vjp(
    grad_output=lambda g, self, buffer: aten.log_sigmoid_backward(g, self, buffer),
    self=lambda g, grad_output, self: -(g * grad_output * self.sigmoid() * (1 - self.sigmoid())))

composite("log_sigmoid(Tensor self) -> Tensor", lambda self: aten.log_sigmoid_forward(self)[0])

# ---------------------------------------------------------------- piecewise linear, and elu


def _piecewise(name, arguments, kernel, slope, samples=None):
    """An activation whose derivative depends on self by regions only: `slope` gives it as an array."""
    names = [a.split()[-1].split("=")[0] for a in arguments]
    listed = "".join(", " + a for a in arguments)
    plain = "".join(f", Scalar {n}" for n in names)
    forward = op(f"{name}(Tensor self{listed}) -> Tensor", kernel, inplace=True, shape=like_first, samples=samples)
    backward = op(f"{name}_backward(Tensor grad_output, Tensor self{plain}) -> Tensor",
                  lambda grad_output, self, *rest: np.multiply(grad_output, slope(self, *rest)).astype(self.dtype, copy=False),
                  shape=like_first, samples=None if not names else
                  lambda make: [(make(3, 4), make(3, 4), *(0.3,) * len(names))])
    call = getattr(aten, f"{name}_backward")
    saved = ", ".join(["self", *names])
    space = {"call": call}
    forward.vjp(self=eval(f"lambda g, {saved}: call(g, {saved})", space))
    backward.vjp(grad_output=eval(f"lambda g, {saved}: call(g, {saved})", space), self=lambda g: aten.zeros_like(g))


_piecewise("hardtanh", ["Scalar min_val=-1", "Scalar max_val=1"],
           lambda self, min_val, max_val: np.minimum(np.maximum(self, min_val), max_val),
           lambda self, low, high: (self > low) & (self < high))
_piecewise("hardsigmoid", [], lambda self: np.minimum(np.maximum(self + 3, 0), 6) / 6,
           lambda self: np.where((self > -3) & (self < 3), 1 / 6, 0))
_piecewise("hardshrink", ["Scalar lambd=0.5"],
           lambda self, lambd: np.where((self >= -lambd) & (self <= lambd), 0, self).astype(self.dtype),
           lambda self, lambd: (self < -lambd) | (self > lambd))
_piecewise("softshrink", ["Scalar lambd=0.5"],
           lambda self, lambd: self - np.minimum(np.maximum(self, -lambd), lambd),
           lambda self, lambd: (self < -lambd) | (self > lambd))


@op("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", inplace=True, shape=like_first)
def leaky_relu(self, negative_slope):
    return np.where(self > 0, self, self * negative_slope).astype(self.dtype, copy=False)


leaky_relu.vjp(self=lambda g, self, negative_slope: aten.leaky_relu_backward(g, self, negative_slope, False))


@op("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    shape=like_first, samples=lambda make: [(make(3, 4), make(3, 4), 0.1, False)])
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    return np.where(self > 0, grad_output, grad_output * negative_slope).astype(grad_output.dtype, copy=False)


leaky_relu_backward.vjp(
    grad_output=lambda g, self, negative_slope, self_is_result:
    aten.leaky_relu_backward(g, self, negative_slope, self_is_result), self=lambda g: aten.zeros_like(g))


@op("hardswish(Tensor self) -> Tensor", inplace=True, shape=like_first)
def hardswish(self):
    return self * np.minimum(np.maximum(self + 3, 0), 6) / 6


hardswish.vjp(self=lambda g, self: aten.hardswish_backward(g, self))


@op("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", shape=like_first)
def hardswish_backward(grad_output, self):
    slope = np.where(self <= -3, 0, np.where(self < 3, self / 3 + 0.5, 1))
    return np.multiply(grad_output, slope).astype(self.dtype, copy=False)


hardswish_backward.vjp(
    grad_output=lambda g, self: aten.hardswish_backward(g, self),
    self=lambda g, grad_output, self: aten.where((self > -3).logical_and(self < 3), g * grad_output / 3, 0.0))


@op("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", inplace=True, shape=like_first,
    samples=lambda make: [(make(3, 4), 0.5, 0.2)])
def threshold_(self, threshold, value):
    return np.where(self <= threshold, value, self).astype(self.dtype, copy=False)


threshold_.vjp(self=lambda g, self, threshold: aten.threshold_backward(g, self, threshold))

composite("relu6(Tensor self) -> Tensor", lambda self: aten.hardtanh(self, 0, 6), inplace=False)


@op("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", inplace=True, shape=like_first)
def elu(self, alpha, scale, input_scale):
    negative = np.expm1(np.minimum(self, 0) * input_scale) * (alpha * scale)
    return np.where(self > 0, self * scale, negative).astype(self.dtype, copy=False)


elu.vjp(self=lambda g, alpha, scale, input_scale, self: aten.elu_backward(g, alpha, scale, input_scale, False, self))


@op("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor", shape=like_first,
    samples=lambda make: [(make(3, 4), 1.0, 1.0, 1.0, False, make(3, 4) - 0.5)])
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x = self_or_result
    if is_result:
        slope = np.where(x <= 0, input_scale * (x + alpha * scale), scale)
    else:
        slope = np.where(x <= 0, input_scale * alpha * scale * np.exp(np.minimum(x, 0) * input_scale), scale)
    return np.multiply(grad_output, slope).astype(x.dtype, copy=False)


def _elu_second(g, grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x = self_or_result
    inner = input_scale if is_result else input_scale * input_scale * alpha * scale * (x * input_scale).exp()
    return aten.where(x < 0, g * grad_output * inner, 0.0)


elu_backward.vjp(
    grad_output=lambda g, alpha, scale, input_scale, is_result, self_or_result:
    aten.elu_backward(g, alpha, scale, input_scale, is_result, self_or_result), self_or_result=_elu_second)

composite("selu(Tensor self) -> Tensor", lambda self: aten.elu(self, 1.6732632423543772, 1.0507009873554805))


@op("celu(Tensor self, Scalar alpha=1.0) -> Tensor", inplace=True, shape=like_first)
def celu(self, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return np.where(self > 0, self, np.expm1(np.minimum(self, 0) / alpha) * alpha).astype(self.dtype, copy=False)


celu.vjp(self=lambda g, alpha, self: aten.elu_backward(g, alpha, 1, 1.0 / alpha, False, self))


# ---------------------------------------------------------------- two-armed: glu, prelu, rrelu


@op("glu(Tensor self, int dim=-1) -> Tensor",
    shape=lambda self, dim: (tuple(n // 2 if i == dim % max(self._array.ndim, 1) else n
                                   for i, n in enumerate(self._array.shape)), self._array.dtype))
def glu(self, dim):
    size = self.shape[dim] if self.ndim else 0
    if self.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % self.ndim} is size {size}")
    a, b = np.split(self, 2, axis=dim)
    return a * _sigmoid(b)


glu.vjp(self=lambda g, self, dim: aten.glu_backward(g, self, dim))


@op("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor", shape=lambda grad_output, self, dim: like_first(self),
    samples=lambda make: [(make(3, 2), make(3, 4), 1)])
def glu_backward(grad_output, self, dim):
    a, b = np.split(self, 2, axis=dim)
    s = _sigmoid(b)
    return np.concatenate([grad_output * s, grad_output * a * s * (1 - s)], axis=dim)


def _glu_halves(t, dim):
    return t.chunk(2, dim)


def _glu_backward_grad(g, self, dim):
    (ga, gb), (a, b) = _glu_halves(g, dim), _glu_halves(self, dim)
    s = b.sigmoid()
    return ga * s + gb * a * s * (1 - s)


def _glu_backward_self(g, grad_output, self, dim):
    (ga, gb), (a, b) = _glu_halves(g, dim), _glu_halves(self, dim)
    s = b.sigmoid()
    bend = s * (1 - s)
    return aten.cat([gb * grad_output * bend,
                     ga * grad_output * bend + gb * grad_output * a * bend * (1 - 2 * s)], dim)


glu_backward.vjp(grad_output=_glu_backward_grad, self=_glu_backward_self)


@op("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", shape=like_first)
def prelu_kernel(self, weight):
    return np.where(self > 0, self, self * weight)


@prelu_kernel.vjp
def _(g, self, weight):
    return aten._prelu_kernel_backward(g, self, weight)


@op("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    shape=lambda grad_output, self, weight: [like_first(self), like_first(self)])
def prelu_kernel_backward(grad_output, self, weight):
    positive = self > 0
    return np.where(positive, grad_output, weight * grad_output), np.where(positive, 0, self * grad_output).astype(self.dtype)


@composite("prelu(Tensor self, Tensor weight) -> Tensor")
def prelu(self, weight):
    count = weight._array.size
    if count != 1:
        channels = self._array.shape[1] if self._array.ndim > 1 else 1
        if self._array.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if channels != count:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} "
                               f"and channel size = {channels}.")
    ndim = self._array.ndim
    if weight._array.ndim != ndim:
        shape = [1] * ndim
        if ndim > 1:
            shape[1] = count
        weight = weight.reshape(shape) if ndim else weight.reshape(())
    return aten._prelu_kernel(self, weight)
