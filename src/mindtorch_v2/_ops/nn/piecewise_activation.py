"""Activations made of pieces: straight ones, the elu family, and those with learned or random slopes."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.errors import no_order
from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.registry import aten, composite, op
from .._support.blockwise import blockwise
from .._support.common import like_first, scalar_name
from .._support.elementwise import at_least, at_most, chosen, clipped, constant, need_float, need_real, where_true
from .._support.flops import per_element
from .._support.half import in_float32
from ..random.uniform_normal import source_of


def _declare_inplace(schema, functional, node, formula):
    """An in-place form with a derivative of its own, which starts from the result: the input is gone by then."""

    def kernel(self, *rest):
        self[...] = functional.kernel(self, *rest)

    facts = {"flops": functional.flops}
    if functional.batching is Batching.POINTWISE:
        facts["batching"] = functional.batching
    return op(schema, kernel, node=node, samples=lambda make: [], **facts).vjp(self=formula)


# ---------------------------------------------------------------- cut off at one or both ends


def _region(name, arguments, kernel, inside, inplace=False, *, doc=None):
    """An activation whose slope is 1 in a region and 0 elsewhere; `inside` gives the region."""
    names = [a.split()[-1].split("=")[0] for a in arguments]
    listed = "".join(", " + a for a in arguments)
    plain = "".join(f", Scalar {n}" for n in names)
    forward = op(
        f"{name}(Tensor self{listed}) -> Tensor",
        kernel,
        inplace=inplace,
        shape=like_first,
        batching=Batching.POINTWISE,
        doc=doc,
    )
    backward = op(
        f"{name}_backward(Tensor grad_output, Tensor self{plain}) -> Tensor",
        lambda grad_output, self, *rest: where_true(inside(self, *rest), grad_output),
        shape=like_first,
        samples=lambda make: [(make(3, 4), make(3, 4), *(0.3, 0.7)[: len(names)])],
    )
    saved = ", ".join(["self", *names])
    space = {"call": getattr(aten, f"{name}_backward")}
    forward.vjp(self=eval(f"lambda g, {saved}: call(g, {saved})", space))
    backward.vjp(grad_output=eval(f"lambda g, {saved}: call(g, {saved})", space), self=lambda g: aten.zeros_like(g))


@in_float32
def _hardtanh(self, min_val, max_val):
    if self.dtype.kind in "bc":
        raise RuntimeError("Bool inputs not supported for hardtanh") if self.dtype.kind == "b" else no_order()
    if self.dtype.kind == "u" and min_val < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return clipped(self, min_val, max_val)


@in_float32
def _hardshrink(self, lambd):
    need_float("hardshrink_cpu", self)
    return where_true((self < -lambd) | (self > lambd) | (self != self), self)


# The largest number of float16: up to here a lambda is within the range of every floating dtype.
_USUAL = 65504


def _check_lambda(lambd, kind):
    most = dt.finfo(kind).max
    if not 0 <= lambd <= most:
        raise RuntimeError(f"lambda must be in range [0, {most:g}] for input dtype {kind.scalar_name}, but found {lambd:g}")


def _softshrink(self, lambd):
    need_float("softshrink_check", self)
    if not 0 <= lambd <= _USUAL:
        _check_lambda(lambd, dt.from_numpy(self.dtype))
    return _shrink(self, lambd)


@in_float32
def _shrink(self, lambd):
    return np.subtract(self, clipped(self, -lambd, lambd))


_region(
    "hardtanh",
    ["Scalar min_val=-1", "Scalar max_val=1"],
    _hardtanh,
    lambda self, low, high: ~((self <= low) | (self >= high)),  # a nan is at no limit
    inplace=True,
    doc="""Keeps each element between `min_val` and `max_val`.

    >>> F.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """,
)
_region(
    "hardshrink",
    ["Scalar lambd=0.5"],
    _hardshrink,
    lambda self, lambd: ~((self >= -lambd) & (self <= lambd)),
    doc="""Sets elements between `-lambd` and `lambd` to 0.

    >>> F.hardshrink(torch.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """,
)
_region(
    "softshrink",
    ["Scalar lambd=0.5"],
    _softshrink,
    lambda self, lambd: ~((self >= -lambd) & (self <= lambd)),
    doc="""Moves each element towards 0 by `lambd`.

    >>> F.softshrink(torch.tensor([-1.0, 0.2, 1.0]))
    tensor([-0.5000,  0.0000,  0.5000])
    """,
)

composite(
    "relu6(Tensor self) -> Tensor",
    lambda self: aten.hardtanh(self, 0, 6),
    doc="""Keeps each element between 0 and 6.

    >>> F.relu6(torch.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """,
)
composite("relu6_(Tensor(a!) self) -> Tensor(a!)", lambda self: aten.hardtanh_(self, 0, 6), samples=lambda make: [])


@op(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), 0.5, 0.2)],
    batching=Batching.POINTWISE,
)
def threshold(self, threshold, value):
    """The element where it is above the threshold, `value` elsewhere.

    >>> F.threshold(torch.tensor([0.5, 2.0]), 1.0, 0.0)
    tensor([0., 2.])
    """
    need_real("threshold_cpu", self)
    return np.where(self <= threshold, constant(value, self.dtype), self)


threshold.vjp(self=lambda g, self, threshold: aten.threshold_backward(g, self, threshold))
_declare_inplace(
    "threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)",
    threshold,
    "ThresholdBackward1",
    lambda g, result, threshold: aten.threshold_backward(g, result, threshold),
)

# ---------------------------------------------------------------- straight with another slope


@op("hardsigmoid(Tensor self) -> Tensor", inplace=True, shape=like_first, batching=Batching.POINTWISE, flops=per_element(2))
@blockwise
def hardsigmoid(self, out=None):
    """A sigmoid of straight pieces: `relu6(x + 3) / 6`.

    >>> F.hardsigmoid(torch.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    need_float("hardsigmoid_cpu", self)
    result = np.asarray(np.add(self, constant(3, self.dtype), out))
    clipped(result, 0, 6, result)
    return np.divide(result, constant(6, self.dtype), result)


hardsigmoid.vjp(self=lambda g, self: aten.hardsigmoid_backward(g, self))


@op("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", shape=like_first)
def hardsigmoid_backward(grad_output, self):
    grad_input = np.asarray(where_true((self > -3) & (self < 3), grad_output))
    return np.multiply(grad_input, constant(1 / 6, grad_input.dtype), grad_input)


hardsigmoid_backward.vjp(grad_output=lambda g, self: aten.hardsigmoid_backward(g, self), self=lambda g: aten.zeros_like(g))


@op("hardswish(Tensor self) -> Tensor", inplace=True, shape=like_first, batching=Batching.POINTWISE, flops=per_element(3))
@blockwise
def hardswish(self, out=None):
    """`x * hardsigmoid(x)`.

    >>> F.hardswish(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    need_float("hardswish_cpu", self)
    result = np.asarray(np.add(self, constant(3, self.dtype), out))
    clipped(result, 0, 6, result)
    np.multiply(result, self, result)
    return np.divide(result, constant(6, self.dtype), result)


hardswish.vjp(self=lambda g, self: aten.hardswish_backward(g, self))


@op("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", shape=like_first)
@blockwise
def hardswish_backward(grad_output, self, out=None):
    kind = self.dtype
    slope = np.asarray(np.add(np.divide(self, constant(3, kind)), constant(0.5, kind), out))
    slope = chosen(self < 3, slope, constant(1, kind), out)
    return np.multiply(grad_output, chosen(self <= -3, constant(0, kind), slope, out), out)


hardswish_backward.vjp(
    grad_output=lambda g, self: aten.hardswish_backward(g, self),
    self=lambda g, grad_output, self: aten.where((self > -3).logical_and(self < 3), g * grad_output / 3, 0.0),
)


@op(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    shape=like_first,
    batching=Batching.POINTWISE,
    flops=per_element(1),
)
@blockwise
def leaky_relu(self, negative_slope, out=None):
    """Linear above 0, with a small slope below.

    >>> F.leaky_relu(torch.tensor([-1.0, 1.0]))
    tensor([-0.0100,  1.0000])
    """
    need_float("leaky_relu_cpu", self)
    slope = constant(negative_slope, self.dtype)
    if 0 < slope <= 1:
        return np.maximum(self, np.multiply(self, slope, out), out=out)
    return _bent(self, slope, out)


def _bent(self, slope, out=None):
    """Linear above 0, with another slope, or another one for each element, below."""
    below = np.multiply(at_most(self, 0), slope, out)
    return np.add(below, at_least(self, 0), out)


leaky_relu.vjp(self=lambda g, self, negative_slope: aten.leaky_relu_backward(g, self, negative_slope, False))
_declare_inplace(
    "leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)",
    leaky_relu,
    "LeakyReluBackward1",
    lambda g, result, negative_slope: aten.leaky_relu_backward(g, result, negative_slope, True),
)


@op(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), 0.1, False)],
    flops=per_element(2),
)
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not "
            "supported. This is caused by calling in-place forward function with a negative slope, "
            "please call out-of-place version instead. File an issue at https://github.com/pytorch/pytorch if you do "
            "require supporting in-place leakRelu backward calculation with negative slope"
        )
    return _leaky_gradient(grad_output, self, negative_slope)


@blockwise
def _leaky_gradient(grad_output, self, negative_slope, out=None):
    return chosen(self > 0, grad_output, grad_output * constant(negative_slope, grad_output.dtype), out)


leaky_relu_backward.vjp(
    grad_output=lambda g, self, negative_slope, self_is_result: aten.leaky_relu_backward(
        g, self, negative_slope, self_is_result
    ),
    self=lambda g: aten.zeros_like(g),
)

# ---------------------------------------------------------------- exponential below 0


@op(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    shape=like_first,
    batching=Batching.POINTWISE,
    flops=per_element(2),
)
@blockwise
def elu(self, alpha, scale, input_scale, out=None):
    """Linear above 0, an exponential that flattens at `-alpha` below.

    >>> F.elu(torch.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])
    """
    need_float("elu_cpu", self)
    result = np.asarray(np.multiply(at_most(self, 0), constant(input_scale, self.dtype), out))
    np.expm1(result, result)
    np.multiply(result, constant(alpha * scale, self.dtype), result)
    positive = np.asarray(at_least(self, 0))
    if scale != 1:
        positive *= constant(scale, self.dtype)
    return np.add(result, positive, result)


elu.vjp(self=lambda g, alpha, scale, input_scale, self: aten.elu_backward(g, alpha, scale, input_scale, False, self))
_declare_inplace(
    "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
    elu,
    "EluBackward1",
    lambda g, alpha, scale, input_scale, result: aten.elu_backward(g, alpha, scale, input_scale, True, result),
)


@op(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), 1.0, 1.0, 1.0, False, make(3, 4) - 0.5)],
    flops=per_element(3),
)
@in_float32
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x, kind = self_or_result, grad_output.dtype
    below = np.asarray(at_most(x, 0))
    if is_result:
        if alpha < 0:
            raise RuntimeError(
                "In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
                "caused by calling in-place forward function with a negative slope, please call out-of-place version instead."
            )
        np.add(below, constant(alpha * scale, kind), below)
        np.multiply(below, constant(input_scale, kind), below)
    else:
        np.multiply(below, constant(input_scale, kind), below)
        np.exp(below, below)
        np.multiply(below, constant(input_scale * alpha * scale, kind), below)
    np.multiply(below, grad_output, below)
    return chosen(~(x <= 0), grad_output if scale == 1 else grad_output * constant(scale, kind), below)


def _elu_second(g, grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x = self_or_result
    inner = input_scale if is_result else input_scale * input_scale * alpha * scale * (x * input_scale).exp()
    return aten.where(x < 0, g * grad_output * inner, 0.0)


elu_backward.vjp(
    grad_output=lambda g, alpha, scale, input_scale, is_result, self_or_result: aten.elu_backward(
        g, alpha, scale, input_scale, is_result, self_or_result
    ),
    self_or_result=_elu_second,
)

_SELU = 1.6732632423543772, 1.0507009873554805

composite(
    "selu(Tensor self) -> Tensor",
    lambda self: aten.elu(self, *_SELU),
    doc="""A scaled `elu` that keeps activations near mean 0 and variance 1.

    >>> F.selu(torch.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """,
)
composite("selu_(Tensor(a!) self) -> Tensor(a!)", lambda self: aten.elu_(self, *_SELU), samples=lambda make: [])


@op(
    "celu(Tensor self, Scalar alpha=1.0) -> Tensor",
    shape=like_first,
    batching=Batching.POINTWISE,
    flops=per_element(2),
    out=False,
)
@blockwise
def celu(self, alpha, out=None):
    """Linear above 0, an exponential that flattens at `-alpha` below.

    >>> F.celu(torch.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])
    """
    need_float("elu_cpu", self)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    result = np.asarray(np.divide(at_most(self, 0), constant(alpha, self.dtype), out))
    np.expm1(result, result)
    np.multiply(result, constant(alpha, self.dtype), result)
    return np.add(result, at_least(self, 0), result)


celu.vjp(self=lambda g, alpha, self: aten.elu_backward(g, alpha, 1, 1.0 / alpha, False, self))
_declare_inplace(
    "celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)",
    celu,
    "CeluBackward1",
    lambda g, alpha, result: aten.elu_backward(g, alpha, 1, 1.0 / alpha, True, result),
)

# ---------------------------------------------------------------- learned slopes


@op("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", shape=like_first, batching=Batching.POINTWISE, flops=per_element(1))
@in_float32
def prelu_kernel(self, weight):
    need_real("prelu_cpu", self)
    return _bent(self, weight)


@prelu_kernel.vjp
def _(g, self, weight):
    return aten._prelu_kernel_backward(g, self, weight)


@op(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    takes_all_grads=True,
    shape=lambda grad_output, self, weight: [like_first(self), like_first(self)],
)
@in_float32
def prelu_kernel_backward(grad_output, self, weight):
    positive = self > 0
    return chosen(positive, grad_output, weight * grad_output), where_true(~positive, self * grad_output)


@prelu_kernel_backward.vjp
def _(grads, grad_output, self, weight):
    """Both results are linear in the gradient, and change with weight and self where self is negative."""
    to_self, to_weight = grads
    positive = self > 0
    grad_grad = grad_self = grad_weight = None
    if to_self is not None:
        grad_grad = aten.where(positive, to_self, to_self * weight)
        grad_weight = aten.where(positive, 0.0, to_self * grad_output)
    if to_weight is not None:
        more = aten.where(positive, 0.0, to_weight * self)
        grad_grad = more if grad_grad is None else grad_grad + more
        grad_self = aten.where(positive, 0.0, to_weight * grad_output)
    return grad_grad, grad_self, grad_weight


@composite(
    "prelu(Tensor self, Tensor weight) -> Tensor", samples=lambda make: [(make(3, 4) - 0.5, make(4))], autocast=Autocast.LOWER
)
def prelu(self, weight):
    """Linear above 0, with a learned slope below.

    >>> F.prelu(torch.tensor([-2.0, 1.0]), torch.tensor([0.25]))
    tensor([-0.5000,  1.0000])
    """
    count, ndim = weight._array.size, self._array.ndim
    if count != 1:
        if ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self._array.shape[1] if ndim > 1 else 1
        if channels != count:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    if weight._array.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight._array.ndim}")
    if weight._array.ndim != ndim:
        weight = aten.reshape(weight, tuple(count if i == 1 else 1 for i in range(ndim)))
    return aten._prelu_kernel(self, weight)


# ---------------------------------------------------------------- random slopes


def _check_bounds(lower, upper):
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")


@op(
    "rrelu_with_noise(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
    "bool training=False, Generator? generator=None) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4) - 0.5, make.constant(3, 4))],
    batching=Batching.RANDOM,
    doc="""What `rrelu` computes; the slopes are left in `noise`.

    >>> torch.ops.aten.rrelu_with_noise(torch.tensor([-1.0, 1.0]), torch.zeros(2))
    tensor([-0.2292,  1.0000])
    """,
)
def rrelu_with_noise(self, noise, lower, upper, training, generator):
    """In training every element below 0 gets a slope of its own, which `noise` keeps for the way back."""
    need_float("rrelu_with_noise_out_cpu", self)
    if not training:
        return leaky_relu.kernel(self, (lower + upper) / 2)
    _check_bounds(lower, upper)
    if noise.dtype != self.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(self)} but found {scalar_name(noise)}")
    if noise.shape != self.shape:
        raise RuntimeError(
            f"noise tensor shape must match self tensor shape. Got self.shape = {list(self.shape)} "
            f"noise.shape = {list(noise.shape)}"
        )
    negative = self <= 0
    draws = source_of(generator).uniforms64(int(np.count_nonzero(negative)))
    noise[...] = 1
    noise[negative] = (draws * (upper - lower) + lower).astype(self.dtype)
    return np.multiply(self, noise)


rrelu_with_noise.not_differentiable("noise").vjp(
    self=lambda g, self, noise, lower, upper, training: aten.rrelu_with_noise_backward(
        g, self, noise, lower, upper, training, False
    )
)


_declare_inplace(
    "rrelu_with_noise_(Tensor(a!) self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
    "bool training=False, Generator? generator=None) -> Tensor(a!)",
    rrelu_with_noise,
    "RreluWithNoiseBackward1",
    lambda g, result, noise, lower, upper, training: aten.rrelu_with_noise_backward(
        g, result, noise, lower, upper, training, True
    ),
).not_differentiable("noise")


@op(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool "
    "training, bool self_is_result) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4), make(3, 4), 0.1, 0.3, True, False)],
)
def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    if training and upper - lower > 1e-6:
        return np.multiply(noise, grad_output)
    return leaky_relu_backward.kernel(grad_output, self, (lower + upper) / 2, self_is_result)


rrelu_with_noise_backward.vjp(
    grad_output=lambda g, self, noise, lower, upper, training, self_is_result: aten.rrelu_with_noise_backward(
        g, self, noise, lower, upper, training, self_is_result
    ),
    self=lambda g: aten.zeros_like(g),
)

_RRELU = "Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None"


@composite(f"rrelu(Tensor self, {_RRELU}) -> Tensor", samples=lambda make: [(make(3, 4) - 0.5,)])
def rrelu(self, lower, upper, training, generator):
    """Linear above 0, with a random slope below while training, and the mean of its range otherwise.

    >>> F.rrelu(torch.tensor([-1.0, 1.0]))
    tensor([-0.2292,  1.0000])
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    _check_bounds(lower, upper)
    return aten.rrelu_with_noise(self, aten.empty_like(self), lower, upper, training, generator)


@composite(f"rrelu_(Tensor(a!) self, {_RRELU}) -> Tensor(a!)", samples=lambda make: [])
def rrelu_(self, lower, upper, training, generator):
    _check_bounds(lower, upper)
    return aten.rrelu_with_noise_(self, aten.empty_like(self), lower, upper, training, generator)
