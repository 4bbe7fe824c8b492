"""Pooling: windows reduced by maximum or mean, for one to three spatial dims."""

from __future__ import annotations

import math

import numpy as np

from .._dispatch.registry import aten, composite, op
from ._windows import offsets, output_size, pad_spatial

_INT64 = np.dtype(np.int64)


def _each(value, dims):
    value = tuple(int(v) for v in value)
    return value * dims if len(value) == 1 else value


def _pooled_size(size, kernel, stride, padding, dilation, ceil_mode):
    """Windows per dim; with ceil_mode a last window may hang over, if it starts inside the input or its padding."""
    if not ceil_mode:
        return output_size(size, kernel, stride, padding, dilation)
    made = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        count = -(-(n + 2 * p - d * (k - 1) - 1) // s) + 1
        made.append(count - 1 if (count - 1) * s >= n + p else count)
    return tuple(made)


def _settings(dims, kernel, stride, padding, dilation=(1,)):
    kernel = _each(kernel, dims)
    stride = _each(stride, dims) if len(stride) else kernel
    return kernel, stride, _each(padding, dims), _each(dilation, dims)


def _check(name, shape, dims, kernel, stride, padding, out):
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}: Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size "
                           f"for input, but got: {list(shape)}")
    if any(k <= 0 for k in kernel) or any(s <= 0 for s in stride):
        raise RuntimeError("kernel size and stride should be greater than zero")
    if any(p < 0 for p in padding):
        raise RuntimeError("padding must be non-negative")
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={padding[0]}, "
                           f"kernel_size={kernel[0]} and dilation=1")
    if any(n < 1 for n in out):
        given = "x".join(map(str, shape[-dims - 1:]))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({shape[-dims - 1]}x"
                           f"{'x'.join(map(str, out))}). Output size is too small")


def _overhang(size, kernel, stride, padding, dilation, out):
    """How far the last window reaches beyond the padding."""
    return tuple(max(0, (o - 1) * s + d * (k - 1) + 1 - n - 2 * p)
                 for n, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, out, strict=True))


# ---------------------------------------------------------------- maximum


def _max_pool(name, input, kernel, stride, padding, dilation, ceil_mode):
    """The maxima, and the flat position in the input plane of each."""
    dims = len(kernel)
    size = input.shape[-dims:]
    out = _pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    _check(name, input.shape, dims, kernel, stride, padding, out)
    low = -np.inf if input.dtype.kind in "fV" else np.iinfo(input.dtype).min
    padded = pad_spatial(input, padding, low, _overhang(size, kernel, stride, padding, dilation, out))
    best = indices = None
    for position, index in offsets(kernel, out, stride, dilation):
        values = padded[index]
        flat = np.zeros((1,) * dims, np.int64)
        for axis, (p, s, d, n) in enumerate(zip(position, stride, dilation, out, strict=True)):
            along = np.arange(n) * s + p * d - padding[axis]
            flat = flat * size[axis] + along.reshape(-1, *(1,) * (dims - 1 - axis))
        if best is None:
            best = np.array(values)
            indices = np.empty(best.shape, np.int64)
            indices[...] = flat
        else:
            larger = (values > best) | (values != values)
            np.copyto(best, values, where=larger)
            np.copyto(indices, np.broadcast_to(flat, best.shape), where=larger)
    return best, indices


def _spread_max(grad, indices, shape, dims):
    """Gradients put back where the maxima were."""
    planes = math.prod(shape[:-dims])
    area = math.prod(shape[-dims:])
    where = (indices.reshape(planes, -1) + (np.arange(planes) * area)[:, None]).reshape(-1)
    made = np.bincount(where, grad.reshape(-1), planes * area)
    return made.astype(grad.dtype, copy=False).reshape(shape)


