"""Adaptive pooling: the number of windows is given, their sizes follow from it."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from ...._core.layout import has_channels_last, with_channels_last
from ...._dispatch.facts import SPATIAL, Autocast, Layout
from ...._dispatch.registry import aten, composite, op
from ..._support.elementwise import need_float
from ..._support.flops import per_element
from ..._support.half import in_float32
from .._windows import per_dim
from ._checks import check_not_empty, check_one_int
from .pool import gathered, max_pool, spread_max

_INT64 = np.dtype(np.int64)
# Above this many entries a product with the membership matrix is slower than a loop over the windows.
_LARGE = 1 << 14


def _bins(n, out):
    """Start and end of each window."""
    steps = np.arange(out)
    return steps * n // out, -(-(steps + 1) * n // out)


@lru_cache(64)
def _membership(n, out, dtype):
    """(out, n): a row for each window, with a one for each element in it. Only for sizes where this is small."""
    start, end = _bins(n, out)
    at = np.arange(n)
    return ((at >= start[:, None]) & (at < end[:, None])).astype(dtype)


def _output_shape(shape, output_size):
    """`shape` with its spatial dims, the last ones, replaced by `output_size`."""
    return (*shape[: -len(output_size)], *output_size)


def _check_dims(name, shape, dims, mark=""):
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{mark} {list(shape)}")


# ---------------------------------------------------------------- mean


def _apply(array, axis, matrix):
    """The matrix times the array along one axis, counted from the end: -1, -2 or -3."""
    if axis == -1:
        return np.matmul(array, matrix.T)
    if axis == -2:
        return np.matmul(matrix, array)
    flat = array.reshape(*array.shape[:-2], -1)
    return np.matmul(matrix, flat).reshape(*array.shape[:-3], len(matrix), *array.shape[-2:])


def _part(axis, start, end):
    """The index of `start:end` along one axis, counted from the end."""
    return (..., slice(start, end), *(slice(None),) * (-1 - axis))


def _sums(array, output_size, one_by_one=False):
    """The sums of all windows, one axis at a time; `one_by_one` adds window by window instead of by a matrix."""
    for axis, out in zip(range(-len(output_size), 0), output_size, strict=True):
        n = array.shape[axis]
        if out == n:
            continue
        if out == 1:
            array = np.add.reduce(array, axis, keepdims=True)
        elif one_by_one or n * out > _LARGE:
            shape = list(array.shape)
            shape[axis] = out
            sums = np.empty(shape, array.dtype)
            for at, (start, end) in enumerate(zip(*_bins(n, out), strict=True)):
                np.add.reduce(array[_part(axis, start, end)], axis, out=sums[_part(axis, at, at + 1)], keepdims=True)
            array = sums
        else:
            array = _apply(array, axis, _membership(n, out, array.dtype))
    return array


def _spread(array, size, one_by_one=False):
    """Adds each window's value to all elements in it: the transpose of `_sums`."""
    for axis, n in zip(range(-len(size), 0), size, strict=True):
        out = array.shape[axis]
        if out == n:
            continue
        if one_by_one or n * out > _LARGE:
            shape = list(array.shape)
            shape[axis] = n
            spread = np.zeros(shape, array.dtype)
            for at, (start, end) in enumerate(zip(*_bins(n, out), strict=True)):
                spread[_part(axis, start, end)] += array[_part(axis, at, at + 1)]
            array = spread
        else:
            array = _apply(array, axis, _membership(n, out, array.dtype).T)
    return array


def _finite_or_by_window(compute, array, size):
    """`compute` by matrix products, or window by window where the result has nan: 0 * inf spreads it to other windows."""
    result = compute(array, size)
    return compute(array, size, True) if np.isnan(result).any() else result


