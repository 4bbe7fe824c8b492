"""Pooling: windows reduced by maximum or mean, for one to three spatial dims."""

from __future__ import annotations

import math

import numpy as np

from ...._core import parallel
from ...._core.tensor import make_tensor
from ...._dispatch.facts import SPATIAL, Autocast, Layout
from ...._dispatch.registry import aten, composite, op
from ..._support.common import sums_by_place
from ..._support.elementwise import need_float
from ..._support.flops import per_element
from ..._support.half import in_float32
from .._windows import offsets, output_size, pad_spatial
from ._checks import check_one_int, check_ordered, refuse, settings

_INT64 = np.dtype(np.int64)
# Windows that are worked on together.
_BLOCK = 1 << 14


def _pooled_size(size, kernel, stride, padding, dilation, ceil_mode):
    """Windows per dim; with ceil_mode a last window may hang over, if it starts inside the input or its padding."""
    if not ceil_mode:
        return output_size(size, kernel, stride, padding, dilation)
    counts = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        count = -(-(n + 2 * p - d * (k - 1) - 1) // s) + 1
        counts.append(count - 1 if (count - 1) * s >= n + p else count)
    return tuple(counts)


def _check(name, shape, kernel, stride, padding, dilation, ceil_mode):
    """The number of windows per dim; RuntimeError where there is no such pooling."""
    dims = len(kernel)
    out = None
    if len(shape) - dims in (1, 2) and min(kernel) > 0 and min(stride) > 0 and min(padding) >= 0 and min(dilation) > 0:
        out = _pooled_size(shape[-dims:], kernel, stride, padding, dilation, ceil_mode)
        if (
            min(out) > 0
            and 0 not in shape[-dims - 1 :]
            and all(map(_fits, padding, kernel))
            and (name != "avg_pool3d" or all(map(_is_within, kernel, shape[-3:])))
        ):
            return out
    return refuse(name, shape, kernel, stride, padding, dilation, out)


def _fits(padding, kernel):
    return 2 * padding <= kernel


def _is_within(kernel, size):
    return kernel <= size


def _overhang(size, kernel, stride, padding, dilation, out):
    """How far the last window reaches beyond the padding."""
    return tuple(
        max(0, (o - 1) * s + d * (k - 1) + 1 - n - 2 * p)
        for n, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, out, strict=True)
    )


# ---------------------------------------------------------------- maximum


def _max_views(name, input, kernel, stride, padding, dilation, ceil_mode):
    """For each position in the kernel, the elements it meets in every window; and the number of windows."""
    dims = len(kernel)
    size = input.shape[-dims:]
    out = _check(name, input.shape, kernel, stride, padding, dilation, ceil_mode)
    check_ordered(name, input)
    low = -np.inf if input.dtype.kind in "fV" else np.iinfo(input.dtype).min
    padded = pad_spatial(input, padding, low, _overhang(size, kernel, stride, padding, dilation, out))
    return [padded[index] for _, index in offsets(kernel, out, stride, dilation)], out


def _maxima(views, out=None):
    """The maximum of the views, place by place, in `out` or a new array."""
    best = np.maximum(views[0], views[min(1, len(views) - 1)], out=out)
    for view in views[2:]:
        np.maximum(best, view, out=best)
    return best


def _fill_maxima(views, best, indices, steps, corner):
    """Write the maxima of the views to `best`, and their positions to `indices`."""
    _maxima(views, best)
    # Which position holds the maximum: count the positions before the first that equals it. None equals nan, which
    # is then taken to be the last.
    rank = np.zeros(best.shape, np.uint8 if len(views) < 256 else np.int32)
    if len(views) > 1:
        missed = np.not_equal(views[0], best)
        differs = np.empty(best.shape, bool)
        rank += missed
        for view in views[1:-1]:
            np.not_equal(view, best, differs)
            np.logical_and(missed, differs, missed)
            rank += missed
    steps.take(rank, None, indices, "clip")  # which raises nothing and so needs no second array
    np.add(indices, corner, indices)


