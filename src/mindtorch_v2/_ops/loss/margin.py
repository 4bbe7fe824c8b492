"""Losses that ask for a margin between right and wrong answers."""

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Autocast, Batching, Promotion
from ..._dispatch.registry import aten, composite, op
from .._support.common import like_first, scalar_name
from .._support.elementwise import need_float
from .._support.flops import per_element
from .._support.half import in_float32
from ..pointwise.scalar_forms import add_number, number_minus, sub_number
from .regression import MEAN, NONE, grad_shape, loss_shape, mean_factor, reduced, reduced_in_ops

_SMALL = 1e-12

# ---------------------------------------------------------------- composed of ops


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> Tensor",
    autocast=Autocast.FLOAT32,
)
def hinge_embedding_loss(self, target, margin, reduction):
    """Distances of similar pairs (1), and how much dissimilar ones (-1) are closer than the margin.

    >>> F.hinge_embedding_loss(torch.tensor([0.5, 0.5]), torch.tensor([1.0, -1.0]))
    tensor(0.5000)
    """
    zeros = aten.zeros_like(self)
    apart = aten.clamp_min_(number_minus(margin, self), 0)
    apart = aten.where(aten.ne(target, 1), apart, zeros)
    close = aten.where(aten.ne(target, -1), self, zeros)
    return reduced_in_ops(aten.add(apart, close), reduction)


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor",
    autocast=Autocast.FLOAT32,
)
def margin_ranking_loss(input1, input2, target, margin, reduction):
    """How much the one that should rank higher fails to, by the margin.

    >>> F.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0]))
    tensor(1.)
    """
    difference = aten.sub(input1, input2)
    losses = aten.clamp_min_(add_number(aten.mul(aten.neg(target), difference), margin), 0)
    return reduced_in_ops(losses, reduction)


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, "
    "float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
    autocast=Autocast.FLOAT32,
)
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    """By how much the positive fails to be closer to the anchor than the negative, by the margin.

    >>> F.triplet_margin_loss(torch.tensor([[0.0]]), torch.tensor([[1.0]]), torch.tensor([[1.5]]))
    tensor(0.5000)
    """
    dims = [t._array.ndim for t in (anchor, positive, negative)]
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D "
            "inputs"
        )
    near = aten.pairwise_distance(anchor, positive, p, eps)
    far = aten.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = aten.min(far, aten.pairwise_distance(positive, negative, p, eps))
    return reduced_in_ops(aten.clamp_min(aten.sub(add_number(near, margin), far), 0), reduction)


def _check_cosine(input1, input2, target):
    a, b, t = input1._array, input2._array, target._array
    if t.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported; got target of shape {list(t.shape)}")
    if not a.ndim == b.ndim == t.ndim + 1:
        raise RuntimeError(
            f"{t.ndim}D target tensor expects {t.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(a.shape)} and {list(b.shape)}."
        )


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor",
    samples=lambda make: [(make(3, 4), make(3, 4), make.ints(2, 3) * 2 - 1)],
    autocast=Autocast.FLOAT32,
)
def cosine_embedding_loss(input1, input2, target, margin, reduction):
    """Pulls pairs with target 1 together and pushes pairs with target -1 apart, by their cosine.

    >>> F.cosine_embedding_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1.0]))
    tensor(1.)
    """
    _check_cosine(input1, input2, target)
    dim = target._array.ndim

    def inner(a, b):
        return aten.sum(aten.mul(a, b), dim)

    product = inner(input1, input2)
    first = add_number(inner(input1, input1), _SMALL)
    second = add_number(inner(input2, input2), _SMALL)
    cosine = aten.div(product, aten.sqrt_(aten.mul(first, second)))
    zeros = aten.zeros_like(cosine)
    close = number_minus(1, cosine)
    apart = aten.clamp_min_(sub_number(cosine, margin), 0)
    close = aten.where(aten.eq(target, 1), close, zeros)
    apart = aten.where(aten.eq(target, -1), apart, zeros)
    return reduced_in_ops(aten.add(close, apart), reduction)


# ---------------------------------------------------------------- of two classes, smooth


