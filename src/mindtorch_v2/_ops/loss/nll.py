"""Negative log likelihood and cross entropy: the losses of picking one class."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..._core.keys import META
from ..._dispatch.errors import torch_error
from ..._dispatch.facts import Autocast
from ..._dispatch.registry import aten, composite, op
from .._support.blas_sums import total
from .._support.common import is_within, like_first, scalar_name
from .._support.elementwise import constant, need_float
from .._support.flops import per_element
from .._support.half import in_float32
from ..nn.softmax import log_softmax
from ..pointwise.scalar_forms import div_number, mul_number
from .regression import MEAN, NONE, SUM

_INT64 = np.dtype(np.int64)
_UINT8 = np.dtype(np.uint8)


def _checked_classes(target, width, ignore_index):
    """The class of each target, and which of them count: None if all do."""
    if target.dtype is not _INT64:
        if target.dtype != _INT64 and target.dtype != _UINT8:
            raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target)}")
        target = target.astype(_INT64)
    if not target.size:
        return target, None
    if not 0 <= ignore_index < width and is_within(target, width):
        return target, None
    counts = target != ignore_index
    classes = np.where(counts, target, 0)
    wrong = (classes < 0) | (classes >= width)
    if wrong.any():
        raise IndexError(f"Target {classes[wrong][0]} is out of bounds.")
    return classes, counts


def _scale(classes, counts, weight, dtype):
    """The weight of each target, 0 where it does not count; None if all weigh 1."""
    if weight is None:
        return None if counts is None else counts.astype(dtype)
    scale = weight[classes]
    return scale if counts is None else scale * counts


def _check_weight(weight, classes, rows):
    if weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
            if rows
            else "weight tensor should be defined either for all or no classes"
        )


@lru_cache(maxsize=64)
def _starts(count, size):
    """Where each of `count` samples of `size` elements begins."""
    starts = np.arange(count) * size
    starts.flags.writeable = False
    return starts


def _places(shape, classes):
    """Flat positions of the elements that (N,) or (N, area) classes pick from an array of shape (N, C, area)."""
    count, width, area = shape
    if classes.ndim < 2:
        return np.add(_starts(count, width), classes)
    return _starts(count, width * area)[:, None] + classes * area + np.arange(area)


def _likelihood(self, shape, target, weight, reduction, ignore_index):
    """The loss of log probabilities that are (N, C, area) for (N,) or (N, area) classes, and the total weight."""
    kind = self.dtype
    classes, counts = _checked_classes(target, shape[1], ignore_index)
    picked = self.take(_places(shape, classes))
    scale = _scale(classes, counts, weight, kind)
    if scale is not None:
        picked *= scale
    if reduction == NONE:
        return np.negative(picked, picked).reshape(target.shape), np.zeros((), kind)
    # 0 - x, not -x: a loss of nothing is 0, not -0.
    loss, total_weight = 0 - total(picked), picked.size if scale is None else total(scale)
    return loss / total_weight if reduction == MEAN else loss, np.array(total_weight, kind)


def _likelihood_grad(grad_output, shape, target, weight, reduction, ignore_index, total_weight):
    """The flat gradient of `_likelihood`: zero but for the picked elements."""
    kind = grad_output.dtype
    classes, counts = _checked_classes(target, shape[1], ignore_index)
    scale = _scale(classes, counts, weight, kind)
    values = np.negative(grad_output)
    if reduction == MEAN:
        values = np.divide(values, total_weight)
    if scale is not None:
        values = np.multiply(values, scale)
    if counts is not None:  # where nothing counts at all, the mean divides by zero
        values = np.where(counts, values, 0)
    grad = np.zeros(shape[0] * shape[1] * shape[2], kind)
    grad[_places(shape, classes)] = values
    return grad


# ---------------------------------------------------------------- rows: (N, C) and (N,), or (C,) and a single class


def _row_shape(self, target):
    """The shape of the log probabilities as (N, C, area); RuntimeError unless the target goes with it."""
    shape = self.shape
    if len(shape) == 2 and (target.shape == shape[:1] or not target.ndim):
        return *shape, 1
    if self.ndim not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if self.ndim == 2:
        raise RuntimeError(f"size mismatch (got input: {list(shape)}, target: {list(target.shape)})")
    if target.ndim == 1 and len(target) != 1:
        raise torch_error(ValueError(f"For 1D input, 1D target must have size 1, but got target size: {len(target)}"))
    return 1, *shape, 1


@op(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) "
    "-> (Tensor output, Tensor total_weight)",
    node="NllLossBackward0",
    shape=lambda self, target, weight, reduction, ignore_index: [
        (target._array.shape if reduction == NONE else (), self._array.dtype),
        ((), self._array.dtype),
    ],
    samples=lambda make: [
        (make(3, 5), make.ints(5, 3), make.constant(5), MEAN, -100),
        (make(3, 5), make.ints(5, 3), None, NONE, 1),
    ],
    flops=per_element(2),
)
@in_float32
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    """What `nll_loss` computes, and the total weight.

    >>> torch.ops.aten.nll_loss_forward(torch.zeros(1, 2), torch.tensor([1]), None, 1, -100)[1]
    tensor(1.)
    """
    need_float("nll_loss_out_frame", self)
    shape = _row_shape(self, target)
    if weight is not None:
        _check_weight(weight, shape[1], True)
    loss, total = _likelihood(self, shape, target, weight, reduction, ignore_index)
    return (loss if self.ndim > 1 else loss + constant(0, loss.dtype)), total  # torch adds up one row as it does several: no -0


nll_loss_forward.not_differentiable("weight", "result1").vjp(
    self=lambda g, self, target, weight, reduction, ignore_index, result1: aten.nll_loss_backward(
        g, self, target, weight, reduction, ignore_index, result1
    )
)


@op(
    "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int "
    "ignore_index, Tensor total_weight) -> Tensor",
    shape=lambda grad_output, self, *_: like_first(self),
    samples=lambda make: [(make(3), make(3, 5), make.ints(5, 3), make.constant(5), NONE, 2, make())],
)
@in_float32
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    shape = _row_shape(self, target)
    grad = _likelihood_grad(grad_output, shape, target, weight, reduction, ignore_index, total_weight)
    return grad.reshape(self.shape)


nll_loss_backward.vjp(
    grad_output=lambda g, target, weight, reduction, ignore_index: aten.nll_loss(g, target, weight, reduction, ignore_index)
)

_nll_loss_forward = nll_loss_forward.call
nll_loss = composite(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor",
    lambda self, target, weight, reduction, ignore_index: _nll_loss_forward(self, target, weight, reduction, ignore_index)[0],
    samples=lambda make: [(make(3, 5), make.ints(5, 3))],
    autocast=Autocast.FLOAT32,
    doc="""The negative log likelihood of class numbers; the input holds logarithms of probabilities.

    >>> F.nll_loss(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([1]))
    tensor(0.2877)
    """,
)
_nll_loss_rows = nll_loss.call

# ---------------------------------------------------------------- planes: (N, C, H, W) and (N, H, W)


def _check_planes(self, target):
    if target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    if self.ndim != 4:
        raise RuntimeError(f"only batches of spatial inputs supported (4D tensors), but found input of dimension: {self.ndim}")
    if (self.shape[0], *self.shape[2:]) != target.shape:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)} , target: {list(target.shape)}")


def _plane_shape(self):
    """(N, C, H, W) as (N, C, area)."""
    return self.shape[0], self.shape[1], self.shape[2] * self.shape[3]


@op(
    "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) "
    "-> (Tensor output, Tensor total_weight)",
    node="NllLoss2DBackward0",
    shape=lambda self, target, weight, reduction, ignore_index: [
        (target._array.shape if reduction == NONE else (), self._array.dtype),
        ((), self._array.dtype),
    ],
    samples=lambda make: [(make(2, 5, 3, 2), make.ints(5, 2, 3, 2), make.constant(5), MEAN, -100)],
)
@in_float32
def nll_loss2d_forward(self, target, weight, reduction, ignore_index):
    """What `nll_loss2d` computes, and the total weight.

    >>> torch.ops.aten.nll_loss2d_forward(torch.zeros(1, 2, 1, 1), torch.tensor([[[1]]]), None, 1, -100)[1]
    tensor(1.)
    """
    _check_planes(self, target)
    if weight is not None:
        _check_weight(weight, self.shape[1], False)
    shape = _plane_shape(self)
    classes = target.reshape(len(target), shape[2])
    loss, total = _likelihood(self, shape, classes, weight, reduction, ignore_index)
    return (loss.reshape(target.shape) if reduction == NONE else loss), total


nll_loss2d_forward.not_differentiable("weight", "result1").vjp(
    self=lambda g, self, target, weight, reduction, ignore_index, result1: aten.nll_loss2d_backward(
        g, self, target, weight, reduction, ignore_index, result1
    )
)


@op(
    "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int "
    "ignore_index, Tensor total_weight) -> Tensor",
    shape=lambda grad_output, self, *_: like_first(self),
    samples=lambda make: [(make(2, 3, 2), make(2, 5, 3, 2), make.ints(5, 2, 3, 2), None, NONE, 2, make())],
)
@in_float32
def nll_loss2d_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    _check_planes(self, target)
    shape = _plane_shape(self)
    classes = target.reshape(len(target), shape[2])
    if reduction == NONE:
        grad_output = grad_output.reshape(classes.shape)
    grad = _likelihood_grad(grad_output, shape, classes, weight, reduction, ignore_index, total_weight)
    return grad.reshape(self.shape)


nll_loss2d_backward.vjp(
    grad_output=lambda g, target, weight, reduction, ignore_index: aten.nll_loss2d(g, target, weight, reduction, ignore_index)
)

composite(
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor",
    lambda self, target, weight, reduction, ignore_index: aten.nll_loss2d_forward(
        self, target, weight, reduction, ignore_index
    )[0],
    samples=lambda make: [(make(2, 5, 3, 3), make.ints(5, 2, 3, 3))],
    autocast=Autocast.FLOAT32,
    doc="""The negative log likelihood of class numbers, pixel by pixel.

    >>> torch.ops.aten.nll_loss2d(-torch.ones(1, 2, 1, 1), torch.tensor([[[1]]]))
    tensor(1.)
    """,
)

# ---------------------------------------------------------------- any number of dims


@composite(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor",
    samples=lambda make: [(make(2, 5, 3), make.ints(5, 2, 3))],
)
def nll_loss_nd(self, target, weight, reduction, ignore_index):
    """The negative log likelihood of class numbers for inputs of any rank.

    >>> torch.ops.aten.nll_loss_nd(-torch.ones(1, 2), torch.tensor([1]))
    tensor(1.)
    """
    shape, wanted = self._array.shape, target._array.shape
    if len(shape) == 2 and shape[:1] == wanted:
        return _nll_loss_rows(self, target, weight, reduction, ignore_index)
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) != 1 and (not wanted or shape[0] != wanted[0]):
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({wanted[0] if wanted else 0}).")
    if len(shape) <= 2:
        return _nll_loss_rows(self, target, weight, reduction, ignore_index)
    if len(shape) == 4:
        return aten.nll_loss2d(self, target, weight, reduction, ignore_index)
    if wanted[1:] != shape[2:]:
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(wanted)}")
    area = self._array.size // (shape[0] * shape[1]) if self._array.size else 0
    flat = aten.view(self.contiguous(), (*shape[:2], 1 if area else 0, area))
    target = aten.view(target.contiguous(), (shape[0], 1 if area else 0, area))
    loss = aten.nll_loss2d(flat, target, weight, reduction, ignore_index)
    return aten.view(loss, wanted) if reduction == NONE else loss


_log_softmax, _nll_loss_nd = log_softmax.call, nll_loss_nd.call


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
    "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    samples=lambda make: [(make(3, 5), make.ints(5, 3), make.constant(5), MEAN, -100, 0.1), (make(3, 5), make(3, 5))],
    autocast=Autocast.FLOAT32,
)
def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    """The cross entropy of logits with class numbers or class probabilities.

    >>> F.cross_entropy(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    tensor(0.1269)
    """
    shape = self._array.shape
    dim = 0 if len(shape) == 1 else 1
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if weight is not None and weight._array.shape != shape[dim : dim + 1]:
        raise RuntimeError(
            "cross_entropy: weight tensor should be defined either for all "
            f"{shape[dim]} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if shape == target._array.shape:
        return _probability_loss(self, target, weight, reduction, ignore_index, label_smoothing, dim)
    log_probabilities = _log_softmax(self, dim)
    if label_smoothing > 0:
        return _smoothed_loss(log_probabilities, target, weight, reduction, ignore_index, label_smoothing, dim)
    return _nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index)


def _per_class(weight, ndim, dim):
    shape = [1] * ndim
    shape[dim] = -1
    return aten.view(weight, shape)


def _share(label_smoothing, classes):
    """What each class gets of the smoothing; with no class the quotient is infinite, as in C."""
    return label_smoothing / classes if classes else math.inf


def _probability_loss(self, target, weight, reduction, ignore_index, label_smoothing, dim):
    """Targets given as class probabilities."""
    if target._array.dtype.kind not in "fcV":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {scalar_name(target._array)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    log_probabilities = aten.log_softmax(self, dim)
    shape = self._array.shape
    if label_smoothing > 0:
        target = aten.add(mul_number(target, 1 - label_smoothing), _share(label_smoothing, shape[dim]))
    spread = None if weight is None else _per_class(weight, len(shape), dim)
    weighted = aten.mul(log_probabilities, target)
    if spread is not None:
        weighted = aten.mul(weighted, spread)
    if reduction == NONE:
        return -aten.sum(weighted, dim)
    total = -aten.sum(weighted)
    return div_number(total, self._array.size // max(shape[dim], 1)) if reduction == MEAN else total


def _smoothed_loss(log_probabilities, target, weight, reduction, ignore_index, label_smoothing, dim):
    """Some of the target's probability spread over all classes: a mix of two losses."""
    nll = aten.nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index)
    shape = log_probabilities._array.shape
    spread = log_probabilities if weight is None else aten.mul(log_probabilities, _per_class(weight, len(shape), dim))
    smooth = -aten.sum(spread, dim)
    ignored = aten.eq(target, ignore_index)
    smooth = aten.masked_fill_(smooth, ignored, 0.0)
    if reduction == MEAN:
        if weight is None:
            counted = aten.sum(aten.bitwise_not(ignored))
            smooth = aten.div(aten.sum(smooth), counted)
        else:
            # On the meta device the number of those that count is not known; it does not change the shape.
            counted = target if target._keys & META else aten.masked_select(target, aten.bitwise_not(ignored))
            weights = aten.gather(weight, 0, aten.flatten(counted))
            smooth = aten.div(aten.sum(smooth), aten.sum(weights))
    elif reduction == SUM:
        smooth = aten.sum(smooth)
    return aten.add(mul_number(nll, 1 - label_smoothing), mul_number(smooth, _share(label_smoothing, shape[dim])))
