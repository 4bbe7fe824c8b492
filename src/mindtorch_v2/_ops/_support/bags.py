"""Sums and maxima of rows of a matrix, bag by bag, where each bag names its rows by an index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._core import parallel
from . import split_products
from .common import sums_by_place

_FEW = 1 << 14  # elements of rows, on average of all bags of one size, that are added without looking at the sizes
_BLOCK = 1 << 16  # elements of rows that are taken together, and stay in the cache
# Multiply-adds of a matrix product that take the time of taking one element of a row and adding it.
_PRODUCT = 4


def bag_sums(
    rows: np.ndarray, indices: np.ndarray, starts: np.ndarray, sizes: np.ndarray, scales: np.ndarray | None
) -> np.ndarray:
    """For each bag `indices[start : start + size]`, none of them empty, the sum of its rows, each times its scale."""
    width = rows.shape[1]
    elements = indices.size * width
    if elements >= _FEW and pays_as_product(len(sizes) * len(rows), indices.size):
        sums = sums_by_product(rows, indices, np.repeat(np.arange(len(sizes)), sizes), len(sizes), scales)
        if sums is not None:
            return sums
    if elements < _FEW or elements < _FEW * len(np.unique(sizes)):
        taken = rows.take(indices, 0)
        if scales is not None:
            taken *= scales[:, None]
        return np.add.reduceat(taken, starts, 0)
    sums = np.empty((len(sizes), width), rows.dtype)
    most = max(_BLOCK // max(width, 1), 1)

    def work(bags: np.ndarray, size: int) -> None:
        total = 0
        for start in range(0, size, most):
            places = starts[bags][:, None] + np.arange(start, min(start + most, size))
            factors = np.ones((1, places.shape[1]), rows.dtype) if scales is None else scales[places][:, None]
            total = np.matmul(factors, rows.take(indices[places], 0)) + total
        sums[bags] = total[:, 0]

    _by_size(sizes, width, work)
    return sums


def pays_as_product(pairs: int, named: int) -> bool:
    """Whether so many pairs of a bag and a row are multiplied sooner than as many rows as bags name are added."""
    return pairs <= _PRODUCT * named


def sums_by_product(
    rows: np.ndarray, indices: np.ndarray, bag: np.ndarray, count: int, scales: np.ndarray | None
) -> np.ndarray | None:
    """The sums of `count` bags by a matrix product: of the rows, and of how often each bag has each of them.

    None where a sum is not finite: what is no number in a row would be in the sums of all bags.
    """
    often = sums_by_place(bag * len(rows) + indices, scales, count * len(rows)).reshape(count, len(rows))
    sums = split_products.dot(often.astype(rows.dtype), rows)
    return sums if np.isfinite(sums).all() else None


def bag_maxima(rows: np.ndarray, indices: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each bag, none of them empty, the largest of its rows' elements, column by column, and the first row with each.

    As in torch, nothing is larger than a nan of the first row, and a later nan is passed over.
    """
    if indices.size * rows.shape[1] < _FEW:
        taken = rows.take(indices, 0)
        maxima = np.maximum.reduceat(taken, starts, 0)
        if not np.isnan(maxima).any():
            met = taken == np.repeat(maxima, sizes, 0)
            places = np.where(met, np.arange(len(taken))[:, None], len(taken) - 1)
            return maxima, indices[np.minimum.reduceat(places, starts, 0)]
    maxima = np.empty((len(sizes), rows.shape[1]), rows.dtype)
    best = np.empty(maxima.shape, np.int64)
    last = sizes - 1

    def work(bags: np.ndarray, size: int) -> None:
        named = indices[starts[bags][:, None] + np.minimum(np.arange(size), last[bags][:, None])]
        taken = rows.take(named, 0)
        largest = np.maximum.reduce(taken, 1)
        if np.isnan(largest).any():
            largest = np.where(np.isnan(taken[:, 0]), taken[:, 0], np.fmax.reduce(taken, 1))
        maxima[bags] = largest
        best[bags] = np.take_along_axis(named, (taken == largest[:, None]).argmax(1), 1)

    # Their last rows, repeated up to the next power of two, change no maximum, and leave few sizes.
    _by_size(1 << np.frexp(last)[1], rows.shape[1], work)
    return maxima, best


def _by_size(sizes: np.ndarray, width: int, work: Callable[[np.ndarray, int], None]) -> None:
    """Call `work` with bags of one size, some at a time, and that size: as many bags as have sizes make few calls."""
    order = np.argsort(sizes, kind="stable")
    ends = np.flatnonzero(np.diff(sizes[order], append=-1)) + 1
    start = 0
    for end in ends.tolist():
        bags = order[start:end]
        size = int(sizes[bags[0]])
        step = max(_BLOCK // max(size * width, 1), 1)
        parallel.blocks(len(bags), step, lambda part, bags=bags, size=size: work(bags[part], size))  # type: ignore[misc]
        start = end
