"""Convolution of images with kernels of three rows, by Winograd's F(2, 3): four products in place of six.

Two rows of the output meet four of the input, d0 ... d3. With the kernel's rows w0, w1, w2,

    m0 = (d0 - d2) w0    m1 = (d1 + d2) (w0 + w1 + w2) / 2    m2 = (d2 - d1) (w0 - w1 + w2) / 2    m3 = (d1 - d3) w2

give them as m0 + m1 + m2 and m1 - m2 - m3, where each product stands for a convolution along the rows. These are products of
matrices, which have two thirds of the multiply-adds of a convolution by columns of windows. Rounding errors are as large as
there: the factors are 1 and 1/2, and sums of whole numbers stay exact.

Even and odd rows of the padded input lie apart, so that rows which are added lie in memory one after another.
"""

from __future__ import annotations

import math
from threading import get_ident

import numpy as np

from ...._core import parallel
from ...._core.strides import windowed
from .._windows import Ints
from ._blocks import Block, blocks_of, slices_of
from ._small_products import multiply, multiply_transposed

# With fewer channels in or out the sums cost what the products save; with fewer elements of the output in a channel, those of
# the weight do. One convolution of 64 channels takes 0.75 of the time of columns of windows, of 32 channels 0.9.
_FEWEST_CHANNELS = 24
_FEWEST_ELEMENTS = 256
# The weight's gradient is added up in at most so many parts, each by one thread.
_PARTS = 4


def is_winograd(weight_shape: Ints, groups: int, batch: int, out: Ints, stride: Ints, dilation: Ints, dtype: np.dtype) -> bool:
    """Whether a convolution is one of images with kernels of three rows, and so large that this takes less time."""
    if len(out) != 2 or groups != 1 or weight_shape[2] != 3 or stride != (1, 1) or dilation != (1, 1):
        return False
    is_large = min(weight_shape[:2]) >= _FEWEST_CHANNELS and batch * math.prod(out) >= _FEWEST_ELEMENTS
    return is_large and dtype.char in "fd"


