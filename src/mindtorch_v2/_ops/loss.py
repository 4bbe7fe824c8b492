"""Losses."""

from __future__ import annotations

import numpy as np

from .._dispatch.registry import aten, composite, op
from ._common import like_first, normal_dim

NONE, MEAN, SUM = range(3)


def _reduced(values, reduction):
    if reduction == NONE:
        return values
    return values.mean(dtype=values.dtype) if reduction == MEAN else values.sum(dtype=values.dtype)


def _loss_shape(self, target, reduction, *_):
    shape = np.broadcast_shapes(self._array.shape, target._array.shape) if reduction == NONE else ()
    return shape, self._array.dtype


@op("mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", promote="same", promoted=("self", "target"),
    shape=_loss_shape)
def mse_loss(self, target, reduction):
    difference = np.subtract(self, target)
    return _reduced(np.multiply(difference, difference), reduction)


mse_loss.vjp(self=lambda g, self, target, reduction: aten.mse_loss_backward(g, self, target, reduction),
             target=lambda g, self, target, reduction: aten.mse_loss_backward(g, target, self, reduction))


@op("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    shape=lambda grad_output, self, target, reduction: _loss_shape(self, target, NONE))
def mse_loss_backward(grad_output, self, target, reduction):
    difference = np.subtract(self, target)
    scale = 2.0 / max(difference.size, 1) if reduction == MEAN else 2.0
    np.multiply(difference, scale, difference)
    return np.multiply(difference, grad_output, difference)


mse_loss_backward.vjp(
    grad_output=lambda g, self, target, reduction: _double_mse(g, self, target, reduction),
    self=lambda g, grad_output, reduction: g * grad_output * _mse_scale(g, reduction),
    target=lambda g, grad_output, reduction: -(g * grad_output * _mse_scale(g, reduction)))


def _mse_scale(g, reduction):
    return 2.0 / max(g.numel(), 1) if reduction == MEAN else 2.0


def _double_mse(g, self, target, reduction):
    return g * (self - target) * _mse_scale(g, reduction)


# ---------------------------------------------------------------- negative log likelihood


def _picked(target, classes, ignore_index):
    """Which targets count, and the class of each (0 where it does not)."""
    counts = target != ignore_index
    safe = np.where(counts, target, 0)
    if safe.size and (safe.min() < 0 or safe.max() >= classes):
        wrong = safe[(safe < 0) | (safe >= classes)][0]
        raise IndexError(f"Target {wrong} is out of bounds.")
    return counts, safe


@op("nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) "
    "-> (Tensor output, Tensor total_weight)", node="NllLossBackward0",
    shape=lambda self, target, weight, reduction, ignore_index: [
        (target._array.shape if reduction == NONE else (), self._array.dtype), ((), self._array.dtype)])
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    if target.ndim > 1 or self.ndim > 2 or self.ndim == 2 and self.shape[0] != target.shape[0]:
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({target.shape[0]}).")
    rows = self.reshape(-1, self.shape[-1])
    flat = target.reshape(-1)
    counts, safe = _picked(flat, rows.shape[1], ignore_index)
    scale = counts.astype(self.dtype) if weight is None else np.where(counts, weight[safe], 0).astype(self.dtype)
    losses = -rows[np.arange(len(flat)), safe] * scale
    total = scale.sum(dtype=self.dtype)
    if reduction == NONE:
        return losses.reshape(target.shape), np.zeros((), self.dtype)
    made = losses.sum(dtype=self.dtype)
    return made / total if reduction == MEAN else made, total


@nll_loss_forward.vjp
def _(g, self, target, weight, reduction, ignore_index, result1):
    return aten.nll_loss_backward(g, self, target, weight, reduction, ignore_index, result1), None, None


@op("nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, "
    "Tensor total_weight) -> Tensor", shape=lambda grad_output, self, *_: like_first(self))
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    made = np.zeros(self.shape, self.dtype)
    rows = made.reshape(-1, self.shape[-1])
    flat = target.reshape(-1)
    counts, safe = _picked(flat, rows.shape[1], ignore_index)
    scale = counts.astype(self.dtype) if weight is None else np.where(counts, weight[safe], 0).astype(self.dtype)
    if reduction == MEAN:
        scale = scale / total_weight
    rows[np.arange(len(flat)), safe] = -scale * (grad_output.reshape(-1) if reduction == NONE else grad_output)
    return made


nll_loss_backward.vjp(grad_output=lambda g, target, weight, reduction, ignore_index:
                      aten.nll_loss_forward(g, target, weight, reduction, ignore_index)[0])

composite("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor",
          lambda self, target, weight, reduction, ignore_index:
          aten.nll_loss_forward(self, target, weight, reduction, ignore_index)[0])
composite("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) "
          "-> Tensor",
          lambda self, target, weight, reduction, ignore_index:
          aten.nll_loss(self, target, weight, reduction, ignore_index))


@composite("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
           "int ignore_index=-100, float label_smoothing=0.0) -> Tensor")
def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    dim = 0 if self._array.ndim == 1 else 1
    if self._array.shape == target._array.shape:
        return _probability_loss(self, target, weight, reduction, label_smoothing, dim)
    log_probabilities = aten.log_softmax(self, dim)
    if label_smoothing > 0:
        return _smoothed_loss(log_probabilities, target, weight, reduction, ignore_index, label_smoothing, dim)
    return aten.nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index)


def _probability_loss(self, target, weight, reduction, label_smoothing, dim):
    """Targets given as class probabilities."""
    log_probabilities = aten.log_softmax(self, dim)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / self.shape[dim]
    weighted = log_probabilities * target
    if weight is not None:
        shape = [1] * self.dim()
        shape[normal_dim(dim, self.dim())] = -1
        weighted = weighted * weight.view(shape)
    if reduction == NONE:
        return -weighted.sum(dim)
    total = -weighted.sum()
    return total / (self.numel() // self.shape[dim]) if reduction == MEAN else total


def _smoothed_loss(log_probabilities, target, weight, reduction, ignore_index, label_smoothing, dim):
    nll = aten.nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index)
    if weight is not None:
        shape = [1] * log_probabilities.dim()
        shape[dim] = -1
        smooth = -(log_probabilities * weight.view(shape)).sum(dim)
    else:
        smooth = -log_probabilities.sum(dim)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored, 0.0)
    if reduction == MEAN:
        if weight is not None:
            smooth = smooth.sum() / weight.gather(0, target.masked_fill(ignored, 0).flatten()).masked_fill(
                ignored.flatten(), 0.0).sum()
        else:
            smooth = smooth.sum() / (target.numel() - ignored.sum())
    elif reduction == SUM:
        smooth = smooth.sum()
    return nll * (1 - label_smoothing) + smooth * (label_smoothing / log_probabilities.shape[dim])
