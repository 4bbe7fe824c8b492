"""Connectionist temporal classification: the likelihood of a label sequence under every alignment.

A label sequence is read with a blank before, between and after its labels. `alpha[t, s]` is the log probability of
all paths that are at place s of that sequence after t steps. Both passes step through time and take all samples and
places of a step at once.
"""

from __future__ import annotations

import numpy as np

from ..._core.tensor import make_tensor
from ..._dispatch.facts import Autocast
from ..._dispatch.registry import aten, composite, op
from .._support.common import sums_by_place
from .regression import MEAN, NONE, SUM

_NEVER = -np.inf


def _check(log_probs, targets, input_lengths, target_lengths, blank):
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument "
            "#1 'log_probs' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    steps, batch, classes = log_probs.shape
    if log_probs.dtype.name not in ("float32", "float64"):
        raise RuntimeError(f"\"ctc_loss_cpu\" not implemented for '{log_probs.dtype.name}'")
    if targets.dtype.name not in ("int32", "int64"):
        raise RuntimeError("Expected tensor for argument #2 'targets' to have one of the following scalar types: Int, Long")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
        if any(n < 0 for n in lengths):
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {min(lengths)} (while "
                "checking arguments for ctc_loss_allocate_outputs)"
            )
    longest = max(target_lengths, default=0)
    if any(n > steps for n in input_lengths):
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {max(input_lengths)} "
            "(while checking arguments for ctc_loss_allocate_outputs)"
        )
    if targets.ndim == 1 and len(targets) != sum(target_lengths):
        raise RuntimeError(
            f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size "
            f"{len(targets)} for argument #2 'targets' (while checking arguments for "
            "ctc_loss_allocate_outputs)"
        )
    if targets.ndim == 2 and (len(targets) != batch or targets.shape[1] < longest):
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size "
            f"{targets.shape[1]} for argument #2 'targets' (while checking arguments for "
            "ctc_loss_allocate_outputs)"
        )


def _places(targets, target_lengths, blank):
    """(N, 2 S + 1) classes with their blanks, and where a step may pass over the blank before a place."""
    lengths = np.asarray(target_lengths, np.int64)
    longest = int(lengths.max()) if lengths.size else 0
    inside = np.arange(longest) < lengths[:, None]
    labels = np.full((len(lengths), longest), blank, np.int64)
    labels[inside] = targets if targets.ndim == 1 else targets[:, :longest][inside]
    places = np.full((len(lengths), 2 * longest + 1), blank, np.int64)
    places[:, 1::2] = labels
    jumps = np.zeros(places.shape, bool)
    jumps[:, 2:] = (places[:, 2:] != blank) & (places[:, 2:] != places[:, :-2])
    valid = np.arange(places.shape[1]) < 2 * lengths[:, None] + 1
    return places, jumps, valid, lengths


def _log_sum(*terms):
    """log of a sum of exponentials, element by element; nowhere nan, even where all terms are -inf."""
    most = terms[0]
    for term in terms[1:]:
        most = np.maximum(most, term)
    base = np.where(most == _NEVER, 0, most)
    total = np.exp(terms[0] - base)
    for term in terms[1:]:
        total += np.exp(term - base)
    with np.errstate(divide="ignore"):
        return np.log(total, total) + base


def _shifted(row, by):
    """The row shifted by some places, filled up with log 0."""
    shifted = np.full(row.shape, _NEVER, row.dtype)
    if by > 0:
        shifted[:, by:] = row[:, :-by]
    else:
        shifted[:, :by] = row[:, -by:]
    return shifted


def _emissions(log_probs, places):
    """(T, N, places): the log probability of each place's class at each step."""
    return np.take_along_axis(log_probs, places[None], 2)


def _likelihood(alpha, lengths, input_lengths):
    """-log of what the last step holds at the last label and the blank after it."""
    rows = np.arange(len(lengths))
    last = alpha[rows, np.maximum(input_lengths, 1) - 1]
    end = last[rows, 2 * lengths]
    before = np.where(lengths > 0, last[rows, np.maximum(2 * lengths - 1, 0)], _NEVER)
    losses = -_log_sum(end, before)
    return np.where(input_lengths > 0, losses, np.where(lengths > 0, np.inf, 0)).astype(alpha.dtype)


def _ctc_shape(log_probs, targets, input_lengths, target_lengths, *_):
    steps, batch, _classes = log_probs._array.shape
    kind = log_probs._array.dtype
    return [((batch,), kind), ((batch, steps, 2 * max(target_lengths, default=0) + 1), kind)]


