"""Losses of the difference between input and target: squared, absolute, and what lies between."""

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Autocast, Batching, Promotion
from ..._dispatch.registry import aten, composite, op
from .._support.blockwise import blockwise
from .._support.elementwise import at_most, clipped, constant, need_float
from .._support.flops import per_element
from .._support.half import in_float32

NONE, MEAN, SUM = range(3)


def reduced(values: np.ndarray, reduction: int) -> np.ndarray:
    """A kernel's losses, averaged or summed as `reduction` says."""
    if reduction == NONE:
        return values
    total = np.add.reduce(values, None)
    return total if reduction == SUM else np.divide(total, values.dtype.type(values.size))


def reduced_in_ops(values, reduction):
    """As `reduced`, composed of ops, for losses without a kernel of their own."""
    if reduction == NONE:
        return values
    return aten.mean(values) if reduction == MEAN else aten.sum(values)


def mean_factor(count: int, reduction: int) -> float:
    """The factor of each element's gradient from the reduction: 1 / count for the mean, else 1."""
    return 1.0 / max(count, 1) if reduction == MEAN else 1.0


def loss_shape(self, target, reduction, *_):
    shape = np.broadcast_shapes(self._array.shape, target._array.shape) if reduction == NONE else ()
    return shape, self._array.dtype


def grad_shape(grad_output, self, target, *_):
    return np.broadcast_shapes(self._array.shape, target._array.shape), self._array.dtype


def _backward_samples(make, *extra):
    return [(make(3, 4), make(3, 4), make(3, 4), NONE, *extra), (make(), make(3, 4), make(3, 4), MEAN, *extra)]


def _one(like):
    return aten.ones((), dtype=like.dtype)


# ---------------------------------------------------------------- squared


@op(
    "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    promote=Promotion.SAME,
    promoted=("self", "target"),
    shape=loss_shape,
    autocast=Autocast.FLOAT32,
    batching=Batching.LOSS,
    flops=per_element(3),
)
@in_float32
def mse_loss(self, target, reduction):
    """The mean squared difference.

    >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
    tensor(2.5000)
    """
    need_float("mse_cpu", self)
    return reduced(_squares(self, target), reduction)


@blockwise
def _squares(self, target, out=None):
    difference = np.asarray(np.subtract(self, target, out))
    return np.multiply(difference, difference, difference)


mse_loss.vjp(
    self=lambda g, self, target, reduction: aten.mse_loss_backward(g, self, target, reduction),
    target=lambda g, self, target, reduction: aten.mse_loss_backward(g, target, self, reduction),
)


@op(
    "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    shape=grad_shape,
    samples=_backward_samples,
    flops=per_element(3),
)
@in_float32
def mse_loss_backward(grad_output, self, target, reduction):
    difference = np.asarray(np.subtract(self, target))
    np.multiply(difference, 2 * mean_factor(difference.size, reduction), difference)
    return np.multiply(difference, grad_output, difference)


def _mse_second(g, grad_output, reduction):
    return g * grad_output * (2 * mean_factor(g.numel(), reduction))


mse_loss_backward.vjp(
    grad_output=lambda g, self, target, reduction: g * aten.mse_loss_backward(_one(g), self, target, reduction),
    self=lambda g, grad_output, reduction: _mse_second(g, grad_output, reduction),
    target=lambda g, grad_output, reduction: -_mse_second(g, grad_output, reduction),
)

# ---------------------------------------------------------------- absolute

composite(
    "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    lambda self, target, reduction: reduced_in_ops(aten.abs(aten.sub(self, target)), reduction),
    autocast=Autocast.FLOAT32,
    doc="""The mean absolute difference.

    >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]))
    tensor(1.5000)
    """,
)

# ---------------------------------------------------------------- squared near 0, absolute elsewhere


@op(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
    promote=Promotion.SAME,
    promoted=("self", "target"),
    shape=loss_shape,
    autocast=Autocast.FLOAT32,
    batching=Batching.LOSS,
    flops=per_element(3),
)
@in_float32
def smooth_l1_loss(self, target, reduction, beta):
    """Squared below `beta`, linear beyond, scaled by `beta`.

    >>> F.smooth_l1_loss(torch.tensor([0.0, 3.0]), torch.tensor([0.5, 0.0]))
    tensor(1.3125)
    """
    need_float("smooth_l1_cpu", self)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduced(np.asarray(np.abs(np.subtract(self, target))), reduction)
    return reduced(_bent(self, target, beta, 1 / beta), reduction)