def max_pool(name, input, kernel, stride, padding, dilation, ceil_mode):
    """The maxima, and the flat position in the input plane of each."""
    views, out = _max_views(name, input, kernel, stride, padding, dilation, ceil_mode)
    dims = len(kernel)
    size = input.shape[-dims:]
    steps, corner = np.zeros((1,) * dims, _INT64), np.zeros((1,) * dims, _INT64)
    for axis in range(dims):
        tail = (1,) * (dims - 1 - axis)
        steps = steps * size[axis] + (np.arange(kernel[axis]) * dilation[axis]).reshape(-1, *tail)
        corner = corner * size[axis] + (np.arange(out[axis]) * stride[axis] - padding[axis]).reshape(-1, *tail)
    best, indices = np.empty_like(views[0]), np.empty_like(views[0], _INT64)

    def work(part):
        _fill_maxima([view[part] for view in views], best[part], indices[part], steps.reshape(-1), corner)

    # Some samples at a time: their maxima stay in the cache, and threads share them.
    parallel.blocks(len(best), max(1, _BLOCK * len(best) // max(best.size, 1)), work)
    return best, indices


def spread_max(grad, indices, shape, dims, overlapping=True):
    """Adds each gradient at its maximum's position; overlapping windows may share one."""
    planes = math.prod(shape[:-dims])
    area = math.prod(shape[-dims:])
    if not grad.size:
        return np.zeros(shape, grad.dtype)
    where = (indices.reshape(planes, -1) + (np.arange(planes) * area)[:, None]).reshape(-1)
    if overlapping:
        return sums_by_place(where, grad.reshape(-1), planes * area).astype(grad.dtype, copy=False).reshape(shape)
    grad_input = np.zeros(planes * area, grad.dtype)
    grad_input[where] = grad.reshape(-1)
    return grad_input.reshape(shape)


def gathered(g, indices, dims):
    """The elements at the maxima: the transpose of `spread_max`, in ops."""
    return g.flatten(-dims).gather(-1, indices.flatten(-dims)).view(indices.shape)


def _declare_max(dims, docs):
    ints = f"int[{dims}]"
    public = f"max_pool{dims}d"
    name = f"{public}_with_indices"
    node = f"MaxPool{dims}DWithIndicesBackward0"
    arguments = f"{ints} kernel_size, {ints} stride=[], {ints} padding=0, {ints} dilation=1, bool ceil_mode=False"

    def shape(self, kernel_size, stride, padding, dilation, ceil_mode):
        kernel, stride, padding, dilation = settings(public, dims, kernel_size, stride, padding, dilation)
        input_shape = self._array.shape
        pooled = (*input_shape[:-dims], *_pooled_size(input_shape[-dims:], kernel, stride, padding, dilation, ceil_mode))
        return [(pooled, self._array.dtype), (pooled, _INT64)]

    def samples(make):
        ones = (1,) * dims
        return [(make(2, 3, *(4,) * dims), (2,) * dims), (make(1, 2, *(5,) * dims), (3,) * dims, ones, ones)]

    @op(
        f"{name}(Tensor self, {arguments}) -> (Tensor, Tensor)",
        layout=Layout.VOLUMES if dims == 3 else Layout.IMAGES,
        shape=shape,
        node=node,
        samples=samples,
        batching=SPATIAL[dims],
        doc=docs[name],
    )
    def forward(self, kernel_size, stride, padding, dilation, ceil_mode):
        kernel, stride, padding, dilation = settings(public, dims, kernel_size, stride, padding, dilation)
        return max_pool(public, self, kernel, stride, padding, dilation, ceil_mode)

    backward = getattr_later(f"{name}_backward")
    forward.vjp(
        self=lambda g, self, kernel_size, stride, padding, dilation, ceil_mode, result1: backward(
            g, self, kernel_size, stride, padding, dilation, ceil_mode, result1
        )
    )

    @op(
        f"{name}_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} stride, {ints} padding, "
        f"{ints} dilation, bool ceil_mode, Tensor indices) -> Tensor",
        layout=Layout.INPUT_IMAGES,
        samples=lambda make: [],
        shape=lambda grad_output, self, *_: (self._array.shape, self._array.dtype),
    )
    def spread(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
        kernel, stride, padding, dilation = settings(public, dims, kernel_size, stride, padding, dilation)
        overlapping = any(s < d * (k - 1) + 1 for k, s, d in zip(kernel, stride, dilation, strict=True))
        return spread_max(grad_output, indices, self.shape, dims, overlapping)

    spread.vjp(grad_output=lambda g, indices: gathered(g, indices, dims))

    if dims > 1:
        pool = getattr_later(name)
        composite(
            f"{public}(Tensor self, {arguments}) -> Tensor",
            lambda self, kernel_size, stride, padding, dilation, ceil_mode: pool(
                self, kernel_size, stride, padding, dilation, ceil_mode
            )[0],
            samples=samples,
            autocast=Autocast.FLOAT32 if dims == 3 else None,
            doc=docs[public],
        )


def getattr_later(name):
    """A function that looks an op up by name at each call, for formulas declared before that op."""
    return lambda *args: getattr(aten, name)(*args)


_declare_max(
    2,
    docs={
        "max_pool2d_with_indices": """Maxima of windows that slide over two dims, and their positions.

        >>> torch.ops.aten.max_pool2d_with_indices(torch.arange(4.0).view(1, 2, 2), [2, 2])
        (tensor([[[3.]]]), tensor([[[3]]]))
        """,
        "max_pool2d": """Maxima of windows that slide over two dims.

        >>> F.max_pool2d(torch.arange(4.0).view(1, 2, 2), 2)
        tensor([[[3.]]])
        """,
    },
)
_declare_max(
    3,
    docs={
        "max_pool3d_with_indices": """Maxima of windows that slide over three dims, and their positions.

        >>> torch.ops.aten.max_pool3d_with_indices(torch.ones(1, 2, 2, 2), [2, 2, 2])[0]
        tensor([[[[1.]]]])
        """,
        "max_pool3d": """Maxima of windows that slide over three dims.

        >>> F.max_pool3d(torch.ones(1, 2, 2, 2), 2)
        tensor([[[[1.]]]])
        """,
    },
)

_ARGUMENTS_1D = "int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False"


@composite(
    f"max_pool1d_with_indices(Tensor self, {_ARGUMENTS_1D}) -> (Tensor, Tensor)", samples=lambda make: [(make(2, 3, 6), (2,))]
)
def max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    """Maxima of windows that slide over one dim, and their positions.

    >>> torch.max_pool1d_with_indices(torch.tensor([[1.0, 2.0]]), 2)
    (tensor([[2.]]), tensor([[1]]))
    """
    check_one_int("max_pool1d", self._array.shape, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
    maxima, indices = aten.max_pool2d_with_indices(
        aten.unsqueeze(self, -2), (1, *kernel_size), (1, *(stride or kernel_size)), (0, *padding), (1, *dilation), ceil_mode
    )
    return aten.squeeze(maxima, -2), aten.squeeze(indices, -2)


@composite(
    f"max_pool1d(Tensor self, {_ARGUMENTS_1D}) -> Tensor",
    samples=lambda make: [(make(2, 3, 6), (2,))],
    doc="""Maxima of windows that slide over one dim.

    >>> F.max_pool1d(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
    tensor([[2., 4.]])
    """,
)
def max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode):
    """With history, composed of the pooling in two dims; without, a kernel that skips the indices."""
    wanted = settings("max_pool1d", 1, kernel_size, stride, padding, dilation)
    if self._keys:
        _check("max_pool1d", self._array.shape, *wanted, ceil_mode)
        return aten.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]
    need_float("max_pool1d_impl", self._array)
    views, _ = _max_views("max_pool1d", self._array, *wanted, ceil_mode)
    return make_tensor(_maxima(views))


# ---------------------------------------------------------------- mean


def _divisors(size, kernel, stride, padding, out, ceil_mode, count_include_pad, divisor_override):
    """The divisor of each window's sum: a number, or an array where windows reach beyond the elements that count."""
    if divisor_override is not None:
        return divisor_override
    if not ceil_mode and (count_include_pad or not any(padding)):
        return math.prod(kernel)
    total = np.ones((1,) * len(size))
    for axis, (n, k, s, p, o) in enumerate(zip(size, kernel, stride, padding, out, strict=True)):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        total = total * (end - start).reshape(-1, *(1,) * (len(size) - 1 - axis))
    return total


def _shares(total, divisors, out=None):
    """A window's sum divided by its number of elements; integers are cut off towards zero."""
    if total.dtype.kind == "i":
        quotient = np.abs(total) // np.abs(divisors).astype(total.dtype)
        return np.where(np.less(total, 0) != np.less(divisors, 0), -quotient, quotient)
    if isinstance(divisors, np.ndarray):
        return np.divide(total, divisors.astype(total.dtype), out)
    return np.divide(total, np.array(divisors, total.dtype), out)


def _avg_pool(name, kernel_name, input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    dims = len(kernel)
    size = input.shape[-dims:]
    dilation = (1,) * dims
    out = _check(name, input.shape, kernel, stride, padding, dilation, ceil_mode)
    if input.dtype != _INT64:
        need_float(kernel_name, input)
    padded = pad_spatial(input, padding, 0, _overhang(size, kernel, stride, padding, dilation, out))
    total = None
    for _, index in offsets(kernel, out, stride, dilation):
        total = np.array(padded[index]) if total is None else np.add(total, padded[index], total)
    return _shares(total, _divisors(size, kernel, stride, padding, out, ceil_mode, count_include_pad, divisor_override), total)


def _avg_pool_grad(grad, shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    dims = len(kernel)
    size, out, dilation = shape[-dims:], grad.shape[-dims:], (1,) * dims
    over = _overhang(size, kernel, stride, padding, dilation, out)
    grad_input = np.zeros((*shape[:-dims], *[n + 2 * p + e for n, p, e in zip(size, padding, over, strict=True)]), grad.dtype)
    divisors = _divisors(size, kernel, stride, padding, out, ceil_mode, count_include_pad, divisor_override)
    shares = _shares(grad, divisors)
    for _, index in offsets(kernel, out, stride, dilation):
        grad_input[index] += shares
    if not any(padding) and not any(over):
        return grad_input
    return np.ascontiguousarray(grad_input[(..., *[slice(p, p + n) for n, p in zip(size, padding, strict=True)])])


def _declare_avg(dims, *, doc=None):
    ints = f"int[{dims}]"
    name = f"avg_pool{dims}d"
    kernel_name = name if dims == 2 else f"{name}_out_frame"

    def shape(self, kernel_size, stride, padding, ceil_mode, *_):
        kernel, stride, padding, dilation = settings(name, dims, kernel_size, stride, padding)
        input_shape = self._array.shape
        out = _pooled_size(input_shape[-dims:], kernel, stride, padding, dilation, ceil_mode)
        return (*input_shape[:-dims], *out), self._array.dtype

    @op(
        f"{name}(Tensor self, {ints} kernel_size, {ints} stride=[], {ints} padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        layout=Layout.IMAGES if dims == 2 else Layout.ROW_MAJOR,
        shape=shape,
        node=f"AvgPool{dims}DBackward0",
        samples=lambda make: [(make(2, 3, *(4,) * dims), (2,) * dims)],
        autocast=Autocast.FLOAT32 if dims == 3 else None,
        batching=SPATIAL[dims],
        flops=per_element(1),
        doc=doc,
    )
    @in_float32
    def forward(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        kernel, stride, padding, _ = settings(name, dims, kernel_size, stride, padding)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        return _avg_pool(name, kernel_name, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)

    pool, backward = getattr_later(name), getattr_later(f"{name}_backward")
    forward.vjp(
        self=lambda g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: backward(
            g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    )

    @op(
        f"{name}_backward(Tensor grad_output, Tensor self, {ints} kernel_size, {ints} stride, {ints} padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        layout=Layout.INPUT_IMAGES,
        samples=lambda make: [],
        shape=lambda grad_output, self, *_: (self._array.shape, self._array.dtype),
    )
    @in_float32
    def spread(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        kernel, stride, padding, _ = settings(name, dims, kernel_size, stride, padding)
        return _avg_pool_grad(grad_output, self.shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)

    spread.vjp(
        grad_output=lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: pool(
            g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    )


_declare_avg(
    2,
    doc="""Means of windows that slide over two dims.

    >>> F.avg_pool2d(torch.arange(4.0).view(1, 2, 2), 2)
    tensor([[[1.5000]]])
    """,
)
_declare_avg(
    3,
    doc="""Means of windows that slide over three dims.

    >>> F.avg_pool3d(torch.ones(1, 2, 2, 2), 2)
    tensor([[[[1.]]]])
    """,
)


@composite(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    samples=lambda make: [(make(2, 3, 6), (2,))],
    out=False,
)
def avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Means of windows that slide over one dim.

    >>> F.avg_pool1d(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
    tensor([[1.5000, 3.5000]])
    """
    check_one_int("avg_pool1d", self._array.shape, kernel_size=kernel_size, stride=stride, padding=padding)
    return aten.squeeze(
        aten.avg_pool2d(
            aten.unsqueeze(self, -2),
            (1, *kernel_size),
            (1, *(stride or kernel_size)),
            (0, *padding),
            ceil_mode,
            count_include_pad,
        ),
        -2,
    )