@op(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "bool zero_infinity=False) -> (Tensor, Tensor)",
    shape=_ctc_shape,
    samples=lambda make: [],
)
def ctc_loss_kernel(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    places, jumps, _, lengths = _places(targets, target_lengths, blank)
    if places.size and not (places.min() >= 0 and places.max() < log_probs.shape[2]):
        wrong = places[(places < 0) | (places >= log_probs.shape[2])][0]
        raise IndexError(f"ctc_loss: target {wrong} is out of bounds for {log_probs.shape[2]} classes")
    emitted = _emissions(log_probs, places)
    steps = len(log_probs)
    alpha = np.full((places.shape[0], steps, places.shape[1]), _NEVER, log_probs.dtype)
    if steps:
        alpha[:, 0, :2] = emitted[0, :, :2]
        alpha[lengths == 0, 0, 1:2] = _NEVER
    for t in range(1, steps):
        row = alpha[:, t - 1]
        reached = _log_sum(row, _shifted(row, 1), np.where(jumps, _shifted(row, 2), _NEVER))
        np.add(reached, emitted[t], alpha[:, t])
    return _likelihood(alpha, lengths, np.asarray(input_lengths, np.int64)), alpha


@ctc_loss_kernel.not_differentiable("result1").vjp
def _(g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, result0, result1):
    return aten._ctc_loss_backward(
        g, log_probs, targets, input_lengths, target_lengths, result0, result1, blank, zero_infinity
    ), None


@op(
    "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
    shape=lambda grad, log_probs, *_: (log_probs._array.shape, log_probs._array.dtype),
    samples=lambda make: [],
)
def ctc_loss_backward(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity
):
    """The gradient for normalized log probabilities: the probabilities less the expected share of each class."""
    places, jumps, valid, lengths = _places(targets, target_lengths, blank)
    input_lengths = np.asarray(input_lengths, np.int64)
    emitted = _emissions(log_probs, places)
    steps, batch, classes = log_probs.shape
    ends = np.where(valid & (np.arange(places.shape[1]) >= 2 * lengths[:, None] - 1), 0, _NEVER).astype(log_probs.dtype)
    onward = np.zeros(jumps.shape, bool)
    onward[:, :-2] = jumps[:, 2:]
    demand = np.empty((steps, batch, places.shape[1]), log_probs.dtype)
    row = np.full(ends.shape, _NEVER, log_probs.dtype)
    for t in reversed(range(steps)):
        # `row` is the log probability of the labels that remain after step t; at a sample's last step none may remain.
        row = np.where((input_lengths == t + 1)[:, None], ends, row)
        demand[t] = row
        after = row + emitted[t]
        row = _log_sum(after, _shifted(after, -1), np.where(onward, _shifted(after, -2), _NEVER))
    demand += log_alpha.swapaxes(0, 1)
    finite = np.isfinite(neg_log_likelihood)
    with np.errstate(invalid="ignore", over="ignore"):
        demand += neg_log_likelihood[:, None]
        share = np.exp(demand, demand)
    share[:, ~finite] = 0
    where = (np.arange(steps * batch) * classes).reshape(steps, batch, 1) + places
    wanted = sums_by_place(where.reshape(-1), share.reshape(-1), steps * batch * classes).reshape(log_probs.shape)
    grad_input = np.exp(log_probs) - wanted.astype(log_probs.dtype)
    if not zero_infinity:
        grad_input[:, ~finite] = np.nan
    grad_input *= grad[:, None]
    dead = np.arange(steps)[:, None] >= input_lengths
    if zero_infinity:
        dead = dead | ~finite
    grad_input[dead] = 0
    return grad_input


def _lengths(values):
    return tuple(int(n) for n in values)


def _ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    batched = log_probs._array.ndim == 3
    if not batched:
        log_probs = aten.unsqueeze(log_probs, 1)
    losses = aten._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)[0]
    if zero_infinity:
        nothing = aten.zeros((), dtype=losses.dtype)
        losses = aten.where(aten.eq(losses, float("inf")), nothing, losses)
    if reduction == MEAN:
        counts = aten.clamp_min(make_tensor(np.asarray(target_lengths, losses._array.dtype)), 1)
        return aten.mean(aten.div(losses, counts))
    if reduction == SUM:
        return aten.sum(losses)
    return losses if batched or reduction != NONE else aten.squeeze(losses, 0)


@composite(
    "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
    "int reduction=Mean, bool zero_infinity=False) -> Tensor",
    samples=lambda make: [],
    autocast=Autocast.FLOAT32,
)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """The negative log likelihood of label sequences under every alignment with the inputs.

    >>> F.ctc_loss(torch.zeros(3, 1, 2).log_softmax(2), torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1]))
    tensor(0.2877)
    """
    return _ctc(log_probs, targets, _lengths(input_lengths), _lengths(target_lengths), blank, reduction, zero_infinity)


@composite(
    "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int "
    "blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor",
    samples=lambda make: [],
    autocast=Autocast.FLOAT32,
)
def ctc_loss_of_tensors(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths._array.dtype.kind not in "iu":
            raise RuntimeError(f"{name} must be integral")
    inputs, labels = (_lengths(lengths._array.reshape(-1)) for lengths in (input_lengths, target_lengths))
    return _ctc(log_probs, targets, inputs, labels, blank, reduction, zero_infinity)