def _shares(array, size, output_size, quotients=None):
    """The windows' values divided by their numbers of elements; `quotients` is an array to write into."""
    for axis, n, out in zip(range(-len(size), 0), size, output_size, strict=True):
        if n == out:
            continue
        if n % out == 0:
            count = np.array(n // out, array.dtype)
        else:
            start, end = _bins(n, out)
            count = (end - start).astype(array.dtype).reshape(-1, *(1,) * (-1 - axis))
        array = quotients = np.divide(array, count, quotients)
    return array


def _check_output(name, shape):
    """Windows without elements have no gradient to pass on."""
    for dim, n in enumerate(shape[1:], 1):
        if n == 0:
            raise RuntimeError(
                f"{name}(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes "
                f"{list(shape)} with dimension {dim} being empty"
            )


def _declare_mean(dims, *, doc=None):
    name = f"_adaptive_avg_pool{dims}d"
    public = name[1:]
    ints = f"int[{dims}]"
    kernel_name = public if dims == 2 else f"{public}_cpu"

    def check(shape):
        if dims == 2:
            _check_dims(public, shape, dims)
            check_not_empty(public, shape, 2)
        else:
            check_not_empty(public, shape, len(shape) - 1)
            _check_dims(public, shape, dims)

    @op(
        f"{name}(Tensor self, {ints} output_size) -> Tensor",
        layout=Layout.IMAGES if dims == 2 else Layout.ROW_MAJOR,
        node=f"AdaptiveAvgPool{dims}DBackward0",
        shape=lambda self, output_size: (_output_shape(self._array.shape, output_size), self._array.dtype),
        samples=lambda make: [(make(2, 3, *(5, 4, 3)[:dims]), (2, 3, 2)[:dims])],
        batching=SPATIAL[dims],
        flops=per_element(1),
    )
    @in_float32
    def forward(self, output_size):
        size = self.shape[-dims:]
        check(self.shape)
        need_float(kernel_name, self)
        if size == tuple(output_size):
            return self.copy()
        if not self.size:
            return np.zeros(_output_shape(self.shape, output_size), self.dtype)
        total = _finite_or_by_window(_sums, self, output_size)
        if total.size:
            total = _shares(total, size, output_size, total)
        return with_channels_last(total) if dims == 2 and has_channels_last(self) else total

    forward.vjp(self=lambda g, self: getattr(aten, f"{name}_backward")(g, self))

    @op(
        f"{name}_backward(Tensor grad_output, Tensor self) -> Tensor",
        layout=Layout.INPUT_IMAGES,
        samples=lambda make: [],
        shape=lambda grad_output, self: (self._array.shape, self._array.dtype),
    )
    @in_float32
    def backward(grad_output, self):
        _check_output(f"{public}_backward", grad_output.shape)
        size, output_size = self.shape[-dims:], grad_output.shape[-dims:]
        if size == output_size:
            return grad_output.copy()
        if not grad_output.size:
            return np.zeros(self.shape, self.dtype)
        return _finite_or_by_window(_spread, _shares(grad_output, size, output_size), size)

    backward.vjp(grad_output=lambda g, grad_output_shape: getattr(aten, name)(g, grad_output_shape[-dims:]))

    @composite(
        f"{public}(Tensor self, {ints} output_size) -> Tensor",
        samples=lambda make: [(make(2, 3, *(5, 4, 3)[:dims]), (2, 3, 2)[:dims])],
        autocast=Autocast.FLOAT32 if dims == 3 else None,
        out=True,
        doc=doc,
    )
    def public_form(self, output_size):
        wanted = per_dim(output_size, dims)
        if len(wanted) != dims:
            raise RuntimeError(f"{public}: output_size must be {dims}")
        if any(o < 0 for o in wanted):
            raise RuntimeError(
                f"{public}: elements of output_size must be greater than or equal to 0 but received "
                f"{{{wanted[0]}, {','.join(map(str, wanted[1:]))}}}"
            )
        if wanted == (1,) * dims:
            return aten.mean(self, tuple(range(-1, -dims - 1, -1)), True)
        return getattr(aten, name)(self, wanted)


_declare_mean(
    2,
    doc="""Means of as many windows as asked for, over two dims.

    >>> F.adaptive_avg_pool2d(torch.arange(4.0).view(1, 2, 2), 1)
    tensor([[[1.5000]]])
    """,
)
_declare_mean(
    3,
    doc="""Means of as many windows as asked for, over three dims.

    >>> F.adaptive_avg_pool3d(torch.ones(1, 2, 2, 2), 1)
    tensor([[[[1.]]]])
    """,
)


@composite(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", samples=lambda make: [(make(2, 3, 5), (2,))], out=False
)
def adaptive_avg_pool1d(self, output_size):
    """Means of as many windows as asked for, over one dim.

    >>> F.adaptive_avg_pool1d(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
    tensor([[1.5000, 3.5000]])
    """
    check_one_int("adaptive_avg_pool1d", self._array.shape, output_size=output_size)
    return aten.squeeze(aten.adaptive_avg_pool2d(aten.unsqueeze(self, -2), (1, *output_size)), -2)


# ---------------------------------------------------------------- maximum


def _adaptive_max(self, output_size):
    """The maxima of all windows and their flat positions in the input plane."""
    dims = len(output_size)
    size = self.shape[-dims:]
    if not self.size:
        shape = _output_shape(self.shape, output_size)
        return np.zeros(shape, self.dtype), np.zeros(shape, _INT64)
    if all(o and n % o == 0 for n, o in zip(size, output_size, strict=True)):
        kernel = tuple(n // o for n, o in zip(size, output_size, strict=True))
        return max_pool(f"adaptive_max_pool{dims}d", self, kernel, kernel, (0,) * dims, (1,) * dims, False)
    bins = [list(zip(*_bins(n, o), strict=True)) for n, o in zip(size, output_size, strict=True)]
    lead = self.shape[:-dims]
    maxima = np.empty((*lead, *output_size), self.dtype)
    indices = np.empty(maxima.shape, _INT64)
    positions = np.arange(np.prod(size)).reshape(size)
    for place in itertools.product(*map(range, output_size)):
        window = tuple(slice(*bins[axis][at]) for axis, at in enumerate(place))
        values = self[(..., *window)].reshape(*lead, -1)
        best = values.argmax(-1)
        indices[(..., *place)] = positions[window].reshape(-1)[best]
        maxima[(..., *place)] = np.take_along_axis(values, best[..., None], -1)[..., 0]
    return maxima, indices


def _declare_max(dims, *, doc=None):
    name = f"adaptive_max_pool{dims}d"
    kernel_name = name if dims == 2 else f"{name}_cpu"
    ints = f"int[{dims}]"

    def shape(self, output_size):
        pooled = _output_shape(self._array.shape, per_dim(output_size, dims))
        return [(pooled, self._array.dtype), (pooled, _INT64)]

    @op(
        f"{name}(Tensor self, {ints} output_size) -> (Tensor, Tensor)",
        layout=Layout.IMAGES if dims == 2 else Layout.ROW_MAJOR,
        node=f"AdaptiveMaxPool{dims}DBackward0",
        shape=shape,
        samples=lambda make: [(make(2, 3, *(5, 4, 3)[:dims]), (2, 3, 2)[:dims])],
        autocast=Autocast.FLOAT32 if dims == 3 else None,
        batching=SPATIAL[dims],
        doc=doc,
    )
    def forward(self, output_size):
        wanted = per_dim(output_size, dims)
        _check_dims(name, self.shape, dims, ":")
        if len(wanted) != dims:
            raise RuntimeError(f"{name}(): internal error: output_size.size() must be {dims}")
        check_not_empty(name, self.shape, self.ndim - 1)
        if min(wanted) < 0:
            whole = _output_shape(self.shape, wanted)
            negative = next(n for n in whole if n < 0)
            raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(whole)}")
        need_float(kernel_name, self)
        return _adaptive_max(self, wanted)

    forward.vjp(self=lambda g, self, result1: getattr(aten, f"{name}_backward")(g, self, result1))

    @op(
        f"{name}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        layout=Layout.INPUT_IMAGES,
        samples=lambda make: [],
        shape=lambda grad_output, self, indices: (self._array.shape, self._array.dtype),
    )
    def backward(grad_output, self, indices):
        _check_output(f"{name}_backward", grad_output.shape)
        return spread_max(grad_output, indices, self.shape, dims)

    backward.vjp(grad_output=lambda g, indices: gathered(g, indices, dims))


_declare_max(
    2,
    doc="""Maxima of as many windows as asked for over two dims, and their positions.

    >>> torch.ops.aten.adaptive_max_pool2d(torch.arange(4.0).view(1, 2, 2), [1, 1])
    (tensor([[[3.]]]), tensor([[[3]]]))
    """,
)
_declare_max(
    3,
    doc="""Maxima of as many windows as asked for over three dims, and their positions.

    >>> torch.ops.aten.adaptive_max_pool3d(torch.ones(1, 2, 2, 2), [1, 1, 1])[0]
    tensor([[[[1.]]]])
    """,
)


@composite(
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", samples=lambda make: [(make(2, 3, 5), (2,))]
)
def adaptive_max_pool1d(self, output_size):
    """Maxima of as many windows as asked for over one dim, and their positions.

    >>> torch.adaptive_max_pool1d(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
    (tensor([[2., 4.]]), tensor([[1, 3]]))
    """
    check_one_int("adaptive_max_pool1d", self._array.shape, output_size=output_size)
    check_not_empty("adaptive_max_pool1d", self._array.shape, self._array.ndim - 1)
    maxima, indices = aten.adaptive_max_pool2d(aten.unsqueeze(self, -2), (1, *output_size))
    return aten.squeeze(maxima, -2), aten.squeeze(indices, -2)
