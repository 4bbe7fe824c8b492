"""Negative log likelihood and cross entropy: the losses of picking one class."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import getitem

import numpy as np

from ..._core.keys import AUTOGRAD
from ..._core.tensor import make_tensor
from ..._dispatch import entry_globals
from ..._dispatch.errors import torch_error
from ..._dispatch.registry import aten, composite, op
from .._support.blas_sums import exp_is_safe
from .._support.common import like_first, scalar_name
from .._support.elementwise import need_float
from .._support.half import in_float32
from ..nn.softmax import log_softmax, log_softmax_kernel
from ..pointwise.scalar_forms import div_number, mul_number
from .regression import MEAN, NONE, SUM

_F32 = np.dtype(np.float32)
_INT64 = np.dtype(np.int64)
_UINT8 = np.dtype(np.uint8)
_FEW = 64
_HANDFUL = 32
_ONES = [np.ones(n, np.float32) for n in range(_HANDFUL + 1)]
# So many sums of a handful of tame exponentials have a product that a Python number can hold.
_MOST_FACTORS = 16
_array, _exp, _log, _prod = np.array, np.exp, math.log, math.prod


def _picked(target, classes, ignore_index):
    """Each target's class, and which of them count: None if all do."""
    if target.dtype is not _INT64:
        if target.dtype != _INT64 and target.dtype != _UINT8:
            raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target)}")
        target = target.astype(_INT64)
    if not target.size:
        return target, None
    # Seen as unsigned, a negative class is a huge one, so that one maximum checks both bounds.
    if not 0 <= ignore_index < classes and np.maximum.reduce(target.view(np.uint64), None) < classes:
        return target, None
    counts = target != ignore_index
    safe = np.where(counts, target, 0)
    wrong = (safe < 0) | (safe >= classes)
    if wrong.any():
        raise IndexError(f"Target {safe[wrong][0]} is out of bounds.")
    return safe, counts


def _scale(safe, counts, weight, dtype):
    """The weight of each target, 0 where it does not count; None if all weigh 1."""
    if weight is None:
        return None if counts is None else counts.astype(dtype)
    scale = weight[safe]
    return scale if counts is None else scale * counts


def _check_weight(weight, classes, rows):
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
            if rows
            else "weight tensor should be defined either for all or no classes"
        )


def _likelihood(planes, target, weight, reduction, ignore_index):
    """The loss of (N, C, area) log probabilities for (N, area) classes, and the total weight."""
    kind = planes.dtype
    safe, counts = _picked(target, planes.shape[1], ignore_index)
    rows = np.arange(len(planes))[:, None]
    picked = planes[rows, safe, np.arange(planes.shape[2])] if planes.shape[2] != 1 else planes[:, :, 0][rows, safe]
    scale = _scale(safe, counts, weight, kind)
    if scale is not None:
        picked *= scale
    if reduction == NONE:
        return np.negative(picked, picked), np.zeros((), kind)
    total = kind.type(picked.size) if scale is None else np.add.reduce(scale, None)
    made = np.negative(np.add.reduce(picked, None))
    return np.divide(made, total) if reduction == MEAN else made, np.asarray(total)


def _spread(grad_output, shape, target, weight, reduction, ignore_index, total_weight):
    """The gradient of `_likelihood`: zero but for the picked elements. The shape is (N, C, area)."""
    kind = grad_output.dtype
    made = np.zeros(shape, kind)
    safe, counts = _picked(target, shape[1], ignore_index)
    scale = _scale(safe, counts, weight, kind)
    values = np.negative(grad_output)
    if reduction == MEAN:
        values = np.divide(values, total_weight)
    if scale is not None:
        values = np.multiply(values, scale)
    if counts is not None:  # where nothing counts at all, the mean divides by zero
        values = np.where(counts, values, 0)
    made[np.arange(shape[0])[:, None], safe, np.arange(shape[2])] = values
    return made


@lru_cache(maxsize=64)
def _row_starts(count, width):
    """Where rows begin in a flattened (count, width) array."""
    made = np.arange(0, count * width, max(width, 1))[:count]
    made.flags.writeable = False
    return made


def _plain_places(shape, target, ignore_index):
    """Flat positions of the picked elements where every target counts; None if some do not."""
    if len(shape) != 2 or target.ndim != 1 or target.dtype is not _INT64:
        return None
    count, width = shape
    if len(target) != count or not count or 0 <= ignore_index < width:
        return None
    if count <= _FEW:
        labels = target.tolist()
        if min(labels) < 0 or max(labels) >= width:
            return None
    elif np.maximum.reduce(target.view(np.uint64)) >= width:
        return None
    return np.add(_row_starts(count, width), target)


