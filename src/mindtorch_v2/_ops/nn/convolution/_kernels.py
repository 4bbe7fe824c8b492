"""Convolution on arrays: blocks of samples laid out as columns of windows, and matrix products.

Within a block channels come first: a padded block is (C, samples, ...) and its columns are (C * kernel, samples * rows),
so that one product serves many samples, or some rows of a large one, and everything stays in the cache. Where windows move
by single steps, a kernel position's column is one contiguous run per sample: all output rows at once, with the few elements
between the rows computed along and dropped.
"""

from __future__ import annotations

import itertools
import math
from threading import get_ident

import numpy as np

from ...._core import parallel
from ...._core.strides import windowed
from ..._support.split_products import matmul
from .._windows import Ints, offsets, output_size
from . import _banded, _tiled, _winograd
from ._blocks import Block, blocks_of, slices_of
from ._small_products import multiply, multiply_transposed

# The largest ratio of computed to used elements that longer runs may cost.
_MOST_WASTE = 1.5
# The weight's gradient is added up in at most so many parts, each by one thread.
_PARTS = 4
# With more channels than these in a group the product for the weight's gradient is not turned.
_MOST_TURNED = 64


def _in_runs(padded: Ints, out: Ints, stride: Ints) -> bool:
    """Whether windows are taken in runs: rows of the output that are as long as those of the padded input."""
    return all(s == 1 for s in stride) and math.prod((out[0], *padded[1:])) <= _MOST_WASTE * math.prod(out)


def _steps(size: Ints) -> list[int]:
    """The strides of a row-major array, in elements."""
    steps = [1]
    for n in reversed(size[1:]):
        steps.insert(0, steps[0] * n)
    return steps


def _tail(kernel: Ints, padded: Ints, dilation: Ints) -> int:
    """How far the last run of a sample reaches beyond it."""
    return sum((k - 1) * s * d for k, s, d in zip(kernel[1:], _steps(padded)[1:], dilation[1:], strict=True))


