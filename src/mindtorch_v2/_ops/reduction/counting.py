"""Counting: how many are not zero, how many of each value, how many in each bin."""

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Batching
from ..._dispatch.registry import op
from .._support.common import no_kernel, normal_dim, normal_dims, reduced_shape
from .._support.elementwise import need_float
from ._histogram_checks import bounds, check_bins, check_edges, check_weight

_INT64 = np.dtype(np.int64)
_MOST_BINS = np.iinfo(np.int64).max // 8


def _count(self, dims):
    if self.dtype.kind == "W":  # complex32: its conversion to bools would lose the imaginary parts
        self = self.astype(np.complex64)
    return np.asarray(np.count_nonzero(self, axis=dims)).astype(np.int64, copy=False)


def _no_dim(dim):
    """None, after a dim of a number without dims was checked."""
    normal_dim(dim, 0)


op(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    lambda self, dim: _count(self, None if dim is None else normal_dims((dim,), self.ndim) if self.ndim else _no_dim(dim)),
    nondiff=True,
    shape=lambda self, dim: (reduced_shape(self._array.shape, None if dim is None else (dim,), False), _INT64),
    samples=lambda make: [(make.ints(3, 3, 4),), (make.ints(3, 3, 4), 1)],
    batching=Batching.REDUCTION,
    doc="""How many elements are not zero, in all or along dims.

    >>> torch.count_nonzero(torch.tensor([0, 3, 0, 5]))
    tensor(2)
    """,
    out=False,
)
op(
    "count_nonzero.dim_IntList(Tensor self, int[1] dim) -> Tensor",
    lambda self, dim: _count(self, normal_dims(dim, self.ndim) or None),
    nondiff=True,
    shape=lambda self, dim: (reduced_shape(self._array.shape, dim, False), _INT64),
    samples=lambda make: [(make.ints(3, 3, 4), (0, 1))],
    batching=Batching.REDUCTION,
    out=False,
)


@op(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    nondiff=True,
    samples=lambda make: [(make.ints(5, 12),), (make.ints(5, 12), None, 8)],
    out=False,
)
def bincount(self, weights, minlength):
    """How often each non-negative integer occurs, or the sum of its weights.

    >>> torch.bincount(torch.tensor([0, 1, 1, 3]))
    tensor([1, 2, 0, 1])
    """
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.dtype.kind not in "iu":
        raise no_kernel("bincount_cpu", self)
    if self.ndim != 1 or (self.size and self.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if self.size and self.max() > _MOST_BINS:  # np.bincount overflows
        raise RuntimeError(f"Storage size calculation overflowed with sizes=[{int(self.max()) + 1}]")
    counts = np.bincount(self, weights, minlength)
    if weights is None:
        return counts.astype(np.int64, copy=False)
    return counts.astype(np.float32) if weights.dtype == np.float32 else counts


# ---------------------------------------------------------------- histograms


def _histc_bounds(self, low, high):
    """The range asked for, that of the data if it is empty, and one around it if that is a single point."""
    if low == high and self.size:
        low, high = float(self.min()), float(self.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return (low - 1, high + 1) if low == high else (low, high)


@op(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    nondiff=True,
    shape=lambda self, bins, min, max: ((bins,), self._array.dtype),
)
def histc(self, bins, min, max):
    """How many elements lie in each of `bins` intervals of equal width.

    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    need_float("histogram_cpu", self)
    check_bins(bins)
    low, high = _histc_bounds(self, float(min), float(max))
    return _histogram(self.reshape(-1), None, bins, low, high).astype(self.dtype)


def _histogram(values, weights, bins, low, high):
    """Counts in bins of equal width, the last one closed; values outside count nowhere."""
    inside = (values >= low) & (values <= high)
    places = ((values[inside] - low) * (bins / (high - low))).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), None if weights is None else weights[inside], bins)


def _histogram_shapes(self, bins, *_rest):
    count = bins if isinstance(bins, int) else bins._array.shape[0] - 1
    return [((count,), self._array.dtype), ((count + 1,), self._array.dtype)]


def _density(counts, edges, density):
    return counts / (counts.sum() * np.diff(edges)) if density else counts


def _as_points(self, weight):
    """A histogram of one dim is one of points with a single coordinate: (points, weight)."""
    return self.reshape(-1, 1), None if weight is None else weight.reshape(-1)


@op(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)",
    shape=_histogram_shapes,
    samples=lambda make: [(make(12), 4)],
)
def histogram(self, bins, range, weight, density):
    """A histogram of all elements, and the edges of its bins.

    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 4.0))
    torch.return_types.histogram(
    hist=tensor([2., 1.]),
    bin_edges=tensor([0., 2., 4.]))
    """
    points, weight = _as_points(self, weight)
    check_bins(bins)
    ((low, high),) = bounds(points, range)
    check_weight(points, weight)
    edges = np.linspace(low, high, bins + 1)
    counts = _histogram(points[:, 0].astype(np.float64), weight, bins, low, high)
    return _density(counts, edges, density).astype(self.dtype), edges.astype(self.dtype)


@op(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)",
    shape=_histogram_shapes,
    samples=lambda make: [(make(12).detach(), (make(4) / 4).cumsum(0).detach())],
)
def histogram_edges(self, bins, weight, density):
    points, weight = _as_points(self, weight)
    check_weight(points, weight)
    check_edges(points, [bins])
    counts, _ = np.histogram(points[:, 0], bins, weights=weight)
    return _density(counts, bins, density).astype(self.dtype), bins.copy()