def _total(values):
    """The sum of an array; for a handful of values Python is quicker at it, and adds in double precision."""
    return sum(values.tolist()) if values.size <= _FEW else np.add.reduce(values, None)


def _handful_total(rows, target, ignore_index):
    """The sum of the picked elements of a few float32 rows, as a number; None where there are more of them, where some do
    not count, or something is wrong. Of a handful of elements Python picks some quicker than NumPy."""
    if rows.size > _HANDFUL or target.dtype is not _INT64 or target.ndim != 1 or rows.ndim != 2:
        return None
    listed, labels = rows.tolist(), target.tolist()
    if len(listed) != len(labels) or not labels or min(labels) < 0 or 0 <= ignore_index < len(listed[0]):
        return None
    try:
        return sum(map(getitem, listed, labels))
    except IndexError:
        return None  # the general path says which label it is


# ---------------------------------------------------------------- rows: (N, C) and (N,), or (C,) and a single class


def _check_rows(self, target):
    if self.ndim not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if self.ndim == 1 and target.ndim == 1 and len(target) != 1:
        raise torch_error(ValueError(f"For 1D input, 1D target must have size 1, but got target size: {len(target)}"))
    if self.ndim == 2 and target.ndim == 1 and self.shape[0] != target.shape[0]:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)}, target: {list(target.shape)})")


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
)
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    if reduction != NONE and weight is None and self.dtype is _F32:
        count = target.size
        total = _handful_total(self, target, ignore_index)
        if total is not None:
            return _array(-total / count if reduction == MEAN else -total, _F32), _array(count, _F32)
        places = _plain_places(self.shape, target, ignore_index)
        if places is not None:
            total = -_total(self.take(places))
            return _array(total / count if reduction == MEAN else total, _F32), _array(count, _F32)
    return _nll_loss(self, target, weight, reduction, ignore_index)


@in_float32
def _nll_loss(self, target, weight, reduction, ignore_index):
    need_float("nll_loss_out_frame", self)
    _check_rows(self, target)
    _check_weight(weight, self.shape[-1], True)
    made, total = _likelihood(self.reshape(-1, self.shape[-1], 1), target.reshape(-1, 1), weight, reduction, ignore_index)
    return (made.reshape(target.shape) if reduction == NONE else made), total


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
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    if reduction != NONE and weight is None and self.dtype is _F32 and grad_output.dtype is _F32:
        places = _plain_places(self.shape, target, ignore_index)
        if places is not None:
            made = np.zeros(self.size, _F32)
            made[places] = np.negative(grad_output) / total_weight if reduction == MEAN else np.negative(grad_output)
            return made.reshape(self.shape)
    return _nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)