@blockwise
def _bent(self, target, limit, scale, out=None):
    """d² / 2 up to the limit and the straight line that goes on from there, times a factor."""
    distance = np.asarray(np.abs(np.subtract(self, target, out), out))
    # With m the part of the distance below the limit, m (d - m / 2) is d² / 2 inside and (d - limit / 2) limit outside.
    inner = np.asarray(at_most(distance, limit))
    np.subtract(distance, np.multiply(inner, constant(0.5, inner.dtype)), distance)
    np.multiply(distance, inner, distance)
    return distance if scale == 1 else np.multiply(distance, constant(scale, distance.dtype), distance)


smooth_l1_loss.vjp(
    self=lambda g, self, target, reduction, beta: aten.smooth_l1_loss_backward(g, self, target, reduction, beta),
    target=lambda g, self, target, reduction, beta: aten.smooth_l1_loss_backward(g, target, self, reduction, beta),
)


@op(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor",
    shape=grad_shape,
    samples=lambda make: _backward_samples(make, 0.3),
    flops=per_element(3),
)
@in_float32
def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    difference = np.asarray(np.subtract(self, target))
    factor = mean_factor(difference.size, reduction)
    if beta == 0:
        np.sign(difference, difference)
        np.multiply(difference, factor, difference)
    else:
        clipped(difference, -beta, beta, difference)
        np.multiply(difference, factor / beta, difference)
    return np.multiply(difference, grad_output, difference)


def _smooth_second(g, grad_output, self, target, reduction, beta):
    near = aten.abs(self - target) < beta
    factor = mean_factor(g.numel(), reduction) / beta if beta else 0.0
    return aten.where(near, g * grad_output * factor, 0.0)


smooth_l1_loss_backward.vjp(
    grad_output=lambda g, self, target, reduction, beta: (
        g * aten.smooth_l1_loss_backward(_one(g), self, target, reduction, beta)
    ),
    self=_smooth_second,
    target=lambda g, grad_output, self, target, reduction, beta: -_smooth_second(g, grad_output, self, target, reduction, beta),
)


@op(
    "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
    promote=Promotion.SAME,
    promoted=("self", "target"),
    shape=loss_shape,
    autocast=Autocast.FLOAT32,
    batching=Batching.LOSS,
    flops=per_element(3),
)
@in_float32
def huber_loss(self, target, reduction, delta):
    """Squared below `delta`, linear beyond.

    >>> F.huber_loss(torch.tensor([0.0, 3.0]), torch.tensor([0.5, 0.0]))
    tensor(1.3125)
    """
    need_float("huber_cpu", self)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return reduced(_bent(self, target, delta, 1), reduction)


huber_loss.vjp(
    self=lambda g, self, target, reduction, delta: aten.huber_loss_backward(g, self, target, reduction, delta),
    target=lambda g, self, target, reduction, delta: aten.huber_loss_backward(g, target, self, reduction, delta),
)


@op(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
    shape=grad_shape,
    samples=lambda make: _backward_samples(make, 0.3),
    flops=per_element(3),
)
@in_float32
def huber_loss_backward(grad_output, self, target, reduction, delta):
    difference = np.asarray(np.subtract(self, target))
    clipped(difference, -delta, delta, difference)
    np.multiply(difference, mean_factor(difference.size, reduction), difference)
    return np.multiply(difference, grad_output, difference)


def _huber_second(g, grad_output, self, target, reduction, delta):
    near = aten.abs(self - target) < delta
    return aten.where(near, g * grad_output * mean_factor(g.numel(), reduction), 0.0)


huber_loss_backward.vjp(
    grad_output=lambda g, self, target, reduction, delta: g * aten.huber_loss_backward(_one(g), self, target, reduction, delta),
    self=_huber_second,
    target=lambda g, grad_output, self, target, reduction, delta: (
        -_huber_second(g, grad_output, self, target, reduction, delta)
    ),
)
