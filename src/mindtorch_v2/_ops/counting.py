"""Counting: how many are not zero, how many of each value, how many in each bin."""

from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._dispatch.registry import op
from ._common import normal_dims, reduced_shape

_INT64 = np.dtype(np.int64)


def _count(self, dims):
    return np.asarray(np.count_nonzero(self, axis=dims)).astype(np.int64, copy=False)


op("count_nonzero(Tensor self, int? dim=None) -> Tensor",
   lambda self, dim: _count(self, None if dim is None or not self.ndim else normal_dims((dim,), self.ndim)),
   nondiff=True,
   shape=lambda self, dim: (reduced_shape(self._array.shape, None if dim is None else (dim,), False), _INT64),
   samples=lambda make: [(make.ints(3, 3, 4),), (make.ints(3, 3, 4), 1)])
op("count_nonzero.dim_IntList(Tensor self, int[1] dim) -> Tensor",
   lambda self, dim: _count(self, normal_dims(dim, self.ndim) or None), nondiff=True,
   shape=lambda self, dim: (reduced_shape(self._array.shape, dim, False), _INT64),
   samples=lambda make: [(make.ints(3, 3, 4), (0, 1))])


@op("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", nondiff=True,
    samples=lambda make: [(make.ints(5, 12),), (make.ints(5, 12), None, 8)])
def bincount(self, weights, minlength):
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{dt.from_numpy(self.dtype).scalar_name}'")
    if self.ndim != 1 or self.size and self.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    made = np.bincount(self, weights, minlength)
    if weights is None:
        return made.astype(np.int64, copy=False)
    return made.astype(np.float32) if weights.dtype == np.float32 else made


# ---------------------------------------------------------------- histograms


def _bounds(self, low, high, name):
    """The range asked for, that of the data if it is empty, and one around it if that is a single point."""
    if low == high and self.size:
        low, high = float(self.min()), float(self.max())
    plain = name == "torch.histc"
    if not (np.isfinite(low) and np.isfinite(high)):
        what = "range of" if plain else "dimension 0's range"
        raise RuntimeError(f"{name}: {what} [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: max must be larger than min" if plain else
                           f"{name}: min should not exceed max, but got min {low:g} max {high:g} for dimension 0")
    margin = 1 if plain else 0.5
    return (low - margin, high + margin) if low == high else (low, high)


@op("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", nondiff=True,
    shape=lambda self, bins, min, max: ((bins,), self._array.dtype))
def histc(self, bins, min, max):
    if self.dtype.kind not in "fV":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{dt.from_numpy(self.dtype).scalar_name}'")
    _check_bins(bins)
    low, high = _bounds(self, float(min), float(max), "torch.histc")
    return _histogram(self.reshape(-1), None, bins, low, high).astype(self.dtype)


def _check_bins(bins):
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")


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


def _check_histogram(self, weight):
    if self.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{dt.from_numpy(self.dtype).scalar_name}'")
    if weight is not None and weight.size != self.size:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                           f"excluding its innermost dimension, but got input with shape [{self.size}, 1] and weight with "
                           f"shape [{weight.size}]")
    if weight is not None and weight.dtype != self.dtype:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the "
                           f"same dtype, but got input({dt.from_numpy(self.dtype).cpp_name}), and "
                           f"weight({dt.from_numpy(weight.dtype).cpp_name})")


@op("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)", shape=_histogram_shapes, samples=lambda make: [(make(12), 4)])
def histogram(self, bins, range, weight, density):
    _check_histogram(self, weight)
    _check_bins(bins)
    if range is not None and len(range) != 2:
        raise RuntimeError("torch.histogramdd: for a 1-dimensional histogram range should have 2 elements, but got "
                           f"{len(range)}")
    if range is None:
        low, high = _bounds(self, 0.0, 0.0, "torch.histogramdd") if self.size else (0.0, 1.0)
    else:
        low, high = _bounds(self[:0], float(range[0]), float(range[1]), "torch.histogramdd")
    edges = np.linspace(low, high, bins + 1)
    flat = None if weight is None else weight.reshape(-1)
    counts = _histogram(self.reshape(-1).astype(np.float64), flat, bins, low, high)
    return _density(counts, edges, density).astype(self.dtype), edges.astype(self.dtype)


@op("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
    "-> (Tensor hist, Tensor bin_edges)", shape=_histogram_shapes,
    samples=lambda make: [(make(12).detach(), (make(4) / 4).cumsum(0).detach())])
def histogram_edges(self, bins, weight, density):
    _check_histogram(self, weight)
    if bins.dtype != self.dtype:
        raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
                           f"dtype {dt.from_numpy(self.dtype).cpp_name} and bins for dimension 0 with dtype "
                           f"{dt.from_numpy(bins.dtype).cpp_name}")
    if bins.ndim != 1:
        raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {bins.ndim} dimensions in the "
                           "bins tensor for dimension 0")
    if not bins.size:
        raise RuntimeError("torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins "
                           "tensor for dimension 0")
    _check_bins(bins.size - 1)
    counts, _ = np.histogram(self.reshape(-1), bins, weights=None if weight is None else weight.reshape(-1))
    return _density(counts, bins, density).astype(self.dtype), bins.copy()
