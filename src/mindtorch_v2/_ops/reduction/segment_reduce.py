"""Sums, means, products and extremes of segments of a dim: `torch.segment_reduce`."""

from __future__ import annotations

import math

import numpy as np

from ..._dispatch.registry import aten, op
from .._support.common import no_kernel
from ..creation.copy import converted

_INTS = (np.dtype(np.int64), np.dtype(np.int32))
# reduction -> (ufunc, what nothing reduces to)
_REDUCTIONS = {
    "sum": (np.add, 0.0),
    "mean": (np.add, 0.0),
    "prod": (np.multiply, 1.0),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
    "amax": (np.maximum, -np.inf),
    "amin": (np.minimum, np.inf),
}


def _reduction(reduce):
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return _REDUCTIONS[reduce]


def _bounds(data, lengths, offsets, axis):
    """(starts, ends) of the segments in rows of the dim, one row of segments for each position of the dims before it."""
    n = data.shape[axis]
    if offsets is not None:
        rows = offsets.reshape(-1, offsets.shape[-1]).astype(np.int64, copy=False)
        return rows[:, :-1].clip(0, n), rows[:, 1:].clip(0, n)
    ends = np.add.accumulate(lengths.reshape(-1, lengths.shape[-1]), 1, np.int64)
    starts = ends - lengths.reshape(ends.shape)
    return starts.clip(0, n), ends.clip(0, n)


def _flat(data, axis):
    """A copy of the data as rows, all dims before the segments' in one, with one row behind them for a last end."""
    wide = data.dtype if data.dtype.kind == "f" and data.itemsize >= 4 else np.dtype(np.float32)
    width = math.prod(data.shape[axis + 1 :])
    rows = np.zeros((math.prod(data.shape[: axis + 1]) + 1, width), wide)
    rows[:-1] = data.reshape(-1, width) if width else data.reshape(rows.shape[0] - 1, 0)
    return rows


def _check(data, lengths, indices, offsets, axis, unsafe):
    if data.dtype.kind not in "fV":
        raise no_kernel("_segment_reduce_cpu", data)
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    bounds, label = (offsets, "offsets") if offsets is not None else (lengths, "lengths")
    if bounds is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if bounds.dtype not in _INTS:
        raise no_kernel(f"_segment_reduce_{label}_cpu_kernel1", bounds)
    if axis != bounds.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {label} but got {axis}.")
    if axis >= data.ndim or bounds.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): Expected {label} of size {list(bounds.shape)} to agree with data of size "
            f"{list(data.shape)} in the dims before dim {axis}"
        )
    if offsets is None and not unsafe:
        if lengths.size and lengths.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if (lengths.sum(-1) != data.shape[axis]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )


def _reduced_shape(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    array = data._array
    segments = lengths._array.shape[-1] if offsets is None else offsets._array.shape[-1] - 1
    return (*array.shape[:axis], segments, *array.shape[axis + 1 :]), array.dtype


@op(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, "
    "bool unsafe=False, Scalar? initial=None) -> Tensor",
    shape=_reduced_shape,
    samples=lambda make: [
        (make(5, 2), name, {"lengths": make.ints(1, 1).new_tensor([2, 3])}) for name in ("sum", "mean", "prod", "max")
    ],
    out=False,
)
def segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    """Sums, means, products or extremes of consecutive segments of a dim.

    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([1, 2]))
    tensor([1., 5.])
    """
    function, empty = _reduction(reduce)
    axis = axis + data.ndim if axis < 0 else axis
    _check(data, lengths, indices, offsets, axis, unsafe)
    starts, ends = _bounds(data, lengths, offsets, axis)
    shape = (*data.shape[:axis], starts.shape[1], *data.shape[axis + 1 :])
    rows = _flat(data, axis)
    begin = np.arange(len(starts))[:, None] * data.shape[axis]
    # reduceat runs from each place to the next one given, so that every second result is a segment's.
    places = np.stack([starts + begin, ends + begin], -1).reshape(-1)
    reduced = function.reduceat(rows, places, 0)[::2] if places.size else rows[:0]
    count = (ends - starts).reshape(-1, 1)
    reduced = np.where(count > 0, reduced, empty)
    if initial is not None:
        reduced = function(reduced, initial)
    if reduce == "mean":
        with np.errstate(invalid="ignore"):
            reduced = np.where(count > 0, reduced / np.maximum(count, 1), np.nan if initial is None else initial)
    return reduced.reshape(shape).astype(data.dtype)


segment_reduce.vjp(
    data=lambda g, result, data, reduce, lengths, offsets, axis, initial: aten._segment_reduce_backward(
        g, result, data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
    )
)


@op(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, "
    "Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda grad, output, data, *_: (data._array.shape, data._array.dtype),
)
def segment_reduce_backward(grad, output, data, reduce, lengths, offsets, axis, initial):
    _reduction(reduce)
    axis = axis + data.ndim if axis < 0 else axis
    starts, ends = _bounds(data, lengths, offsets, axis)
    rows = _flat(data, axis)[:-1]
    width = rows.shape[1]
    grads, results = (converted(one.reshape(-1, width), rows.dtype) for one in (grad, output))
    grad_data = np.zeros_like(rows)
    first = np.arange(len(starts))[:, None] * data.shape[axis]
    places = zip((starts + first).ravel().tolist(), (ends + first).ravel().tolist(), strict=True)
    for segment, (start, end) in enumerate(places):
        if start < end:
            part = slice(start, end)
            grad_data[part] = _SHARES[reduce](grads[segment], results[segment], rows[part], 1.0 if initial is None else initial)
    return grad_data.reshape(data.shape).astype(data.dtype)


def _extreme_share(g, result, part, initial):
    """Elements that are the result share its gradient; so do all that are NaN."""
    hit = (part == result) | np.isnan(part)
    return hit * g / np.maximum(hit.sum(0), 1)


def _prod_share(g, result, part, initial):
    """An element's gradient is the product of the others; where it is zero or NaN that cannot be had by division."""
    direct = (part != 0) & ~np.isnan(part)
    share = np.where(direct, g * result / np.where(direct, part, 1), 0)
    for place, column in np.argwhere(~direct):
        others = np.delete(part[:, column], place)
        share[place, column] = g[column] * initial * others.prod(dtype=part.dtype)
    return share


_SHARES = {
    "sum": lambda g, result, part, initial: np.broadcast_to(g, part.shape),
    "mean": lambda g, result, part, initial: np.broadcast_to(g / len(part), part.shape),
    "prod": _prod_share,
    "max": _extreme_share,
    "min": _extreme_share,
    "amax": _extreme_share,
    "amin": _extreme_share,
}


FUNCTIONS = {"_segment_reduce": segment_reduce.call}
