"""Convolution of each channel with a long kernel of its own, as a blur by a row of weights, by products with banded matrices.

A row of the output is the input's row times a matrix that has the kernel in every column, one step further down each time.
Rows are taken in tiles, so that the band fills a good part of its matrix. As columns of windows such a convolution would
copy every element as often as the kernel is long, for products with a single row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...._core.strides import windowed
from .._windows import Ints, offsets, pad_spatial

# The length of a kernel's last dim from which on the products cost less than columns, and the least width of a tile. For narrow
# outputs, whose matrices are small, shorter kernels are long enough.
_LONG = 16
_LONG_FOR_NARROW = 5
_NARROW = 32
_TILE = 64


def is_banded(weight_shape: Ints, groups: int, out: Ints) -> bool:
    """Whether a convolution has one kernel per channel, and that a long one for the size of the output."""
    if weight_shape[0] != groups or weight_shape[1] != 1:
        return False
    length = weight_shape[-1]
    return length >= _LONG or (groups > 1 and length >= _LONG_FOR_NARROW and out[-1] <= _NARROW)


class _Tiling:
    """The tiles of a convolution: which columns of the padded input meet which of the output."""

    def __init__(self, kernel: Ints, out: Ints, stride: Ints, dilation: Ints) -> None:
        self.kernel, self.out, self.stride, self.dilation = kernel, out, stride, dilation
        self.width = min(out[-1], max(kernel[-1], _TILE))
        self.reach = self._reach(self.width)

    def _reach(self, width: int) -> int:
        return self.stride[-1] * (width - 1) + self.dilation[-1] * (self.kernel[-1] - 1) + 1

    def rows(self) -> Iterator[tuple[Ints, tuple[slice, ...]]]:
        """For each position in the kernel's leading dims, the rows of the padded input that it meets."""
        for position, index in offsets(self.kernel[:-1], self.out[:-1], self.stride[:-1], self.dilation[:-1]):
            yield position, index[1:]

    def tiles(self) -> Iterator[tuple[slice, slice, int]]:
        """Slices of the padded input's and the output's columns, and how many columns the latter has."""
        for start in range(0, self.out[-1], self.width):
            width = min(self.width, self.out[-1] - start)
            begin = start * self.stride[-1]
            yield slice(begin, begin + self._reach(width)), slice(start, start + width), width

    def diagonals(self, band: np.ndarray) -> np.ndarray:
        """A view (C, kernel, width) of banded matrices (C, reach, width): where each element of the kernel stands."""
        first, down, right = band.strides
        shape = (len(band), self.kernel[-1], self.width)
        return windowed(band, shape, (first, self.dilation[-1] * down, self.stride[-1] * down + right), writeable=True)

    def band(self, kernel: np.ndarray) -> np.ndarray:
        """The banded matrices (C, 1 ..., reach, width) of kernels (C, length), with a dim for each of those before the rows."""
        band = np.zeros((len(kernel), self.reach, self.width), kernel.dtype)
        self.diagonals(band)[...] = kernel[:, :, None]
        return band.reshape(len(band), *(1,) * (len(self.kernel) - 1), self.reach, self.width)


def _by_channel(array: np.ndarray) -> np.ndarray:
    """(N, C, ..., L) as (C, ..., rows, L): the rows of a channel's products, those of a sequence from its batch."""
    return array.swapaxes(0, 1)


def forward(
    input: np.ndarray, weight: np.ndarray, stride: Ints, padding: Ints, dilation: Ints, output: np.ndarray
) -> np.ndarray:
    """Fill `output` with the convolution."""
    tiling = _Tiling(weight.shape[2:], output.shape[2:], stride, dilation)
    padded, result = _by_channel(pad_spatial(input, padding)), _by_channel(output)
    for number, (position, rows) in enumerate(tiling.rows()):
        band = tiling.band(weight[(slice(None), 0, *position)])
        for source, target, width in tiling.tiles():
            windows = padded[(..., *rows, source)]
            factor = band[..., : windows.shape[-1], :width]
            if number:
                result[..., target] += np.matmul(windows, factor)
            else:
                result[..., target] = np.matmul(windows, factor)
    return output


def weight_grad(
    grad: np.ndarray, input: np.ndarray, weight_shape: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    """The gradient of `forward` for its weight."""
    tiling = _Tiling(weight_shape[2:], grad.shape[2:], stride, dilation)
    padded, by_channel = _by_channel(pad_spatial(input, padding)), _by_channel(grad)
    grad_weight = np.empty(weight_shape, input.dtype)
    for position, rows in tiling.rows():
        band = np.zeros((weight_shape[0], tiling.reach, tiling.width), input.dtype)
        for source, target, width in tiling.tiles():
            windows = padded[(..., *rows, source)]
            product = np.matmul(windows.swapaxes(-1, -2), by_channel[..., target])
            band[:, : windows.shape[-1], :width] += product.sum(tuple(range(1, product.ndim - 2)))
        grad_weight[(slice(None), 0, *position)] = tiling.diagonals(band).sum(-1)
    return grad_weight


def input_grad(grad: np.ndarray, shape: Ints, weight: np.ndarray, stride: Ints, padding: Ints, dilation: Ints) -> np.ndarray:
    """The gradient of `forward` for its input, of the given shape."""
    tiling = _Tiling(weight.shape[2:], grad.shape[2:], stride, dilation)
    by_channel = _by_channel(grad)
    padded = np.zeros((*shape[:2], *[n + 2 * p for n, p in zip(shape[2:], padding, strict=True)]), grad.dtype)
    total = _by_channel(padded)
    for position, rows in tiling.rows():
        band = tiling.band(weight[(slice(None), 0, *position)])
        for source, target, width in tiling.tiles():
            windows = total[(..., *rows, source)]
            windows += np.matmul(by_channel[..., target], band[..., : windows.shape[-1], :width].swapaxes(-1, -2))
    return np.ascontiguousarray(padded[(..., *[slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True)])])
