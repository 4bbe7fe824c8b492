"""Adaptive pooling: as many windows as asked for, of whatever sizes that takes."""

from __future__ import annotations

import itertools

import numpy as np

from .._dispatch.registry import aten, composite, op
from ._half import in_float32
from .pool import gathered, max_pool, spread_max

_INT64 = np.dtype(np.int64)


def _bins(n, out):
    """Start and end of each window."""
    steps = np.arange(out)
    return steps * n // out, -(-(steps + 1) * n // out)


def _bin_matrix(n, out, dtype):
    """(out, n): each row averages one window."""
    start, end = _bins(n, out)
    at = np.arange(n)
    inside = (at >= start[:, None]) & (at < end[:, None])
    return (inside / (end - start)[:, None]).astype(dtype)


def _each(value, dims):
    return tuple(value) * dims if len(value) == 1 else tuple(value)


def _wanted(name, shape, output_size, dims):
    """The output's shape; RuntimeError for an input that cannot be pooled."""
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got {list(shape)}")
    if len(output_size) != dims:
        raise RuntimeError(f"{name}(): internal error: output_size.size() must be {dims}, but got {list(output_size)}")
    if min(shape[-dims:]) == 0:
        raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has "
                           f"sizes {list(shape)}")
    if any(o is not None and o < 0 for o in output_size):
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received "
                           f"{list(output_size)}")
    return (*shape[:-dims], *[n if o is None else o for n, o in zip(shape[-dims:], output_size, strict=True)])


# ---------------------------------------------------------------- mean


def _apply(array, axis, matrix):
    """The matrix times the array along one axis, counted from the end: -1, -2 or -3."""
    if axis == -1:
        return np.matmul(array, matrix.T)
    if axis == -2:
        return np.matmul(matrix, array)
    flat = array.reshape(*array.shape[:-2], -1)
    return np.matmul(matrix, flat).reshape(*array.shape[:-3], len(matrix), *array.shape[-2:])


def _declare_mean(dims):
    name = f"_adaptive_avg_pool{dims}d"
    public = name[1:]
    ints = f"int[{dims}]"
    axes = range(-dims, 0)

    @op(f"{name}(Tensor self, {ints} output_size) -> Tensor", node=f"AdaptiveAvgPool{dims}DBackward0",
        shape=lambda self, output_size: (_wanted(public, self._array.shape, output_size, dims), self._array.dtype),
        samples=lambda make: [(make(2, 3, *(5, 4, 3)[:dims]), (2, 3, 2)[:dims])])
    @in_float32
    def forward(self, output_size):
        _wanted(public, self.shape, output_size, dims)
        for axis in axes:
            self = _apply(self, axis, _bin_matrix(self.shape[axis], output_size[axis], self.dtype))
        return self

    forward.vjp(self=lambda g, self: getattr(aten, f"{name}_backward")(g, self))

    @op(f"{name}_backward(Tensor grad_output, Tensor self) -> Tensor", samples=lambda make: [],
        shape=lambda grad_output, self: (self._array.shape, self._array.dtype))
    @in_float32
    def backward(grad_output, self):
        for axis in axes:
            grad_output = _apply(grad_output, axis,
                                 _bin_matrix(self.shape[axis], grad_output.shape[axis], self.dtype).T)
        return grad_output

    backward.vjp(grad_output=lambda g, grad_output_shape: getattr(aten, name)(g, grad_output_shape[-dims:]))

    @composite(f"{public}(Tensor self, {ints} output_size) -> Tensor",
               samples=lambda make: [(make(2, 3, *(5, 4, 3)[:dims]), (2, 3, 2)[:dims])])
    def public_form(self, output_size):
        wanted = _wanted(public, self._array.shape, _each(output_size, dims), dims)[-dims:]
        if wanted == (1,) * dims:
            return aten.mean(self, tuple(range(-1, -dims - 1, -1)), True)
        return getattr(aten, name)(self, wanted)


_declare_mean(2)
_declare_mean(3)


@composite("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
           samples=lambda make: [(make(2, 3, 5), (2,))])
def adaptive_avg_pool1d(self, output_size):
    _wanted("adaptive_avg_pool1d", self._array.shape, output_size, 1)
    return aten.squeeze(aten.adaptive_avg_pool2d(aten.unsqueeze(self, -2), (1, *output_size)), -2)


# ---------------------------------------------------------------- maximum


def _adaptive_max(self, output_size):
    """The maxima of all windows and their flat positions in the input plane."""
    dims = len(output_size)
    size = self.shape[-dims:]
    if all(o and n % o == 0 for n, o in zip(size, output_size, strict=True)):
        kernel = tuple(n // o for n, o in zip(size, output_size, strict=True))
        return max_pool("adaptive_max_pool", self, kernel, kernel, (0,) * dims, (1,) * dims, False)
    bins = [list(zip(*_bins(n, o), strict=True)) for n, o in zip(size, output_size, strict=True)]
    lead = self.shape[:-dims]
    made = np.empty((*lead, *output_size), self.dtype)
    indices = np.empty(made.shape, _INT64)
    positions = np.arange(np.prod(size)).reshape(size)
    for place in itertools.product(*map(range, output_size)):
        window = tuple(slice(*bins[axis][at]) for axis, at in enumerate(place))
        values = self[(..., *window)].reshape(*lead, -1)
        best = values.argmax(-1)
        indices[(..., *place)] = positions[window].reshape(-1)[best]
        made[(..., *place)] = np.take_along_axis(values, best[..., None], -1)[..., 0]
    return made, indices


def _declare_max(dims):
    name = f"adaptive_max_pool{dims}d"
    ints = f"int[{dims}]"

    def shape(self, output_size):
        made = _wanted(name, self._array.shape, _each(output_size, dims), dims)
        return [(made, self._array.dtype), (made, _INT64)]

    @op(f"{name}(Tensor self, {ints} output_size) -> (Tensor, Tensor)", node=f"AdaptiveMaxPool{dims}DBackward0",
        shape=shape, samples=lambda make: [(make(2, 3, *(5, 4, 3)[:dims]), (2, 3, 2)[:dims])])
    def forward(self, output_size):
        return _adaptive_max(self, _wanted(name, self.shape, _each(output_size, dims), dims)[-dims:])

    forward.vjp(self=lambda g, self, result1: getattr(aten, f"{name}_backward")(g, self, result1))

    @op(f"{name}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", samples=lambda make: [],
        shape=lambda grad_output, self, indices: (self._array.shape, self._array.dtype))
    def backward(grad_output, self, indices):
        return spread_max(grad_output, indices, self.shape, dims)

    backward.vjp(grad_output=lambda g, indices: gathered(g, indices, dims))


_declare_max(2)
_declare_max(3)


@composite("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
           samples=lambda make: [(make(2, 3, 5), (2,))])
def adaptive_max_pool1d(self, output_size):
    _wanted("adaptive_max_pool1d", self._array.shape, output_size, 1)
    made, indices = aten.adaptive_max_pool2d(aten.unsqueeze(self, -2), (1, *output_size))
    return aten.squeeze(made, -2), aten.squeeze(indices, -2)