@op(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    promote=Promotion.SAME,
    promoted=("self", "target"),
    shape=loss_shape,
    samples=lambda make: [(make(3, 4), make.constant(3, 4)), (make(3, 4), make.constant(3, 4), NONE)],
    autocast=Autocast.FLOAT32,
    batching=Batching.LOSS,
    flops=per_element(4),
)
@in_float32
def soft_margin_loss(self, target, reduction):
    """The logistic loss for targets of 1 and -1.

    >>> F.soft_margin_loss(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor(0.3133)
    """
    losses = np.asarray(np.negative(np.multiply(self, target)))
    np.exp(losses, losses)
    return reduced(np.log1p(losses, losses), reduction)


soft_margin_loss.not_differentiable("target").vjp(
    self=lambda g, self, target, reduction: aten.soft_margin_loss_backward(g, self, target, reduction)
)


@op(
    "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    shape=grad_shape,
    samples=lambda make: [(make(3, 4), make(3, 4), make.constant(3, 4), NONE), (make(), make(3, 4), make.constant(3, 4), MEAN)],
)
@in_float32
def soft_margin_loss_backward(grad_output, self, target, reduction):
    slopes = np.asarray(np.multiply(self, target))
    np.exp(slopes, slopes)
    slopes += 1
    # exp(-ty) / (1 + exp(-ty)) is 1 / (1 + exp(ty)), which stays finite.
    np.divide(target, slopes, slopes)
    slopes *= -mean_factor(slopes.size, reduction)
    return np.multiply(slopes, grad_output, slopes)


def _soft_second(g, grad_output, self, target, reduction):
    s = aten.sigmoid(self * target)
    return g * grad_output * target * target * s * (1 - s) * mean_factor(g.numel(), reduction)


soft_margin_loss_backward.vjp(
    grad_output=lambda g, self, target, reduction: (
        g * aten.soft_margin_loss_backward(aten.ones((), dtype=g.dtype), self, target, reduction)
    ),
    self=_soft_second,
)

# ---------------------------------------------------------------- of many classes


def _rows(self):
    """The input with a row for each sample: a number is one sample of one class."""
    if self.ndim > 2 or (self.ndim and not self.shape[-1]):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}")
    return self if self.ndim == 2 else self.reshape(1, self.size)


def _labels(self, target, rows):
    """The class of each row."""
    if target.size != len(rows) or target.ndim > 1:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size [{len(rows)}], but got {list(target.shape)}. Input has shape "
            f"{list(self.shape)}."
        )
    return target.reshape(-1)


def _check_labels(labels, classes):
    _check_long(labels)
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        raise RuntimeError("target out of range")


def _violations(rows, labels, margin):
    """How much each wrong class comes closer to the right one than the margin; 0 for the right class itself."""
    at = np.arange(len(rows))
    violations = rows - rows[at, labels][:, None] + rows.dtype.type(float(margin))
    np.maximum(violations, 0, out=violations)
    violations[at, labels] = 0
    return violations


def _check_long(target):
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target)}")


def _check_multi_margin(p, weight, classes):
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    if weight is not None and weight.size != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")


@op(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
    "reduction=Mean) -> Tensor",
    samples=lambda make: [(make(3, 5), make.ints(5, 3)), (make(3, 5), make.ints(5, 3), 2, 0.5, make.constant(5))],
    shape=lambda self, target, p, margin, weight, reduction: (
        target._array.shape if reduction == NONE else (),
        self._array.dtype,
    ),
    autocast=Autocast.FLOAT32,
)
@in_float32
def multi_margin_loss(self, target, p, margin, weight, reduction):
    """By how much the right class fails to lead all others by the margin.

    >>> F.multi_margin_loss(torch.tensor([[0.1, 0.9]]), torch.tensor([1]))
    tensor(0.1000)
    """
    rows = _rows(self)
    labels = _labels(self, target, rows)
    _check_multi_margin(p, weight, rows.shape[1])
    need_float("multi_margin_loss_cpu_kernel", self)
    _check_labels(labels, rows.shape[1])
    violations = _violations(rows, labels, margin)
    if p == 2:
        violations *= violations
    losses = np.add.reduce(violations, 1)
    if weight is not None:
        losses *= weight[labels]
    losses /= rows.shape[1]
    return reduced(losses.reshape(target.shape), reduction)


multi_margin_loss.not_differentiable("weight").vjp(
    self=lambda g, self, target, p, margin, weight, reduction: aten.multi_margin_loss_backward(
        g, self, target, p, margin, weight, reduction
    )
)


