"""`torch.histogramdd`: how many points lie in each cell of a grid of bins; declared when it is first asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.tensor import Tensor, make_meta
from ..._dispatch.registry import aten, composite, op, packets
from ..._dispatch.result_types import result_type_of
from .._support.common import existing_dim
from ._histogram_checks import bounds, check_edges, check_weight

_LINSPACE = packets["linspace"].overloads[""]


def _check_dims(self: np.ndarray) -> None:
    if self.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")


def _edges(self: np.ndarray, bins: Sequence[int], range: Sequence[float] | None) -> list[np.ndarray]:
    _check_dims(self)
    if len(bins) != self.shape[-1]:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    kind = dt.from_numpy(self.dtype)
    return [
        _LINSPACE.kernel(low, high, count + 1, kind, None, None, None)
        for count, (low, high) in zip(bins, bounds(self, range), strict=True)
    ]


# ---------------------------------------------------------------- counts


def _count(self: np.ndarray, edges: Sequence[np.ndarray], weight: np.ndarray | None, density: bool) -> np.ndarray:
    """Points by cell; a bin has its left edge, the last one both, and what lies outside counts nowhere."""
    _check_dims(self)
    if len(edges) != self.shape[-1]:
        raise RuntimeError(
            f"torch.histogramdd: expected {self.shape[-1]} sequences of bin edges for a "
            f"{self.shape[-1]}-dimensional histogram but got {len(edges)}"
        )
    check_weight(self, weight)
    check_edges(self, edges)
    points = self.reshape(math.prod(self.shape[:-1]), len(edges))
    shape = tuple(edge.size - 1 for edge in edges)
    inside = np.full(len(points), bool(edges))
    place = np.zeros(len(points), np.int64)
    for edge, column in zip(edges, points.T, strict=True):
        inside &= (column >= edge[0]) & (column <= edge[-1])
        bins = edge.size - 1
        place = place * bins + np.minimum(edge.searchsorted(column, "right") - 1, bins - 1)
    chosen = None if weight is None else weight.reshape(-1)[inside]
    counts = np.bincount(place[inside], chosen, math.prod(shape)).reshape(shape).astype(self.dtype)
    if density:
        counts /= counts.sum()
        for dim, edge in enumerate(edges):
            counts /= np.diff(edge).reshape([-1 if i == dim else 1 for i in range(len(edges))])
    return counts


def _cells(self: Tensor, bins: Sequence[int], *_rest: Any) -> Any:
    return tuple(bins), self._array.dtype


_bin_edges = op(
    "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> Tensor[]",
    lambda self, bins, range, weight, density: _edges(self, bins, range),
    samples=lambda make: [(make(12, 2).detach(), (3, 4))],
)


@_bin_edges.kernel_for("meta")
def _edges_without_memory(self: Tensor, bins: Sequence[int], *_rest: Any) -> list[Tensor]:
    return [make_meta((count + 1,), self._array.dtype) for count in bins]


op(
    "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) "
    "-> Tensor",
    lambda self, bins, range, weight, density: _count(self, _edges(self, bins, range), weight, density),
    shape=_cells,
    samples=lambda make: [(make(12, 2).detach(), (3, 4))],
)
op(
    "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
    lambda self, bins, weight, density: _count(self, bins, weight, density),
    shape=lambda self, bins, *_: (tuple(edge._array.size - 1 for edge in bins), self._array.dtype),
    samples=lambda make: [(make(12, 2).detach(), [(make(4) / 4).cumsum(0).detach(), (make(3) / 3).cumsum(0).detach()])],
)


def _by_counts(self: Tensor, bins: Sequence[int], range: Any, weight: Tensor | None, density: bool) -> Any:
    edges = aten._histogramdd_bin_edges(self, bins, range=range, weight=weight, density=density)
    hist = aten._histogramdd_from_bin_cts(self, bins, range=range, weight=weight, density=density)
    return result_type_of(_of_one_count)(hist, tuple(edges))


def _by_one_count(self: Tensor, bins: int, range: Any, weight: Tensor | None, density: bool) -> Any:
    dims = self._array.shape[existing_dim(-1, self._array.ndim)]
    return _by_counts(self, [bins] * dims, range, weight, density)


def _by_edges(self: Tensor, bins: Sequence[Tensor], range: Any, weight: Tensor | None, density: bool) -> Any:
    # As in torch, a range is ignored where the edges are given.
    hist = aten._histogramdd_from_bin_tensors(self, bins, weight=weight, density=density)
    return result_type_of(_of_one_count)(hist, tuple(bins))


_REST = "float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)"

_of_one_count = composite(
    f"histogramdd.int_bins(Tensor self, int bins, {_REST}",
    _by_one_count,
    samples=lambda make: [(make(12, 2).detach(), 3)],
    doc="""A histogram in several dims: rows of the input are points.

    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])
    """,
)
composite(f"histogramdd(Tensor self, int[] bins, {_REST}", _by_counts, samples=lambda make: [(make(12, 2).detach(), [3, 4])])
composite(
    f"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, {_REST}",
    _by_edges,
    samples=lambda make: [(make(12, 2).detach(), [(make(4) / 4).cumsum(0).detach(), (make(3) / 3).cumsum(0).detach()])],
)

histogramdd = packets["histogramdd"].function