def _declare_max(dims):
    ints = f"int[{dims}]"
    name = f"max_pool{dims}d_with_indices"
    node = f"MaxPool{dims}DWithIndicesBackward0"
    arguments = (f"{ints} kernel_size, {ints} stride=[], {ints} padding=0, {ints} dilation=1, bool ceil_mode=False")

    def shape(self, kernel_size, stride, padding, dilation, ceil_mode):
        kernel, stride, padding, dilation = _settings(dims, kernel_size, stride, padding, dilation)
        given = self._array.shape
        made = (*given[:-dims], *_pooled_size(given[-dims:], kernel, stride, padding, dilation, ceil_mode))
        return [(made, self._array.dtype), (made, _INT64)]

    def samples(make):
        return [(make(2, 3, *(4,) * dims), (2,) * dims)]

    @op(f"{name}(Tensor self, {arguments}) -> (Tensor, Tensor)", shape=shape, node=node, samples=samples)
    def forward(self, kernel_size, stride, padding, dilation, ceil_mode):
        kernel, stride, padding, dilation = _settings(dims, kernel_size, stride, padding, dilation)
        return _max_pool(f"max_pool{dims}d", self, kernel, stride, padding, dilation, ceil_mode)

    backward = getattr_later(f"{name}_backward")
    forward.vjp(self=lambda g, self, kernel_size, stride, padding, dilation, ceil_mode, result1:
                backward(g, self, kernel_size, stride, padding, dilation, ceil_mode, result1))

    @op(f"{name}_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} stride, {ints} padding, "
        f"{ints} dilation, bool ceil_mode, Tensor indices) -> Tensor", samples=lambda make: [],
        shape=lambda grad_output, self, *_: (self._array.shape, self._array.dtype))
    def spread(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
        return _spread_max(grad_output, indices, self.shape, dims)

    def gathered(g, indices):
        flat = g.flatten(-dims).gather(-1, indices.flatten(-dims))
        return flat.view(indices.shape)

    spread.vjp(grad_output=lambda g, indices: gathered(g, indices))

    if dims > 1:
        pool = getattr_later(name)
        composite(f"max_pool{dims}d(Tensor self, {arguments}) -> Tensor",
                  lambda self, kernel_size, stride, padding, dilation, ceil_mode:
                  pool(self, kernel_size, stride, padding, dilation, ceil_mode)[0])


def getattr_later(name):
    """An op by name that is looked up when it is called."""
    return lambda *args: getattr(aten, name)(*args)


_declare_max(2)
_declare_max(3)


@composite("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
           "int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
def max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    kernel, stride, padding, dilation = _settings(1, kernel_size, stride, padding, dilation)
    made, indices = aten.max_pool2d_with_indices(self.unsqueeze(-2), (1, *kernel), (1, *stride), (0, *padding),
                                                 (1, *dilation), ceil_mode)
    return made.squeeze(-2), indices.squeeze(-2)


@composite("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, "
           "bool ceil_mode=False) -> Tensor")
def max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode):
    return aten.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


# ---------------------------------------------------------------- mean


def _divisors(size, kernel, stride, padding, out, count_include_pad, divisor_override):
    """What each window's sum is divided by."""
    if divisor_override is not None:
        return divisor_override
    total = np.ones((1,) * len(size))
    for axis, (n, k, s, p, o) in enumerate(zip(size, kernel, stride, padding, out, strict=True)):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        total = total * (end - start).reshape(-1, *(1,) * (len(size) - 1 - axis))
    return total


def _avg_pool(name, input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    dims = len(kernel)
    size = input.shape[-dims:]
    one = (1,) * dims
    out = _pooled_size(size, kernel, stride, padding, one, ceil_mode)
    _check(name, input.shape, dims, kernel, stride, padding, out)
    padded = pad_spatial(input, padding, 0, _overhang(size, kernel, stride, padding, one, out))
    total = None
    for _, index in offsets(kernel, out, stride, one):
        total = np.array(padded[index]) if total is None else np.add(total, padded[index], total)
    return total / np.asarray(_divisors(size, kernel, stride, padding, out, count_include_pad, divisor_override)).astype(
        input.dtype)


def _avg_pool_grad(grad, shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    dims = len(kernel)
    size, out, one = shape[-dims:], grad.shape[-dims:], (1,) * dims
    over = _overhang(size, kernel, stride, padding, one, out)
    made = np.zeros((*shape[:-dims], *[n + 2 * p + e for n, p, e in zip(size, padding, over, strict=True)]), grad.dtype)
    shares = grad / np.asarray(_divisors(size, kernel, stride, padding, out, count_include_pad, divisor_override)).astype(
        grad.dtype)
    for _, index in offsets(kernel, out, stride, one):
        made[index] += shares
    return np.ascontiguousarray(made[(..., *[slice(p, p + n) for n, p in zip(size, padding, strict=True)])])


def _declare_avg(dims):
    ints = f"int[{dims}]"
    name = f"avg_pool{dims}d"

    def shape(self, kernel_size, stride, padding, ceil_mode, *_):
        kernel, stride, padding, one = _settings(dims, kernel_size, stride, padding)
        given = self._array.shape
        return (*given[:-dims], *_pooled_size(given[-dims:], kernel, stride, padding, one, ceil_mode)), self._array.dtype

    @op(f"{name}(Tensor self, {ints} kernel_size, {ints} stride=[], {ints} padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor", shape=shape,
        node=f"AvgPool{dims}DBackward0", samples=lambda make: [(make(2, 3, *(4,) * dims), (2,) * dims)])
    def forward(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        kernel, stride, padding, _ = _settings(dims, kernel_size, stride, padding)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        return _avg_pool(name, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)

    pool, backward = getattr_later(name), getattr_later(f"{name}_backward")
    forward.vjp(self=lambda g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override:
                backward(g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override))

    @op(f"{name}_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} stride, {ints} padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor", samples=lambda make: [],
        shape=lambda grad_output, self, *_: (self._array.shape, self._array.dtype))
    def spread(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        kernel, stride, padding, _ = _settings(dims, kernel_size, stride, padding)
        return _avg_pool_grad(grad_output, self.shape, kernel, stride, padding, ceil_mode, count_include_pad,
                              divisor_override)

    spread.vjp(grad_output=lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override:
               pool(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override))


_declare_avg(2)
_declare_avg(3)


@composite("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
           "bool count_include_pad=True) -> Tensor")
def avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    kernel, stride, padding, _ = _settings(1, kernel_size, stride, padding)
    return aten.avg_pool2d(self.unsqueeze(-2), (1, *kernel), (1, *stride), (0, *padding), ceil_mode,
                           count_include_pad).squeeze(-2)


# ---------------------------------------------------------------- adaptive


def _bins(n, out):
    """Start and end of each adaptive window."""
    steps = np.arange(out)
    return steps * n // out, -(-(steps + 1) * n // out)


def _bin_matrix(n, out, dtype):
    """(out, n): each row averages one window."""
    start, end = _bins(n, out)
    at = np.arange(n)
    inside = (at >= start[:, None]) & (at < end[:, None])
    return (inside / (end - start)[:, None]).astype(dtype)


def _adaptive_shape(self, output_size):
    given = self._array.shape
    dims = len(output_size)
    wanted = tuple(g if o is None or o < 0 else o for g, o in zip(given[-dims:], output_size, strict=True))
    return (*given[:-dims], *wanted)


@op("_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor", node="AdaptiveAvgPool2DBackward0",
    shape=lambda self, output_size: (_adaptive_shape(self, output_size), self._array.dtype),
    samples=lambda make: [(make(2, 3, 5, 4), (2, 3))])
def adaptive_avg_pool2d_kernel(self, output_size):
    rows = _bin_matrix(self.shape[-2], output_size[0], self.dtype)
    cols = _bin_matrix(self.shape[-1], output_size[1], self.dtype)
    return np.matmul(np.matmul(rows, self), cols.T)


adaptive_avg_pool2d_kernel.vjp(self=lambda g, self: aten._adaptive_avg_pool2d_backward(g, self))


@op("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", samples=lambda make: [],
    shape=lambda grad_output, self: (self._array.shape, self._array.dtype))
def adaptive_avg_pool2d_backward(grad_output, self):
    rows = _bin_matrix(self.shape[-2], grad_output.shape[-2], self.dtype)
    cols = _bin_matrix(self.shape[-1], grad_output.shape[-1], self.dtype)
    return np.matmul(np.matmul(rows.T, grad_output), cols)


adaptive_avg_pool2d_backward.vjp(grad_output=lambda g, grad_output_shape:
                                 aten._adaptive_avg_pool2d(g, grad_output_shape[-2:]))


@composite("adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor")
def adaptive_avg_pool2d(self, output_size):
    wanted = _adaptive_shape(self, _each(output_size, 2))[-2:]
    if self._array.ndim not in (3, 4):
        raise RuntimeError(f"adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {list(self.shape)}")
    if wanted == (1, 1):
        return aten.mean(self, (-1, -2), True)
    return aten._adaptive_avg_pool2d(self, wanted)


@composite("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
def adaptive_avg_pool1d(self, output_size):
    return aten.adaptive_avg_pool2d(self.unsqueeze(-2), (1, *_each(output_size, 1))).squeeze(-2)


@op("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", node="AdaptiveMaxPool2DBackward0",
    shape=lambda self, output_size: [(_adaptive_shape(self, output_size), self._array.dtype),
                                     (_adaptive_shape(self, output_size), _INT64)],
    samples=lambda make: [(make(2, 3, 5, 4), (2, 3))])
def adaptive_max_pool2d(self, output_size):
    height, width = self.shape[-2:]
    rows, cols = (list(zip(*_bins(n, o), strict=True)) for n, o in ((height, output_size[0]), (width, output_size[1])))
    made = np.empty((*self.shape[:-2], len(rows), len(cols)), self.dtype)
    indices = np.empty(made.shape, np.int64)
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(cols):
            window = self[..., top:bottom, left:right].reshape(*self.shape[:-2], -1)
            best = window.argmax(-1)
            indices[..., i, j] = (top + best // (right - left)) * width + left + best % (right - left)
            made[..., i, j] = window.max(-1)
    return made, indices


adaptive_max_pool2d.vjp(self=lambda g, self, result1: aten.adaptive_max_pool2d_backward(g, self, result1))


@op("adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", samples=lambda make: [],
    shape=lambda grad_output, self, indices: (self._array.shape, self._array.dtype))
def adaptive_max_pool2d_backward(grad_output, self, indices):
    return _spread_max(grad_output, indices, self.shape, 2)


adaptive_max_pool2d_backward.vjp(grad_output=lambda g, indices:
                                 g.flatten(-2).gather(-1, indices.flatten(-2)).view(indices.shape))


@composite("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
def adaptive_max_pool1d(self, output_size):
    made, indices = aten.adaptive_max_pool2d(self.unsqueeze(-2), (1, *_each(output_size, 1)))
    return made.squeeze(-2), indices.squeeze(-2)
