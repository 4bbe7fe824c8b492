"""Losses between probabilities: binary cross entropy, Kullback-Leibler divergence, Poisson likelihood."""

from __future__ import annotations

import math

import numpy as np

from ..._core.threads import threads
from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.registry import aten, composite, op
from .._support.common import scalar_name
from .._support.elementwise import need_float
from .._support.flops import per_element
from .._support.half import in_float32
from ..pointwise.scalar_forms import add_number, mul_number, number_minus
from .regression import MEAN, NONE, grad_shape, loss_shape, mean_factor, reduced, reduced_in_ops

# Logarithms below this count as this, so that the loss of a probability of 0 is large but finite.
_LEAST_LOG = -100
_LEAST_VARIANCE = 1e-12

# ---------------------------------------------------------------- of probabilities


@op(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
    shape=lambda self, target, weight, reduction: loss_shape(self, target, reduction),
    samples=lambda make: [(make(3, 4), make(3, 4)), (make(3, 4), make(3, 4), make.constant(4), NONE)],
    autocast=Autocast.FLOAT32,
    batching=Batching.LOSS,
    flops=per_element(4),
)
def binary_cross_entropy(self, target, weight, reduction):
    """The cross entropy of probabilities with targets of 0 and 1.

    >>> F.binary_cross_entropy(torch.tensor([0.9, 0.1]), torch.tensor([1.0, 0.0]))
    tensor(0.1054)
    """
    if target.dtype is not self.dtype and target.dtype != self.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target)} but expected {scalar_name(self)}")
    need_float("binary_cross_entropy", self)
    return _binary_cross_entropy(self, target, weight, reduction)


@in_float32
def _binary_cross_entropy(self, target, weight, reduction):
    if self.size and not (np.minimum.reduce(self, None) >= 0 and np.maximum.reduce(self, None) <= 1):
        raise RuntimeError("all elements of input should be between 0 and 1")
    with np.errstate(divide="ignore"):
        loss = np.asarray(np.log1p(np.negative(self)))
        log_p = np.asarray(np.log(self))
    np.maximum(loss, _LEAST_LOG, out=loss)
    np.maximum(log_p, _LEAST_LOG, out=log_p)
    # (t - 1) log(1 - p) - t log(p)
    np.multiply(loss, target - 1, loss)
    np.subtract(loss, np.multiply(log_p, target, log_p), loss)
    if weight is not None:
        loss *= weight
    return reduced(loss, reduction)


def _bce_target_grad(g, self, target, weight, reduction):
    mul, neg = _in_place_forms("mul", "neg")
    grad = mul(neg(aten.logit(self)), g)
    return _scaled(grad, weight, reduction, target)


def _in_place_forms(*names):
    """The named ops, in place unless what they write to may be needed for a second derivative."""
    suffix = "" if threads.state.grad_enabled else "_"
    return [getattr(aten, name + suffix) for name in names]


def _scaled(grad, weight, reduction, like):
    """A gradient times the weights and, for a mean, divided by the number of elements."""
    mul, div = _in_place_forms("mul", "div")
    if weight is not None:
        grad = mul(grad, weight)
    return div(grad, like._array.size) if reduction == MEAN else grad


binary_cross_entropy.not_differentiable("weight").vjp(
    self=lambda g, self, target, weight, reduction: aten.binary_cross_entropy_backward(g, self, target, weight, reduction),
    target=_bce_target_grad,
)


@op(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, "
    "int reduction=Mean) -> Tensor",
    shape=grad_shape,
    samples=lambda make: [(make(3, 4), make(3, 4), make(3, 4), make.constant(4), NONE), (make(), make(3, 4), make(3, 4))],
    flops=per_element(4),
)
@in_float32
def binary_cross_entropy_backward(grad_output, self, target, weight, reduction):
    variance = np.asarray(np.multiply(self, 1 - self))
    np.maximum(variance, _LEAST_VARIANCE, out=variance)
    grad = np.asarray(np.subtract(self, target))
    np.divide(grad, variance, grad)
    np.multiply(grad, grad_output, grad)
    if weight is not None:
        grad *= weight
    if reduction == MEAN:
        grad *= mean_factor(grad.size, reduction)
    return grad


def _variance(p):
    return aten.clamp_min(p * (1 - p), _LEAST_VARIANCE)