class _Tiling:
    """Pairs of rows of the output, and the sums of rows of the input that they meet, as columns."""

    def __init__(self, input: np.ndarray, width: int, out: Ints, padding: Ints) -> None:
        self.input, self.out, self.padding, self.width = input, out, padding, width
        self.row = input.shape[3] + 2 * padding[1]
        pairs = -(-out[0] // 2)
        self.blocks = blocks_of(len(input), 1, pairs, 4 * input.shape[1] * width * self.row)
        self._by_thread: dict[Ints, tuple[np.ndarray, ...]] = {}

    def columns(self, block: Block) -> np.ndarray:
        """The four sums of a block, as (4, kernel's width * channels, samples * pairs of rows).

        The next call on the same thread overwrites them.
        """
        pairs = block.rows.stop - block.rows.start
        slab, rows, sums, windows, columns = self._buffers(block.samples.stop - block.samples.start, pairs)
        inner = slice(self.padding[1], self.padding[1] + self.input.shape[3])
        height = self.input.shape[2]
        for parity in (0, 1):
            # The rows of this parity, of which the first is `top` in the input.
            top = 2 * block.rows.start - self.padding[0] + parity
            above = max(0, -(top // 2)) if top < 0 else 0
            last = min(pairs + 1, max(above, (height - 1 - top) // 2 + 1))
            rows[parity, :, :, :above] = 0
            rows[parity, :, :, last:] = 0
            if above < last:
                part = self.input[block.samples, :, top + 2 * above : top + 2 * last - 1 : 2]
                rows[parity, :, :, above:last, inner] = part.swapaxes(0, 1)
        even, odd = slab.reshape(2, -1)
        length, row = even.size - self.row, self.row
        here, below = slice(0, length), slice(row, row + length)
        flat = sums.reshape(-1)[:length]
        for number, (compute, first, second) in enumerate(
            (
                (np.subtract, even[here], even[below]),
                (np.add, odd[here], even[below]),
                (np.subtract, even[below], odd[here]),
                (np.subtract, odd[here], odd[below]),
            )
        ):
            compute(first, second, flat)
            np.copyto(columns[number], windows)
        return columns.reshape(4, self.width * self.input.shape[1], -1)

    def _buffers(self, samples: int, pairs: int) -> tuple[np.ndarray, ...]:
        """The calling thread's rows by parity, flat and as rows, a sum of them, its windows, and an array for columns."""
        key = (get_ident(), samples, pairs)
        buffers = self._by_thread.get(key)
        if buffers is not None:
            return buffers
        channels, row, kind = self.input.shape[1], self.row, self.input.dtype
        # A pair more, for the rows below the last one. Windows reach into it, where products are dropped or count as zero.
        slab, sums = (
            np.empty((2, channels, samples, (pairs + 1) * row), kind),
            np.empty((channels, samples, pairs + 1, row), kind),
        )
        rows = slab.reshape(2, channels, samples, pairs + 1, row)
        rows[..., : self.padding[1]] = rows[..., row - self.padding[1] :] = 0
        sums[-1, -1, -1] = 0
        shape = (self.width, channels, samples, pairs * row)
        windows = windowed(sums, shape, (sums.itemsize, *sums.strides[:2], sums.itemsize))
        buffers = slab, rows, sums, windows, np.empty((4, *shape), kind)
        self._by_thread[key] = buffers
        return buffers

    def rows_of(self, product: np.ndarray, block: Block, parity: int) -> np.ndarray:
        """A (samples, channels, rows, columns) view of an array that has a row for each pair of the block's."""
        pairs = slice(0, len(range(*self.target(block, parity).indices(self.out[0]))))
        whole = product.reshape(len(product), block.samples.stop - block.samples.start, -1, self.row)
        return whole[:, :, pairs, : self.out[1]].swapaxes(0, 1)

    @staticmethod
    def target(block: Block, parity: int) -> slice:
        """The rows of the output that are the first, or the second, of each pair of the block's."""
        return slice(2 * block.rows.start + parity, 2 * block.rows.stop, 2)


def forward(input: np.ndarray, weight: np.ndarray, shift: np.ndarray | None, padding: Ints, output: np.ndarray) -> bool:
    """Fill `output` with the convolution; False where it is not right, because sums of infinite numbers are none."""
    count, channels, _, width = weight.shape
    tiling = _Tiling(input, width, output.shape[2:], padding)
    weights = _transformed(weight).reshape(4, count, width * channels)
    finite = np.empty(len(tiling.blocks), bool)

    def work(number: int) -> None:
        block = tiling.blocks[number]
        first, second, third, fourth = products = multiply(weights, tiling.columns(block))
        flat = products.reshape(-1)
        finite[number] = math.isfinite(np.dot(flat, flat))
        # In place: the first rows of the pairs in the first product, the second rows in the second.
        np.add(first, second, first)
        np.add(first, third, first)
        np.subtract(second, third, second)
        np.subtract(second, fourth, second)
        for parity, rows in enumerate((first, second)):
            target, values = output[block.samples, :, tiling.target(block, parity)], tiling.rows_of(rows, block, parity)
            if shift is None:
                target[...] = values
            else:
                np.add(values, shift, target)

    parallel.run(len(tiling.blocks), work)
    return bool(finite.all())


def weight_grad(grad: np.ndarray, input: np.ndarray, weight_shape: Ints, padding: Ints) -> np.ndarray | None:
    """The gradient of `forward` for its weight; None where sums of infinite numbers are none."""
    count, channels, _, width = weight_shape
    tiling = _Tiling(input, width, grad.shape[2:], padding)
    parts = slices_of(len(tiling.blocks), -(-len(tiling.blocks) // _PARTS))
    totals = np.empty((len(parts), 4, width * channels, count), input.dtype)

    def work(number: int) -> None:
        for place, block in enumerate(tiling.blocks[parts[number]]):
            columns = tiling.columns(block)
            # Zero between the rows, so that what the windows hold there does not count.
            spread = np.zeros((4, count, columns.shape[2]), input.dtype)
            for parity, rows in ((0, spread[0]), (1, spread[3])):
                tiling.rows_of(rows, block, parity)[...] = grad[block.samples, :, tiling.target(block, parity)]
            np.add(spread[0], spread[3], spread[1])
            np.subtract(spread[0], spread[3], spread[2])
            if place:
                totals[number] += multiply_transposed(columns, spread)
            else:
                totals[number] = multiply_transposed(columns, spread)

    parallel.run(len(parts), work)
    total = np.add.reduce(totals, 0) if len(totals) > 1 else totals[0]
    flat = total.reshape(-1)
    if not math.isfinite(np.dot(flat, flat)):
        return None
    first, second, third, fourth = total
    middle = np.subtract(second, third)
    middle *= 0.5
    np.add(second, third, second)
    second *= 0.5
    np.add(first, second, first)
    np.subtract(second, fourth, second)
    grad_weight = np.empty(weight_shape, input.dtype)
    for row, values in enumerate((first, middle, second)):
        grad_weight[:, :, row] = values.reshape(width, channels, count).transpose(2, 1, 0)
    return grad_weight


def _transformed(weight: np.ndarray) -> np.ndarray:
    """The four sums of a kernel's rows, (4, O, width, C)."""
    count, channels, _, width = weight.shape
    first, middle, last = np.ascontiguousarray(weight.transpose(2, 0, 3, 1))
    sums = np.empty((4, count, width, channels), weight.dtype)
    sums[0], sums[3] = first, last
    np.add(first, last, sums[1])
    np.subtract(sums[1], middle, sums[2])
    np.add(sums[1], middle, sums[1])
    sums[1:3] *= 0.5
    return sums