@op(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
    "Tensor? weight=None, int reduction=Mean) -> Tensor",
    shape=lambda grad_output, self, *_: like_first(self),
    samples=lambda make: [],
)
@in_float32
def multi_margin_loss_backward(grad_output, self, target, p, margin, weight, reduction):
    rows = _rows(self)
    labels = _labels(self, target, rows)
    violations = _violations(rows, labels, margin)
    slopes = 2 * violations if p == 2 else (violations > 0).astype(rows.dtype)
    slopes[np.arange(len(rows)), labels] = -np.add.reduce(slopes, 1)
    scale = grad_output.reshape(-1, 1) * rows.dtype.type(mean_factor(len(rows), reduction) / rows.shape[1])
    if weight is not None:
        scale = scale * weight[labels][:, None]
    return (slopes * scale).reshape(self.shape)


# ---------------------------------------------------------------- of several right classes at once


def _rows_and_lists(self, target):
    """The input and the lists of classes, with a row for each sample."""
    rows = _rows(self)
    if target.shape != self.shape and not (self.size == target.size == 1 and self.ndim < 2 and target.ndim < 2):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}")
    _check_long(target)
    if target.size and (target.min() < -1 or target.max() >= rows.shape[1]):
        raise RuntimeError("argument #2 'target' is out of range")
    return rows, target.reshape(rows.shape)


def _listed(target):
    """Which entries of each row's list of classes count: those before the first -1."""
    return np.logical_and.accumulate(target >= 0, axis=1)


def _shortfalls(rows, target, listed, is_target):
    """(N, list, C): how much each class outside the list comes closer than 1 to each one in it."""
    right = np.take_along_axis(rows, np.where(listed, target, 0), 1)
    shortfalls = rows[:, None, :] - right[:, :, None] + 1
    np.maximum(shortfalls, 0, out=shortfalls)
    shortfalls *= listed[:, :, None]
    shortfalls *= (is_target == 0)[:, None, :]
    return shortfalls


@op(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
    node="MultilabelMarginLossBackward0",
    samples=lambda make: [(make(3, 5), make.ints(5, 3, 5), MEAN)],
    shape=lambda self, target, reduction: [
        (self._array.shape[:-1] if reduction == NONE else (), self._array.dtype),
        (target._array.shape, self._array.dtype),
    ],
    autocast=Autocast.FLOAT32,
)
@in_float32
def multilabel_margin_loss_forward(self, target, reduction):
    """What `multilabel_margin_loss` computes, and which classes were targets.

    >>> torch.ops.aten.multilabel_margin_loss_forward(torch.tensor([[0.1, 0.9]]), torch.tensor([[1, -1]]), 1)[0]
    tensor(0.1000)
    """
    rows, lists = _rows_and_lists(self, target)
    listed = _listed(lists)
    is_target = np.zeros(rows.shape, rows.dtype)
    row, entry = np.nonzero(listed)
    is_target[row, lists[row, entry]] = 1
    losses = np.add.reduce(_shortfalls(rows, lists, listed, is_target), (1, 2)) / rows.dtype.type(rows.shape[1])
    return reduced(losses.reshape(self.shape[:-1]), reduction), is_target.reshape(target.shape)


multilabel_margin_loss_forward.not_differentiable("result1").vjp(
    self=lambda g, self, target, reduction, result1: aten.multilabel_margin_loss_backward(g, self, target, reduction, result1)
)


@op(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
    "-> Tensor",
    shape=lambda grad_output, self, *_: like_first(self),
    samples=lambda make: [],
)
@in_float32
def multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target):
    rows, lists = _rows_and_lists(self, target)
    listed = _listed(lists)
    short = (_shortfalls(rows, lists, listed, is_target.reshape(rows.shape)) > 0).astype(rows.dtype)
    grad_input = np.add.reduce(short, 1)
    row, entry = np.nonzero(listed)
    np.subtract.at(grad_input, (row, lists[row, entry]), np.add.reduce(short, 2)[row, entry])
    grad_input *= grad_output.reshape(-1, 1) * rows.dtype.type(mean_factor(len(rows), reduction) / rows.shape[1])
    return grad_input.reshape(self.shape)


composite(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    lambda self, target, reduction: aten.multilabel_margin_loss_forward(self, target, reduction)[0],
    samples=lambda make: [(make(3, 5), make.ints(5, 3, 5))],
    autocast=Autocast.FLOAT32,
    doc="""The same for several right classes each, listed up to the first -1.

    >>> F.multilabel_margin_loss(torch.tensor([[0.1, 0.9]]), torch.tensor([[1, -1]]))
    tensor(0.1000)
    """,
)