def _bce_second(g, grad_output, self, target, weight, reduction):
    variance = _variance(self)
    bend = (self * self - 2 * self * target + target) / (variance * variance)
    return _scaled(g * grad_output * bend, weight, reduction, self)


binary_cross_entropy_backward.vjp(
    grad_output=lambda g, self, target, weight, reduction: (
        g * aten.binary_cross_entropy_backward(aten.ones((), dtype=g.dtype), self, target, weight, reduction)
    ),
    self=_bce_second,
    target=lambda g, grad_output, self, weight, reduction: _scaled(
        -(g * grad_output / _variance(self)), weight, reduction, self
    ),
)

# ---------------------------------------------------------------- of logits


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=Mean) -> Tensor",
    samples=lambda make: [(make(3, 4), make(3, 4)), (make(3, 4), make(3, 4), make.constant(4), make.constant(4), NONE)],
    autocast=Autocast.FLOAT32,
    batching=Batching.LOSS,
)
def binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction):
    """The same for logits: a sigmoid and the loss in one, without overflow.

    >>> F.binary_cross_entropy_with_logits(torch.tensor([2.0, -2.0]), torch.tensor([1.0, 0.0]))
    tensor(0.1269)
    """
    hit = aten.log_sigmoid(self)
    if pos_weight is not None:
        hit = aten.mul_(hit, aten.add_(aten.mul(aten.sub(pos_weight, 1), target), 1))
    loss = aten.sub_(aten.mul_(number_minus(1, target), self), hit)
    if weight is not None:
        loss = aten.mul_(loss, weight)
    return reduced_in_ops(loss, reduction)


@binary_cross_entropy_with_logits.not_differentiable("weight", "pos_weight").vjp
def _(g, self, target, weight, pos_weight, reduction, needs):
    grad = _scaled(_logits_grad(g, self, target, pos_weight), weight, reduction, self) if needs[0] else None
    grad_target = _scaled(_logits_target_grad(g, self, pos_weight), weight, reduction, self) if needs[1] else None
    return grad, grad_target


def _logits_grad(g, self, target, pos_weight):
    mul, sub = _in_place_forms("mul", "sub")
    if pos_weight is None:
        return mul(sub(aten.sigmoid(self), target), g)
    hits = aten.mul(pos_weight, target)
    grad = mul(sub(aten.add(hits, 1), target), aten.sigmoid(self))
    return mul(sub(grad, hits), g)


def _logits_target_grad(g, self, pos_weight):
    mul, sub = _in_place_forms("mul", "sub")
    if pos_weight is None:
        return aten.mul(aten.neg(self), g)
    missed = aten.log_sigmoid(aten.neg(self))
    return mul(sub(missed, mul(aten.log_sigmoid(self), pos_weight)), g)


# ---------------------------------------------------------------- between distributions


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor", autocast=Autocast.FLOAT32
)
def kl_div(self, target, reduction, log_target):
    """The Kullback-Leibler divergence; the input holds logarithms of probabilities.

    >>> F.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]), reduction="sum")
    tensor(0.1308)
    """
    if self._array.dtype.kind in "iub" or target._array.dtype.kind in "iub":
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        difference = aten.sub(target, self)
        loss = aten.mul(aten.exp(target), difference)
    else:
        cross = aten.mul(target, self)
        loss = aten.sub(aten.xlogy(target, target), cross)
    return reduced_in_ops(loss, reduction)


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    samples=lambda make: [
        (make(3, 4), make(3, 4), True, False, 1e-8, MEAN),
        (make(3, 4), make(3, 4) * 4, False, True, 1e-8, NONE),
    ],
    autocast=Autocast.FLOAT32,
)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """The negative log likelihood of counts under Poisson rates.

    >>> F.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(1.)
    """
    if log_input:
        cross = aten.mul(target, input)
        loss = aten.sub(aten.exp(input), cross)
    else:
        loss = aten.sub(input, aten.mul(target, aten.log(add_number(input, eps))))
    if full:
        # Stirling's approximation of log(target!), which only holds above 1.
        tail = mul_number(aten.log(mul_number(target, 2 * math.pi)), 0.5)
        stirling = aten.add(aten.sub(aten.mul(target, aten.log(target)), target), tail)
        stirling = aten.masked_fill(stirling, aten.le(target, 1), 0)
        loss = aten.add_(loss, stirling)
    return reduced_in_ops(loss, reduction)
