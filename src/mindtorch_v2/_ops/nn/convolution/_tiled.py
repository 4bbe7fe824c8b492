"""Convolution of images with one kernel per channel, by products of tiles of rows with banded matrices.

The columns that a kernel's row meets lie below each other, one copy of the input for each of its elements; some rows of the
output are then the product of a small matrix, which has the kernel in every row, one step further each time, with rows that
lie in memory as BLAS takes them. 8 x 64 images of 56 x 56 and kernels of 3 x 3 take 1.9 ms in place of 3.5 ms by columns of
windows, which copy every element 9 times for products with a single row.
"""

from __future__ import annotations

import math

import numpy as np

from ...._core import parallel
from ...._core.strides import windowed
from .._windows import Ints
from ._blocks import blocks_of

# Rows of the output in a tile: 8 take 1.1 times as long, 14 take 1.4 times.
_TILE = 4
# The least width of the output: with fewer columns, as with a dilation, products take as long as those of columns of windows.
_LEAST_WIDTH = 20


def is_tiled(weight_shape: Ints, groups: int, out: Ints, dilation: Ints, dtype: np.dtype) -> bool:
    """Whether a convolution has one kernel per channel, over two dims, and an output that is wide enough."""
    is_wide = len(out) == 2 and out[1] >= _LEAST_WIDTH
    return is_wide and weight_shape[:2] == (groups, 1) and dilation == (1, 1) and dtype.char in "fd"


def forward(input: np.ndarray, weight: np.ndarray, stride: Ints, padding: Ints, output: np.ndarray) -> bool:
    """Fill `output` with the convolution; False where it is not right, because an infinite number met a zero of a band."""
    (height, width), (rows, columns), kernel = input.shape[2:], output.shape[2:], weight.shape[2:]
    tile, item = min(_TILE, rows), input.itemsize
    tall = (rows - 1) * stride[0] + kernel[0]
    bands = _bands(weight, tile, stride[0])
    whole, rest = divmod(rows, tile)
    # Channels before samples: whole samples lie in memory next to each other.
    pairs = [(b.groups, b.samples) for b in blocks_of(output.shape[1], len(output), 1, tall * kernel[1] * columns)]
    finite = np.empty(len(pairs), bool)
    top = min(padding[0], tall)
    bottom = min(top + height, tall)

    def work(number: int) -> None:
        samples, channels = pairs[number]
        images, target = input[samples, channels], output[samples, channels]
        stack = np.empty((*images.shape[:2], tall, kernel[1], columns), input.dtype)
        stack[:, :, :top] = 0
        stack[:, :, bottom:] = 0
        for place in range(kernel[1]):
            # The columns of the output for which this element of the kernel meets the input and not its padding.
            begin = place - padding[1]
            first = min(max(0, -(begin // stride[1])), columns)
            last = max(first, min(columns, (width - 1 - begin) // stride[1] + 1))
            met = slice(begin + first * stride[1], begin + (last - 1) * stride[1] + 1, stride[1])
            copy = stack[:, :, top:bottom, place]
            copy[..., :first] = 0
            copy[..., last:] = 0
            if first < last:
                copy[..., first:last] = images[:, :, : bottom - top, met]
        matrices = bands[channels, None]
        outer, step = stack.strides[:2], kernel[1] * columns * item
        if whole:
            shape = (*images.shape[:2], whole, matrices.shape[-1], columns)
            tiles = windowed(stack, shape, (*outer, tile * stride[0] * step, columns * item, item))
            np.matmul(matrices, tiles, target[:, :, : whole * tile].reshape(*target.shape[:2], whole, tile, columns))
        if rest:
            last_rows = stack[:, :, whole * tile * stride[0] :].reshape(*images.shape[:2], -1, columns)
            np.matmul(matrices[:, 0, :rest, : last_rows.shape[2]], last_rows, target[:, :, whole * tile :])
        flat = target.reshape(-1)
        finite[number] = math.isfinite(np.dot(flat, flat))

    parallel.run(len(pairs), work)
    return bool(finite.all())


def _bands(weight: np.ndarray, tile: int, stride: int) -> np.ndarray:
    """(C, rows of a tile, rows of the input that they meet * kernel's width): the kernel, `stride` rows further in each row."""
    channels, _, *kernel = weight.shape
    reach = (tile - 1) * stride + kernel[0]
    bands = np.zeros((channels, tile, reach, kernel[1]), weight.dtype)
    for row in range(tile):
        begin = row * stride
        bands[:, row, begin : begin + kernel[0]] = weight[:, 0]
    return bands.reshape(channels, tile, -1)
