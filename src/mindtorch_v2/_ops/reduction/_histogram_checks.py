"""Checks of the arguments of histograms in one and several dims, with torch's messages."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._support.common import cpp_name
from .._support.elementwise import need_single_or_double


def check_bins(count: int, dim: int = 0) -> None:
    """RuntimeError unless there are bins to count in."""
    if count <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {dim}")


def check_weight(points: np.ndarray, weight: np.ndarray | None) -> None:
    """RuntimeError unless there is one weight for each point, of the same dtype."""
    if weight is None:
        return
    if weight.dtype != points.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the "
            f"same dtype, but got input({cpp_name(points)}), and weight({cpp_name(weight)})"
        )
    if weight.shape != points.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(points.shape)} and weight with "
            f"shape {list(weight.shape)}"
        )


def check_edges(points: np.ndarray, edges: Sequence[np.ndarray]) -> None:
    """RuntimeError unless these are the edges of bins along every dim of the points."""
    for dim, edge in enumerate(edges):
        if edge.dtype != points.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input "
                f"with dtype {cpp_name(points)} and bins for dimension {dim} with dtype {cpp_name(edge)}"
            )
        if edge.ndim != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {edge.ndim} dimensions in "
                f"the bins tensor for dimension {dim}"
            )
        if not edge.size:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins "
                f"tensor for dimension {dim}"
            )
        check_bins(edge.size - 1, dim)
    need_single_or_double("histogramdd", points)


def bounds(points: np.ndarray, range: Sequence[float] | None) -> list[tuple[float, float]]:
    """Where the bins of each dim begin and end: as asked for, else where the points do."""
    dims = points.shape[-1]
    if range is not None and len(range) != 2 * dims:
        raise RuntimeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got {len(range)}"
        )
    need_single_or_double("histogramdd", points)
    if range is not None:
        pairs = [(float(low), float(high)) for low, high in zip(range[::2], range[1::2], strict=True)]
    elif not points.size:
        pairs = [(0.0, 1.0)] * dims
    else:
        rows = points.reshape(-1, dims)
        pairs = [(float(low), float(high)) for low, high in zip(rows.min(0), rows.max(0), strict=True)]
    for dim, (low, high) in enumerate(pairs):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
            )
    return [(low - 0.5, high + 0.5) if low == high else (low, high) for low, high in pairs]
