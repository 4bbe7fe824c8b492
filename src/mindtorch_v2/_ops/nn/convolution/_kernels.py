"""Convolution on arrays: blocks of samples laid out as columns of windows, and matrix products.

Within a block channels come first: a padded block is (C, samples, ...) and its columns are (C * kernel, samples * run),
so that one product serves many samples and everything stays in the cache. Where windows move by single steps, a
kernel position's column is one contiguous run per sample: all output rows at once, with the few elements between
the rows computed along and dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...._core.strides import windowed
from .._windows import Ints, offsets, output_size
from . import _banded

# Elements of a block of columns: half a megabyte of float32.
_BLOCK = 1 << 17
# The largest ratio of computed to used elements that longer runs may cost.
_MOST_WASTE = 1.5


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


class _Blocks:
    """Groups and samples in blocks, so that what a block needs stays in the cache."""

    def __init__(self, batch: int, groups: int, elements: int) -> None:
        """`elements` is the size of a group of one sample."""
        pairs = max(1, _BLOCK // max(elements, 1))
        self.batch, self.groups = batch, groups
        # Samples first: they make the rows of a product longer.
        self.samples = min(batch, pairs)
        self.group_count = max(1, min(groups, pairs // self.samples))

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        """The slices of groups and samples of each block; the last ones may be shorter."""
        for group in range(0, self.groups, self.group_count):
            for sample in range(0, self.batch, self.samples):
                yield (
                    slice(group, min(group + self.group_count, self.groups)),
                    slice(sample, min(sample + self.samples, self.batch)),
                )


def _channels(groups: slice, per_group: int) -> slice:
    """The channels of some groups."""
    return slice(groups.start * per_group, groups.stop * per_group)


class _Columns:
    """Blocks of samples as columns; made once per convolution, with buffers that all blocks share."""

    def __init__(
        self, input: np.ndarray, groups: int, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints
    ) -> None:
        self.input, self.padding, self.out = input, padding, out
        self.per_group = input.shape[1] // groups
        padded = tuple(n + 2 * p for n, p in zip(input.shape[2:], padding, strict=True))
        runs = _in_runs(padded, out, stride)
        self.rows = (out[0], *padded[1:]) if runs else out
        self.run = math.prod(self.rows)
        self._blocks = _Blocks(len(input), groups, self.per_group * math.prod(kernel) * self.run)
        self.samples, self.group_count = self._blocks.samples, self._blocks.group_count
        channels = self.group_count * self.per_group
        item = input.itemsize
        steps = [n * item for n in _steps(padded)]
        reach = [s * d for s, d in zip(steps, dilation, strict=True)]
        tail = _tail(kernel, padded, dilation) if runs else 0
        flat = np.zeros((channels, self.samples, math.prod(padded) + tail), input.dtype)
        outer = flat.strides[:2]
        self._padded = windowed(flat, (channels, self.samples, *padded), (*outer, *steps), writeable=True)
        if runs:
            self._windows = windowed(flat, (channels, *kernel, self.samples, self.run), (outer[0], *reach, outer[1], item))
        else:
            moves = [s * t for s, t in zip(steps, stride, strict=True)]
            self._windows = windowed(flat, (channels, *kernel, self.samples, *out), (outer[0], *reach, outer[1], *moves))
        self._columns = np.empty(self._windows.shape, input.dtype)

    def __iter__(self) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """(groups, samples, columns of each group); beyond its samples a block may hold stale columns."""
        inner = tuple(slice(p, p + n) for n, p in zip(self.input.shape[2:], self.padding, strict=True))
        for groups, samples in self._blocks:
            part = self.input[samples, _channels(groups, self.per_group)]
            self._padded[(slice(0, part.shape[1]), slice(0, len(part)), *inner)] = part.swapaxes(0, 1)
            np.copyto(self._columns, self._windows)
            columns = self._columns.reshape(self.group_count, -1, self.samples * self.run)
            yield groups, samples, columns[: groups.stop - groups.start]

    def crop(self, product: np.ndarray) -> np.ndarray:
        """A (samples, rows of all groups, *out) view of a product of each group with the columns."""
        rows = product.reshape(product.shape[0] * product.shape[1], self.samples, *self.rows)
        return rows[(..., *[slice(0, n) for n in self.out])].swapaxes(0, 1)


def _is_pointwise(kernel: Ints, padding: Ints) -> bool:
    return all(k == 1 for k in kernel) and not any(padding)


def _strided_points(input: np.ndarray, stride: Ints, out: Ints) -> np.ndarray:
    """The elements under a 1x1 kernel, as (N, C, points)."""
    if input.shape[2:] != out:
        input = input[(..., *[slice(0, (n - 1) * s + 1, s) for n, s in zip(out, stride, strict=True)])]
    return input.reshape(*input.shape[:2], math.prod(input.shape[2:]))


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
    if _banded.is_banded(weight.shape, groups):
        _banded.forward(input, weight, stride, padding, dilation, output)
        return output if shift is None else np.add(output, shift, output)
    if _is_pointwise(kernel, padding):
        points = _strided_points(input, stride, out)
        if groups == 1:
            np.matmul(weight.reshape(count, -1), points, output.reshape(len(input), count, -1))
        else:
            np.matmul(
                weight.reshape(groups, count // groups, -1),
                _grouped(points, groups, 1),
                _grouped(output.reshape(len(input), count, -1), groups, 1),
            )
        return output if shift is None else np.add(output, shift, output)
    columns = _Columns(input, groups, kernel, out, stride, padding, dilation)
    weights = weight.reshape(groups, count // groups, -1)
    product = np.empty((columns.group_count, count // groups, columns.samples * columns.run), input.dtype)
    for block, samples, cols in columns:
        np.matmul(weights[block], cols, product[: len(cols)])
        target = output[samples, _channels(block, count // groups)]
        cropped = columns.crop(product)[: len(target), : target.shape[1]]
        if shift is None:
            target[...] = cropped
        else:
            np.add(cropped, shift[_channels(block, count // groups)], target)
    return output


def weight_grad(
    grad: np.ndarray, input: np.ndarray, weight_shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> np.ndarray:
    """The gradient of `forward` for its weight."""
    kernel, count = weight_shape[2:], weight_shape[0]
    if not grad.size:
        return np.zeros(weight_shape, input.dtype)
    if _banded.is_banded(weight_shape, groups):
        return _banded.weight_grad(grad, input, weight_shape, stride, padding, dilation)
    if _is_pointwise(kernel, padding):
        points = _strided_points(input, stride, grad.shape[2:])
        flat = grad.reshape(*grad.shape[:2], -1)
        if groups == 1:
            per_sample = np.matmul(flat, points.swapaxes(1, 2))
        else:
            per_sample = np.matmul(_grouped(flat, groups, 1), _grouped(points, groups, 1).swapaxes(2, 3))
        return np.add.reduce(per_sample, 0).reshape(weight_shape)
    columns = _Columns(input, groups, kernel, grad.shape[2:], stride, padding, dilation)
    # Zero between the rows of a run, so that what the columns hold there does not count.
    spread = np.zeros((columns.group_count, count // groups, columns.samples * columns.run), input.dtype)
    cropped = columns.crop(spread)
    total = np.zeros((groups, count // groups, math.prod(weight_shape[1:])), input.dtype)
    for block, samples, cols in columns:
        part = grad[samples, _channels(block, count // groups)]
        cropped[: len(part), : part.shape[1]] = part
        cropped[len(part) :] = 0
        total[block] += np.matmul(spread[: len(cols)], cols.swapaxes(1, 2))
    return total.reshape(weight_shape)


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
    if _banded.is_banded(weight.shape, groups):
        return _banded.input_grad(grad, shape, weight, stride, padding, dilation)
    if _is_pointwise(kernel, padding):
        return _pointwise_input_grad(grad, shape, weight, stride, groups)
    around = tuple(d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True))
    back = (
        all(s == 1 for s in stride)
        and min(around) >= 0
        and all(n == o + a - p for n, o, a, p in zip(shape[2:], grad.shape[2:], around, padding, strict=True))
    )
    # As a convolution it gathers windows of the gradient's channels; the other way it scatters those of the input's.
    if back and shape[1] >= grad.shape[1]:
        return forward(grad, _flipped_weight(weight, groups), None, stride, around, dilation, groups)
    return _scattered(grad, shape, weight, stride, padding, dilation, groups)


def _pointwise_input_grad(grad: np.ndarray, shape: Ints, weight: np.ndarray, stride: Ints, groups: int) -> np.ndarray:
    """The input gradient of a 1x1 kernel: zero except at the strided elements."""
    flat = grad.reshape(*grad.shape[:2], -1)
    if groups == 1:
        points = np.matmul(weight.reshape(len(weight), -1).T, flat)
    else:
        points = np.matmul(weight.reshape(groups, len(weight) // groups, -1).swapaxes(1, 2), _grouped(flat, groups, 1))
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
    run, channels, count = math.prod(rows), shape[1] // groups, len(weight) // groups
    blocks = _Blocks(len(grad), groups, channels * math.prod(kernel) * run)
    samples, group_count = blocks.samples, blocks.group_count
    # Zero between the rows of a run, so that nothing is added there.
    spread = np.zeros((group_count * count, samples, *rows), grad.dtype)
    filled = spread[(..., *[slice(0, n) for n in out])]
    weights = weight.reshape(groups, count, -1).swapaxes(1, 2)
    size_of_all = math.prod(padded) + (_tail(kernel, padded, dilation) if runs else 0)
    total = np.empty((group_count * channels, samples, size_of_all), grad.dtype)
    steps = [n * grad.itemsize for n in _steps(padded)]
    whole = windowed(total, (len(total), samples, *padded), (*total.strides[:2], *steps), writeable=True)
    inner = whole[(..., *[slice(p, p + n) for n, p in zip(size, padding, strict=True)])]
    reach = [s * d for s, d in zip(_steps(padded), dilation, strict=True)]
    product = np.empty((group_count, channels * math.prod(kernel), samples * run), grad.dtype)
    columns = product.reshape(len(total), *kernel, samples, *([run] if runs else out))
    pairs = []
    for position, index in offsets(kernel, out, stride, dilation):
        begin = sum(i * r for i, r in zip(position, reach, strict=True))
        pairs.append((total[:, :, begin : begin + run] if runs else whole[index], columns[(slice(None), *position)]))
    grad_input = np.empty(shape, grad.dtype)
    for block, some in blocks:
        part = grad[some, _channels(block, count)]
        filled[: part.shape[1], : len(part)] = part.swapaxes(0, 1)
        number = block.stop - block.start
        np.matmul(weights[block], spread.reshape(group_count, count, samples * run)[:number], product[:number])
        total.fill(0)
        for target, values in pairs:
            np.add(target, values, target)
        grad_input[some, _channels(block, channels)] = inner[: number * channels, : len(part)].swapaxes(0, 1)
    return grad_input