class _Geometry:
    """The windows of a convolution, and how blocks of them become columns."""

    def __init__(
        self, input: np.ndarray, groups: int, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints
    ) -> None:
        self.input, self.kernel, self.out, self.stride, self.dilation = input, kernel, out, stride, dilation
        self.padding = padding
        self.per_group = input.shape[1] // groups
        self.padded = tuple(n + 2 * p for n, p in zip(input.shape[2:], padding, strict=True))
        self.runs = _in_runs(self.padded, out, stride)
        # A row of the output as it is computed, and as it is used.
        self.row = self.padded[1:] if self.runs else out[1:]
        elements = self.per_group * math.prod(kernel) * math.prod(self.row)
        self.blocks = blocks_of(len(input), groups, out[0], elements)
        self._inner = [slice(p, p + n) for n, p in zip(input.shape[3:], padding[1:], strict=True)]
        self._by_thread: dict[Ints, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def windows(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """The windows of a block, (channels, kernel ..., samples, rows ...), as a view, and an array that has room for them.

        The next call on the same thread overwrites both.
        """
        channels = block.channels(self.per_group)
        rows = block.rows
        slab, windows, columns = self._buffers(
            channels.stop - channels.start, block.samples.stop - block.samples.start, rows.stop - rows.start
        )
        # Of the first dim the input's rows that the block meets; of the others all.
        top = rows.start * self.stride[0] - self.padding[0]
        first, last = max(top, 0), min(top + slab.shape[2], self.input.shape[2])
        slab[:, :, : first - top] = 0
        slab[:, :, max(last - top, 0) :] = 0
        if first < last:
            part = self.input[block.samples, channels, first:last]
            slab[(slice(None), slice(None), slice(first - top, last - top), *self._inner)] = part.swapaxes(0, 1)
        return windows, columns

    def columns(self, block: Block) -> np.ndarray:
        """The windows of a block as columns: (groups, channels of a group * kernel, samples * rows).

        The next call on the same thread overwrites them.
        """
        windows, columns = self.windows(block)
        np.copyto(columns, windows)
        return columns.reshape(block.groups.stop - block.groups.start, -1, math.prod(columns.shape[1 + len(self.kernel) :]))

    def _buffers(self, count: int, samples: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The calling thread's padded block of so many channels, samples and rows, its windows, and an array for columns."""
        key = (get_ident(), count, samples, number)
        buffers = self._by_thread.get(key)
        if buffers is not None:
            return buffers
        padded = ((number - 1) * self.stride[0] + (self.kernel[0] - 1) * self.dilation[0] + 1, *self.padded[1:])
        item = self.input.itemsize
        steps = [n * item for n in _steps(padded)]
        reach = [s * d for s, d in zip(steps, self.dilation, strict=True)]
        tail = _tail(self.kernel, padded, self.dilation) if self.runs else 0
        flat = np.zeros((count, samples, math.prod(padded) + tail), self.input.dtype)
        outer = flat.strides[:2]
        slab = windowed(flat, (count, samples, *padded), (*outer, *steps), writeable=True)
        if self.runs:
            shape: Ints = (count, *self.kernel, samples, number * math.prod(self.row))
            strides: Ints = (outer[0], *reach, outer[1], item)
        else:
            shape = (count, *self.kernel, samples, number, *self.out[1:])
            strides = (outer[0], *reach, outer[1], *[s * t for s, t in zip(steps, self.stride, strict=True)])
        buffers = slab, windowed(flat, shape, strides), np.empty(shape, self.input.dtype)
        self._by_thread[key] = buffers
        return buffers

    def crop(self, product: np.ndarray, block: Block) -> np.ndarray:
        """A (samples, channels, rows, ...) view of a product of each group with the columns of a block."""
        samples, number = block.samples.stop - block.samples.start, block.rows.stop - block.rows.start
        rows = product.reshape(product.shape[0] * product.shape[1], samples, number, *self.row)
        return rows[(..., *[slice(0, n) for n in self.out[1:]])].swapaxes(0, 1)


def _is_pointwise(kernel: Ints, padding: Ints) -> bool:
    return all(k == 1 for k in kernel) and not any(padding)


def _strided_points(input: np.ndarray, stride: Ints, out: Ints) -> np.ndarray:
    """The elements under a 1x1 kernel, as (N, C, points)."""
    if input.shape[2:] != out:
        input = input[(..., *[slice(0, (n - 1) * s + 1, s) for n, s in zip(out, stride, strict=True)])]
    return input.reshape(*input.shape[:2], math.prod(input.shape[2:]))


def _is_large(weight_shape: Ints, points: np.ndarray) -> bool:
    """Whether a 1x1 kernel is larger than what one sample has of it and gives it: then all samples share one product."""
    return len(points) > 1 and math.prod(weight_shape[:2]) > points.shape[2] * sum(weight_shape[:2])


def _side_by_side(points: np.ndarray) -> np.ndarray:
    """(N, C, points) as (C, N * points)."""
    return points.swapaxes(0, 1).reshape(points.shape[1], -1)


def _each_sample(weights: np.ndarray, points: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The product of a matrix with each sample's (C, points), in `out` or a new array."""
    if not _is_large(weights.shape, points):
        return matmul(weights, points, out)
    product = matmul(weights, _side_by_side(points)).reshape(len(weights), len(points), -1).swapaxes(0, 1)
    if out is None:
        return np.ascontiguousarray(product)
    out[...] = product
    return out


def _grouped(array: np.ndarray, groups: int, axis: int) -> np.ndarray:
    """An axis split into (groups, rest)."""
    shape = array.shape
    return array.reshape(*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])


def forward(
    input: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
    out: Ints | None = None,
) -> np.ndarray:
    """The convolution of (N, C, ...) with (O, C / groups, ...); with `out`, of only so many windows per dim."""
    kernel, count = weight.shape[2:], weight.shape[0]
    out = out or output_size(input.shape[2:], kernel, stride, padding, dilation)
    output = np.empty((len(input), count, *out), input.dtype)
    shift = None if bias is None else bias.reshape(-1, *(1,) * len(kernel))
    if not output.size:
        return output
    if _banded.is_banded(weight.shape, groups, out):
        _banded.forward(input, weight, stride, padding, dilation, output)
        return output if shift is None else np.add(output, shift, output)
    is_tiled = _tiled.is_tiled(weight.shape, groups, out, dilation, input.dtype)
    if is_tiled and _tiled.forward(input, weight, stride, padding, output):
        return output if shift is None else np.add(output, shift, output)
    if _is_pointwise(kernel, padding):
        points = _strided_points(input, stride, out)
        if groups == 1:
            _each_sample(weight.reshape(count, -1), points, output.reshape(len(input), count, -1))
        else:
            matmul(
                weight.reshape(groups, count // groups, -1),
                _grouped(points, groups, 1),
                _grouped(output.reshape(len(input), count, -1), groups, 1),
            )
        return output if shift is None else np.add(output, shift, output)
    if _winograd.is_winograd(weight.shape, groups, len(input), out, stride, dilation, input.dtype) and _winograd.forward(
        input, weight, shift, padding, output
    ):
        return output
    geometry = _Geometry(input, groups, kernel, out, stride, padding, dilation)
    per_group = count // groups
    weights = weight.reshape(groups, per_group, -1)

    def work(number: int) -> None:
        block = geometry.blocks[number]
        channels = block.channels(per_group)
        cropped = geometry.crop(multiply(weights[block.groups], geometry.columns(block)), block)
        target = output[block.samples, channels, block.rows]
        if shift is None:
            target[...] = cropped
        else:
            np.add(cropped, shift[channels], target)

    parallel.run(len(geometry.blocks), work)
    return output


def weight_grad(
    grad: np.ndarray, input: np.ndarray, weight_shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> np.ndarray:
    """The gradient of `forward` for its weight."""
    kernel, count = weight_shape[2:], weight_shape[0]
    if not grad.size:
        return np.zeros(weight_shape, input.dtype)
    if _banded.is_banded(weight_shape, groups, grad.shape[2:]):
        return _banded.weight_grad(grad, input, weight_shape, stride, padding, dilation)
    if _is_pointwise(kernel, padding):
        points = _strided_points(input, stride, grad.shape[2:])
        flat = grad.reshape(*grad.shape[:2], -1)
        if groups == 1 and _is_large(weight_shape, points):
            return matmul(_side_by_side(flat), _side_by_side(points).T).reshape(weight_shape)
        if groups == 1:
            per_sample = matmul(flat, points.swapaxes(1, 2))
        else:
            per_sample = matmul(_grouped(flat, groups, 1), _grouped(points, groups, 1).swapaxes(2, 3))
        return np.add.reduce(per_sample, 0).reshape(weight_shape)
    if _winograd.is_winograd(weight_shape, groups, len(input), grad.shape[2:], stride, dilation, input.dtype):
        by_rows = _winograd.weight_grad(grad, input, weight_shape, padding)
        if by_rows is not None:
            return by_rows
    geometry = _Geometry(input, groups, kernel, grad.shape[2:], stride, padding, dilation)
    per_group = count // groups
    # Each part has a sum as large as the weight, so that few windows make few parts.
    elements = math.prod(weight_shape[1:]) * len(grad) * math.prod(grad.shape[2:])
    most = max(1, min(_PARTS, elements // (4 * math.prod(weight_shape))))
    parts = slices_of(len(geometry.blocks), -(-len(geometry.blocks) // most))
    # Transposed: a product of columns with a few channels takes half the time of one of few channels with columns, 0.6 of it
    # with 32 channels. Of many channels the weight is large, and to turn it in the end would take as long as the product.
    turned = per_group <= _MOST_TURNED
    size = (math.prod(weight_shape[1:]), per_group)
    totals = np.zeros((len(parts), groups, *(size if turned else size[::-1])), input.dtype)

    # `vecdot` conjugates complex numbers, which a gradient of weights does not.
    depthwise = weight_shape[0] == groups and weight_shape[1] == 1 and input.dtype.kind != "c"

    def work(number: int) -> None:
        for block in geometry.blocks[parts[number]]:
            windows, columns = geometry.windows(block)
            rows = windows.shape[1 + len(kernel) :]
            # Zero between the rows of a run, so that what the windows hold there does not count.
            spread = np.zeros((block.groups.stop - block.groups.start, per_group, math.prod(rows)), input.dtype)
            geometry.crop(spread, block)[...] = grad[block.samples, block.channels(per_group), block.rows]
            if depthwise:  # inner products with the windows where they are: to copy them takes longer
                dots = np.vecdot(windows, spread.reshape(-1, *(1,) * len(kernel), *rows))
                totals[number, block.groups] += np.add.reduce(dots.reshape(len(spread), math.prod(kernel), 1, -1), 3)
            else:
                np.copyto(columns, windows)
                flat = columns.reshape(len(spread), -1, math.prod(rows))
                if turned:
                    totals[number, block.groups] += multiply_transposed(flat, spread)
                elif len(geometry.blocks) == 1:
                    matmul(spread, flat.swapaxes(1, 2), totals[number])
                else:
                    totals[number, block.groups] += matmul(spread, flat.swapaxes(1, 2))

    parallel.run(len(parts), work)  # of one part threads may share the products
    total = np.add.reduce(totals, 0) if len(totals) > 1 else totals[0]
    return (np.ascontiguousarray(total.swapaxes(1, 2)) if turned else total).reshape(weight_shape)


def _flipped_weight(weight: np.ndarray, groups: int) -> np.ndarray:
    """The weight of the convolution that computes the input's gradient: channels swapped, the kernel flipped."""
    by_group = _grouped(weight, groups, 0).swapaxes(1, 2)
    turned = by_group[(..., *[slice(None, None, -1)] * (weight.ndim - 2))]
    return np.ascontiguousarray(turned).reshape(groups * weight.shape[1], weight.shape[0] // groups, *weight.shape[2:])


def input_grad(
    grad: np.ndarray, shape: Ints, weight: np.ndarray, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> np.ndarray:
    """The gradient of `forward` for its input, of the given shape; also the forward of a transposed convolution."""
    if not grad.size:
        return np.zeros(shape, grad.dtype)
    kernel = weight.shape[2:]
    if _banded.is_banded(weight.shape, groups, grad.shape[2:]):
        return _banded.input_grad(grad, shape, weight, stride, padding, dilation)
    if _is_pointwise(kernel, padding):
        return _pointwise_input_grad(grad, shape, weight, stride, groups)
    around = tuple(d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True))
    back = (
        all(s == 1 for s in stride)
        and min(around) >= 0
        and all(n == o + a - p for n, o, a, p in zip(shape[2:], grad.shape[2:], around, padding, strict=True))
    )
    # As a convolution it gathers windows of the gradient's channels; the other way it adds up those of the input's, which
    # takes longer unless they are far fewer: 1.3 times as long for 16 channels from 32, 0.8 for 16 from 64. Threads share
    # windows better, too.
    if back and 3 * shape[1] >= grad.shape[1]:
        return forward(grad, _flipped_weight(weight, groups), None, stride, around, dilation, groups)
    return _scattered(grad, shape, weight, stride, padding, dilation, groups)


def _pointwise_input_grad(grad: np.ndarray, shape: Ints, weight: np.ndarray, stride: Ints, groups: int) -> np.ndarray:
    """The input gradient of a 1x1 kernel: zero except at the strided elements."""
    flat = grad.reshape(*grad.shape[:2], -1)
    if groups == 1:
        points = _each_sample(weight.reshape(len(weight), -1).T, flat)
    else:
        points = matmul(weight.reshape(groups, len(weight) // groups, -1).swapaxes(1, 2), _grouped(flat, groups, 1))
    points = points.reshape(*shape[:2], *grad.shape[2:])
    if points.shape == tuple(shape):
        return points
    whole = np.zeros(shape, grad.dtype)
    whole[(..., *[slice(0, (n - 1) * s + 1, s) for n, s in zip(grad.shape[2:], stride, strict=True)])] = points
    return whole


def _scattered(
    grad: np.ndarray, shape: Ints, weight: np.ndarray, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> np.ndarray:
    """The input gradient by col2im: each window's part added at its place, block by block."""
    kernel, out, size = weight.shape[2:], grad.shape[2:], shape[2:]
    padded = tuple(n + 2 * p for n, p in zip(size, padding, strict=True))
    runs = _in_runs(padded, out, stride)
    rows = (out[0], *padded[1:]) if runs else out
    channels, count = shape[1] // groups, len(weight) // groups
    row = math.prod(rows[1:])
    blocks = blocks_of(len(grad), groups, out[0], channels * math.prod(kernel) * row)
    # The parts of a sample's rows are added to the same place, so that one thread takes them all.
    tasks = [list(some) for _, some in itertools.groupby(blocks, lambda block: (block.groups.start, block.samples.start))]
    weights = weight.reshape(groups, count, -1).swapaxes(1, 2)
    steps, reach = _steps(padded), [s * d for s, d in zip(_steps(padded), dilation, strict=True)]
    length = math.prod(padded) + (_tail(kernel, padded, dilation) if runs else 0)
    grad_input = np.empty(shape, grad.dtype)

    def work(number: int) -> None:
        of_samples = tasks[number]
        groups_of, samples_of, _ = of_samples[0]
        samples, all_channels = samples_of.stop - samples_of.start, (groups_of.stop - groups_of.start) * channels
        total = np.zeros((all_channels, samples, length), grad.dtype)
        sizes = [n * grad.itemsize for n in steps]
        whole = windowed(total, (all_channels, samples, *padded), (*total.strides[:2], *sizes), writeable=True)
        for block in of_samples:
            part = grad[block.samples, block.channels(count), block.rows]
            many = part.shape[2]
            # Zero between the rows of a run, so that nothing is added there.
            spread = np.zeros((part.shape[1], samples, many, *rows[1:]), grad.dtype)
            spread[(..., *[slice(0, n) for n in out[1:]])] = part.swapaxes(0, 1)
            product = multiply(weights[block.groups], spread.reshape(-1, count, samples * many * row))
            columns = product.reshape(all_channels, *kernel, samples, *([many * row] if runs else (many, *out[1:])))
            below = block.rows.start * stride[0]
            for position, index in offsets(kernel, (many, *out[1:]), stride, dilation):
                values = columns[(slice(None), *position)]
                if runs:
                    begin = block.rows.start * row + sum(i * r for i, r in zip(position, reach, strict=True))
                    target = total[:, :, begin : begin + many * row]
                else:
                    target = whole[:, :, below:][index]
                np.add(target, values, target)
        inner = whole[(..., *[slice(p, p + n) for n, p in zip(size, padding, strict=True)])]
        grad_input[samples_of, of_samples[0].channels(channels)] = inner.swapaxes(0, 1)

    parallel.run(len(tasks), work)
    return grad_input