@in_float32
def _nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    _check_rows(self, target)
    if reduction == NONE:
        grad_output = grad_output.reshape(-1, 1)
    return _spread(
        grad_output,
        (self.size // max(self.shape[-1], 1), self.shape[-1], 1),
        target.reshape(-1, 1),
        weight,
        reduction,
        ignore_index,
        total_weight,
    ).reshape(self.shape)


nll_loss_backward.vjp(
    grad_output=lambda g, target, weight, reduction, ignore_index: aten.nll_loss(g, target, weight, reduction, ignore_index)
)

_nll_loss_forward = nll_loss_forward.call
nll_loss = composite(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor",
    lambda self, target, weight, reduction, ignore_index: _nll_loss_forward(self, target, weight, reduction, ignore_index)[0],
    samples=lambda make: [(make(3, 5), make.ints(5, 3))],
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
    _check_planes(self, target)
    _check_weight(weight, self.shape[1], False)
    made, total = _likelihood(
        self.reshape(*self.shape[:2], -1), target.reshape(len(target), -1), weight, reduction, ignore_index
    )
    return (made.reshape(target.shape) if reduction == NONE else made), total


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
    if reduction == NONE:
        grad_output = grad_output.reshape(len(target), -1)
    area = self.shape[2] * self.shape[3]
    return _spread(
        grad_output, (*self.shape[:2], area), target.reshape(len(target), area), weight, reduction, ignore_index, total_weight
    ).reshape(self.shape)


nll_loss2d_backward.vjp(
    grad_output=lambda g, target, weight, reduction, ignore_index: aten.nll_loss2d(g, target, weight, reduction, ignore_index)
)

composite(
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor",
    lambda self, target, weight, reduction, ignore_index: aten.nll_loss2d_forward(
        self, target, weight, reduction, ignore_index
    )[0],
    samples=lambda make: [(make(2, 5, 3, 3), make.ints(5, 2, 3, 3))],
)

# ---------------------------------------------------------------- any number of dims


@composite(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100) -> Tensor",
    samples=lambda make: [(make(2, 5, 3), make.ints(5, 2, 3))],
)
def nll_loss_nd(self, target, weight, reduction, ignore_index):
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
    made = aten.nll_loss2d(flat, target, weight, reduction, ignore_index)
    return aten.view(made, wanted) if reduction == NONE else made


_log_softmax, _nll_loss_nd = log_softmax.call, nll_loss_nd.call
_log_softmax_data, _nll_forward = log_softmax_kernel.call, nll_loss_forward.call
_log_softmax_kernel, _nll_kernel = log_softmax_kernel.kernel, nll_loss_forward.kernel


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
    "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    samples=lambda make: [(make(3, 5), make.ints(5, 3), make.constant(5), MEAN, -100, 0.1), (make(3, 5), make(3, 5))],
)
def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    labels = target._array
    shape = self._array.shape
    if (
        weight is None
        and label_smoothing == 0
        and labels.ndim == 1
        and len(shape) == 2
        and labels.size == shape[0]
        and not entry_globals.observers_active
    ):
        return _plain_loss(self, target, reduction, ignore_index)
    dim = 0 if len(shape) == 1 else 1
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if weight is not None and weight._array.shape != shape[dim : dim + 1]:
        raise RuntimeError(
            "cross_entropy: weight tensor should be defined either for all "
            f"{shape[dim]} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if shape == labels.shape:
        return _probability_loss(self, target, weight, reduction, ignore_index, label_smoothing, dim)
    log_probabilities = _log_softmax(self, dim)
    if label_smoothing > 0:
        return _smoothed_loss(log_probabilities, target, weight, reduction, ignore_index, label_smoothing, dim)
    return _nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index)


def _plain_loss(self, target, reduction, ignore_index):
    """The loss of rows of scores when there is nobody to see the ops in between: their kernels, and their nodes."""
    keys, scores, labels = self._keys | target._keys, self._array, target._array
    if keys > AUTOGRAD:
        return _nll_forward(_log_softmax_data(self, 1, False), target, None, reduction, ignore_index)[0]
    if not keys and reduction != NONE and (total := _handful_loss(scores, labels, ignore_index)) is not None:
        return make_tensor(_array(total / labels.size if reduction == MEAN else total, _F32))
    likely = make_tensor(_log_softmax_kernel(scores, 1, False))
    if keys:
        entry_globals.attach(log_softmax_kernel, (self, 1, False), likely)
    loss, total = _nll_kernel(likely._array, labels, None, reduction, ignore_index)
    made = make_tensor(loss if loss.__class__ is np.ndarray else np.asarray(loss))
    if keys:
        entry_globals.attach_first(nll_loss_forward, (likely, target, None, reduction, ignore_index), (made, total))
    return made


def _handful_loss(scores, labels, ignore_index):
    """The sum of the losses of a few rows of scores, as a number and without their log probabilities; None for others.

    The sum of log(sum(exp(x))) over the rows is the logarithm of a product, which is one number's.
    """
    if scores.dtype is not _F32 or labels.size > _MOST_FACTORS:
        return None
    picked = _handful_total(scores, labels, ignore_index)
    if picked is None or not exp_is_safe(scores):
        return None
    return _log(_prod(_exp(scores).dot(_ONES[scores.shape[1]]).tolist())) - picked


def _per_class(weight, ndim, dim):
    shape = [1] * ndim
    shape[dim] = -1
    return aten.view(weight, shape)


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
        target = aten.add(mul_number(target, 1 - label_smoothing), label_smoothing / shape[dim])
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
            classes = aten.flatten(aten.masked_select(target, aten.bitwise_not(ignored)))
            weights = aten.gather(weight, 0, classes)
            smooth = aten.div(aten.sum(smooth), aten.sum(weights))
    elif reduction == SUM:
        smooth = aten.sum(smooth)
    return aten.add(mul_number(nll, 1 - label_smoothing), mul_number(smooth, label_smoothing / shape[dim]))
