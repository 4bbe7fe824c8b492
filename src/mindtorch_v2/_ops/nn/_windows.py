"""Sliding windows over the spatial dims: shared by convolution, pooling and unfold. All plain array code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..._core.strides import windowed

Ints = tuple[int, ...]


def per_dim(value: Iterable[int], dims: int) -> Ints:
    """A setting for each dim: a single number stands for all. Whether there are as many as dims is the caller's to check."""
    values = tuple(int(v) for v in value)
    return values * dims if len(values) == 1 else values


def pad_spatial(array: np.ndarray, padding: Ints, value: float = 0, extra: Ints | None = None) -> np.ndarray:
    """The array with `padding` more elements on both sides of each trailing dim (and `extra` at the end)."""
    extra = extra or (0,) * len(padding)
    if not any(padding) and not any(extra):
        return array
    lead = array.ndim - len(padding)
    grown = tuple(n + 2 * p + e for n, p, e in zip(array.shape[lead:], padding, extra, strict=True))
    shape = array.shape[:lead] + grown
    padded = np.zeros(shape, array.dtype) if value == 0 else np.full(shape, value, array.dtype)
    inside: Any = (..., *[slice(p, p + n) for n, p in zip(array.shape[lead:], padding, strict=True)])
    padded[inside] = array
    return padded


def output_size(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """How many windows fit in each dim."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def windows(padded: np.ndarray, kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> np.ndarray:
    """A view (*lead, *kernel, *out) of all windows of an array that was padded already."""
    lead = padded.ndim - len(kernel)
    steps = padded.strides[lead:]
    return windowed(
        padded,
        (*padded.shape[:lead], *kernel, *out),
        (
            *padded.strides[:lead],
            *[t * d for t, d in zip(steps, dilation, strict=True)],
            *[t * s for t, s in zip(steps, stride, strict=True)],
        ),
    )


def offsets(kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> Iterator[tuple[Ints, Any]]:
    """For each position in the kernel, the index of the elements it meets in every window."""
    for position in itertools.product(*map(range, kernel)):
        yield (
            position,
            (
                ...,
                *[slice(i * d, i * d + s * (n - 1) + 1, s) for i, n, s, d in zip(position, out, stride, dilation, strict=True)],
            ),
        )


def columns(padded: np.ndarray, kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> np.ndarray:
    """im2col: (N, C * prod(kernel), prod(out)); a view where the kernel is a single point and nothing is skipped."""
    batch, channels = padded.shape[:2]
    if all(k == 1 for k in kernel) and all(s == 1 for s in stride):
        return padded.reshape(batch, channels, -1)
    return windows(padded, kernel, out, stride, dilation).reshape(batch, channels * math.prod(kernel), math.prod(out))


def scatter_columns(
    cols: np.ndarray, shape: Ints, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    """col2im: add the windows' elements up where they came from; the transpose of `columns` as a linear map."""
    batch, channels = shape[:2]
    padded_shape = (batch, channels, *[n + 2 * p for n, p in zip(shape[2:], padding, strict=True)])
    padded = np.zeros(padded_shape, cols.dtype)
    parts = cols.reshape(batch, channels, *kernel, *out)
    for position, index in offsets(kernel, out, stride, dilation):
        part: Any = (slice(None), slice(None), *position)
        padded[index] += parts[part]
    if not any(padding):
        return padded
    inside: Any = (..., *[slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True)])
    return np.ascontiguousarray(padded[inside])
