"""Sums, means and products over some or all dims."""

from __future__ import annotations

import math
from itertools import takewhile

import numpy as np

from ..._core import dtype as dt
from ..._core import parallel
from ..._core.half_precision import MANY, cast, is_half
from ..._core.layout import on_the_way
from ..._core.single_pass import reduced
from ..._core.threads import threads
from ..._dispatch.facts import Autocast, Batching, Layout
from ..._dispatch.out_dtypes import castable
from ..._dispatch.registry import aten, op
from .._support.blas_sums import column_sums, row_sums
from .._support.common import home_of, normal_dim, normal_dims, np_dtype, reduced_shape
from .._support.flops import per_element
from .._support.half import is_narrow
from .._support.out_rules import computes_in_out
from ..creation.copy import converted
from ..pointwise.arithmetic import conj

_INT64 = np.dtype(np.int64)
_BOOL = np.dtype(np.bool_)
_FLOAT32 = np.dtype(np.float32)
_add_reduce = np.add.reduce


def axes_of(dim, ndim):
    """Dims as NumPy takes them: None for all, and NumPy itself looks for wrong or repeated ones."""
    if dim is None or len(dim) == 0:
        return None
    return tuple(dim) if ndim else normal_dims(dim, 0)


def reduced_numel(shape, dim):
    """How many elements go into one result."""
    if dim is None or len(dim) == 0:
        return math.prod(shape)
    return math.prod([shape[d] for d in dim]) if shape else 1


def by_dims(make):
    """Samples of a reduction that takes a list of dims."""
    return [(make(3, 4), 1), (make(3, 4), (0, -1), True), (make(2, 3, 2), (0, 2))]


def by_dim(make):
    """Samples of a reduction that takes one dim."""
    return [(make(3, 4), 1), (make(3, 4), -2, True)]


# ---------------------------------------------------------------- sums


# From so many elements on BLAS adds up rows and columns, and vectors.
_SOME = 1 << 14
_MANY = 1 << 16
# What BLAS adds one after another, in a few lanes, drifts: longer rows are summed by halves, columns and vectors in blocks.
_LONGEST_ROW = 1 << 14
_TALLEST = 512
_BLOCK = 4096
_HUGE = 1 << 23  # from here on two threads add up rows and columns faster than one
_ROWS = 256  # of so many elements that a thread adds up
_block_ones = np.ones(_BLOCK, _FLOAT32)


def _add_float32(array, axes, keepdim):
    if array.size >= _SOME and array.flags.c_contiguous:
        if axes is not None:
            return _add_along(array, axes, keepdim)
        if not keepdim and array.size >= _MANY:
            return _add_many(array.reshape(-1))
    return reduced(_add_reduce, array, axes, None, keepdim)


def _add_along(array, axes, keepdim):
    """Sums along dims: by BLAS over the first ones and the last ones, which takes a third to two thirds of the time."""
    shape, ndim = array.shape, array.ndim
    dims = {dim % ndim for dim in axes if -ndim <= dim < ndim}
    if len(dims) < len(axes) or all(shape[dim] == 1 for dim in dims):  # a wrong or repeated dim, or nothing to add
        return _add_reduce(array, axes, None, None, keepdim)
    last = ndim - len(list(takewhile(dims.__contains__, reversed(range(ndim)))))
    first = len(list(takewhile(dims.__contains__, range(last))))
    width, height = math.prod(shape[last:]), math.prod(shape[:first])
    if 1 < width <= _LONGEST_ROW:
        array = _row_sums(array.reshape(-1, width))
    elif width > 1:
        array = reduced(_add_reduce, array.reshape(-1, width), 1)
    if height > 1:
        array = _add_rows(array.reshape(height, -1))
    inner = tuple(dim - first for dim in dims if first <= dim < last)
    total = array.reshape(shape[first:last])
    if inner:
        total = _add_reduce(total, inner)
    return total.reshape([1 if dim in dims else n for dim, n in enumerate(shape) if keepdim or dim not in dims])


def _row_sums(rows):
    """The sums of the rows of a matrix."""
    if rows.size < _HUGE:
        return row_sums(rows)
    sums = np.empty((len(rows), 1), _FLOAT32)
    step = max(_ROWS * _BLOCK // rows.shape[1], 1)
    parallel.blocks(len(rows), step, lambda part: np.copyto(sums[part], row_sums(rows[part])))
    return sums


def _add_rows(rows):
    """The sums of the columns of a matrix: of so many rows at a time, and then of their sums."""
    if len(rows) <= _TALLEST:
        return column_sums(rows)
    sums = np.empty((-(-len(rows) // _TALLEST), rows.shape[1]), rows.dtype)

    def add(part):
        sums[part.start // _TALLEST] = column_sums(rows[part])

    share = parallel.blocks if rows.size >= _HUGE else parallel.each_block
    share(len(rows), _TALLEST, add)
    return _add_rows(sums)


def _add_many(array):
    """The sum of a long vector: BLAS adds up blocks of it, twice as fast as a reduction, which then adds their sums."""
    whole = array.size // _BLOCK * _BLOCK
    rows = array[:whole].reshape(-1, _BLOCK)
    sums = np.empty(len(rows), _FLOAT32)
    parallel.blocks(len(rows), _ROWS, lambda part: np.dot(rows[part], _block_ones, sums[part]))
    total = _add_reduce(sums)
    return total if whole == array.size else total + _add_reduce(array[whole:])


def _sum_dtype(array, dtype):
    """Integers are summed as int64, everything else in its own dtype."""
    if dtype is not None:
        return np_dtype(dtype)
    return _INT64 if array.dtype.kind in "iub" else array.dtype


def _real(array, wanted):
    """The array in a real dtype, with torch's warning, where it is complex and such a dtype is wanted."""
    return converted(array, wanted) if array.dtype.kind in "cW" and wanted.kind not in "cWb" else array


def add_up(array, axes, keepdim, dtype):
    """The sum in the dtype that `sum(dtype=...)` gives."""
    wanted = _sum_dtype(array, dtype)
    if wanted is _BOOL and array.dtype.kind == "W":  # complex32: its conversion to bools would lose the imaginary parts
        array = array.astype(np.complex64)
    array = _real(array, wanted)
    if array.dtype is wanted and array.size >= MANY and is_half(wanted):
        return np.asarray(_add_float32(cast(array, _FLOAT32), axes, keepdim)).astype(wanted)
    if wanted.kind == "V":  # extension floats are summed in float32: in their own precision long sums stop growing
        return np.asarray(reduced(_add_reduce, array, axes, _FLOAT32, keepdim)).astype(wanted)
    if wanted is _BOOL:
        return reduced(np.logical_or.reduce, array, axes, None, keepdim)
    if wanted is not array.dtype:
        array = array.astype(wanted) if wanted.kind in "iu" and array.dtype.kind in "fV" else on_the_way(array, wanted)
    return reduced(_add_reduce, array, axes, wanted, keepdim)


def _sum_shape(self, dim=None, keepdim=False, dtype=None):
    return reduced_shape(self._array.shape, dim, keepdim), _sum_dtype(self._array, dtype)


def unsqueezed(g, shape, dim, keepdim):
    """The result of a reduction with the reduced dims back, each of size 1."""
    if not keepdim and shape and dim is not None and len(dim):
        for d in sorted(normal_dims(dim, len(shape))):
            g = aten.unsqueeze(g, d)
    return g


def expand_reduced(g, shape, dim, keepdim):
    """A gradient of a reduction, brought back over the dims that were reduced."""
    return aten.expand(unsqueezed(g, shape, dim, keepdim), shape)


@op(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    refuses_integer_results=True,
    shape=lambda self, dtype: _sum_shape(self, None, False, dtype),
    batching=Batching.REDUCTION,
    flops=per_element(1),
    out=False,
)
def sum_all(self, dtype):
    """The sum of all elements, or along one or several dims.

    >>> torch.sum(torch.tensor([[1, 2], [3, 4]]))
    tensor(10)
    >>> torch.sum(torch.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """
    if dtype is None and self.dtype is _FLOAT32:
        return _add_float32(self, None, False)
    return add_up(self, None, False, dtype)


sum_all.vjp(self=lambda g, self_shape: aten.expand(g, self_shape))


@op(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    refuses_integer_results=True,
    shape=_sum_shape,
    node="SumBackward1",
    samples=by_dims,
    batching=Batching.REDUCTION,
    flops=per_element(1),
    out_overload="IntList_out",
    out_rule=computes_in_out,
)
def sum_dims(self, dim, keepdim, dtype):
    axes = axes_of(dim, self.ndim)
    try:
        if dtype is None and self.dtype is _FLOAT32:
            return _add_float32(self, axes, keepdim)
        return add_up(self, axes, keepdim, dtype)
    except ValueError:
        normal_dims(dim, self.ndim)  # a dim that is named twice
        raise


sum_dims.vjp(self=lambda g, self_shape, dim, keepdim: expand_reduced(g, self_shape, dim, keepdim))

# ---------------------------------------------------------------- means


def mean_dtype(array, dtype, name="mean"):
    """The dtype of a mean; integers have none of their own."""
    wanted = array.dtype if dtype is None else np_dtype(dtype)
    if wanted.kind in "iub":
        what = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"{name}(): could not infer output dtype. {what} dtype must be either a floating point or "
            f"complex dtype. Got: {dt.from_numpy(wanted).scalar_name}"
        )
    return wanted


def _mean_into(op, args, out):
    """Means of all elements go into what these can be cast to, and are computed in that dtype."""
    if not dt.can_cast(dt.from_numpy(mean_dtype(args[0]._array, args[-1])), out.dtype):
        raise RuntimeError(f"mean.dtype_out(): input types can't be cast to the desired output type {out.dtype.scalar_name}")
    return computes_in_out(op, args, out)


def _mean_along_into(op, args, out):
    """Means along dims are computed in the dtype of any floating tensor: complex ones lose what it cannot hold."""
    mean_dtype(args[0]._array, args[-1])
    normal_dims(args[1], args[0]._array.ndim)
    if not (out.dtype.is_floating_point or out.dtype.is_complex):
        castable(dt.get_default_dtype(), out.dtype)
    return computes_in_out(op, args, out)


def _average(total, count):
    """total / count, into total itself where that is an array."""
    if total.__class__ is np.ndarray and total.ndim:
        return np.divide(total, np.array(count, total.dtype), total)
    return total / count if count else total * np.nan


def _mean(self, axes, keepdim, dtype, count):
    if dtype is None and self.dtype is _FLOAT32:
        return _average(_add_float32(self, axes, keepdim), count)
    wanted = mean_dtype(self, dtype)
    self = _real(self, wanted)
    if self.dtype is wanted and self.size >= MANY and is_half(wanted):
        return np.asarray(_average(_add_float32(cast(self, _FLOAT32), axes, keepdim), count)).astype(wanted)
    if is_narrow(wanted):
        return np.asarray(_average(reduced(_add_reduce, self, axes, _FLOAT32, keepdim), count)).astype(wanted)
    return _average(reduced(_add_reduce, self, axes, wanted, keepdim), count)


@op(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    shape=lambda self, dtype: ((), mean_dtype(self._array, dtype)),
    batching=Batching.REDUCTION,
    flops=per_element(1),
    out_overload="dtype_out",
    out_rule=_mean_into,
)
def mean_all(self, dtype):
    """The mean of all elements, or along one or several dims.

    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([2., 3.])
    """
    return _mean(self, None, False, dtype, self.size)


mean_all.vjp(self=lambda g, self_shape: aten.expand(g, self_shape) / math.prod(self_shape))


@op(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    node="MeanBackward1",
    shape=lambda self, dim, keepdim, dtype: (reduced_shape(self._array.shape, dim, keepdim), mean_dtype(self._array, dtype)),
    samples=by_dims,
    batching=Batching.REDUCTION,
    flops=per_element(1),
    out_overload="out",
    out_rule=_mean_along_into,
)
def mean_dims(self, dim, keepdim, dtype):
    axes = axes_of(dim, self.ndim)
    try:
        count = self.size if axes is None else reduced_numel(self.shape, axes)
        return _mean(self, axes, keepdim, dtype, count)
    except (IndexError, ValueError):
        normal_dims(dim, self.ndim)  # one that there is not, or that is named twice
        raise


mean_dims.vjp(
    self=lambda g, self_shape, dim, keepdim: expand_reduced(g, self_shape, dim, keepdim) / reduced_numel(self_shape, dim)
)

# ---------------------------------------------------------------- products


_SHORT = 64  # factors that are multiplied one after another


def _multiply_up(array, axes, keepdim, dtype):
    wanted = _sum_dtype(array, dtype)
    array = _real(array, wanted)
    if wanted.kind == "V":
        return np.asarray(np.multiply.reduce(array, axes, _FLOAT32, None, keepdim)).astype(wanted)
    if array.size >= _SOME and wanted.kind == "f" and array.dtype == wanted and array.flags.c_contiguous:
        if axes is None:
            return _products_of_rows(array.reshape(1, -1), 1, wanted, None, False).reshape((1,) * array.ndim if keepdim else ())
        if axes in ((array.ndim - 1,), (-1,)):
            return reduced(_products_of_rows, array, axes, wanted, keepdim)
    return reduced(np.multiply.reduce, array, axes, wanted, keepdim)


def _products_of_rows(array, axes, dtype, out, keepdim):
    """`np.multiply.reduce` along the last dim, which multiplies one element after another: by halves, until few are left."""
    while array.shape[-1] > _SHORT:
        half = array.shape[-1] // 2
        products = np.multiply(array[..., :half], array[..., half : 2 * half])
        if array.shape[-1] % 2:
            products[..., 0] *= array[..., -1]
        array = products
    return np.multiply.reduce(array, -1, dtype, out, keepdim)


@op(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    refuses_integer_results=True,
    shape=lambda self, dtype: _sum_shape(self, None, False, dtype),
    autocast=Autocast.FLOAT32,
    batching=Batching.ALONG_DIM,
    flops=per_element(1),
    out=False,
)
def prod(self, dtype):
    """The product of all elements, or along `dim`.

    >>> torch.prod(torch.tensor([[1, 2], [3, 4]]), dim=1)
    tensor([ 2, 12])
    """
    return _multiply_up(self, None, False, dtype)


def _all_but_one(t, dim):
    """For each element the product of the others along a dim, by products from both ends; good with zeros."""
    size = t._array.shape[dim]
    if size == 1:
        return aten.ones_like(t)
    shape = list(t._array.shape)
    shape[dim] = 1
    ones = aten.ones(shape, dtype=t.dtype, device=home_of(t))
    before = aten.cumprod(aten.cat([ones, aten.narrow(t, dim, 0, size - 1)], dim), dim)
    turned = aten.flip(aten.narrow(t, dim, 1, size - 1), (dim,))
    after = aten.flip(aten.cumprod(aten.cat([ones, turned], dim), dim), (dim,))
    return before * after


def _prod_grad(g, self, result):
    self = aten.to(self, dtype=g.dtype)
    if not self._array.ndim:
        return g
    zeros = aten.nonzero(self == 0)._array.shape[0]
    if zeros == 0:
        ratio = result / self
        return g * conj(ratio)
    if zeros > 1 and not threads.state.grad_enabled:
        return aten.zeros_like(self)
    others = _all_but_one(aten.view(self, (-1,)) if self._array.flags.c_contiguous else aten.reshape(self, (-1,)), 0)
    return aten.view_as(g * conj(others), self)


prod.vjp(self=_prod_grad)


@op(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    refuses_integer_results=True,
    layout=Layout.ROW_MAJOR,
    node="ProdBackward1",
    shape=lambda self, dim, keepdim, dtype: _sum_shape(self, (dim,), keepdim, dtype),
    samples=by_dim,
    autocast=Autocast.FLOAT32,
    batching=Batching.ALONG_DIM,
    flops=per_element(1),
    out_overload="int_out",
    out_rule=computes_in_out,
)
def prod_dim(self, dim, keepdim, dtype):
    return _multiply_up(self, normal_dims((dim,), self.ndim), keepdim, dtype)


def _prod_dim_grad(g, self, dim, keepdim, result):
    self = aten.to(self, dtype=g.dtype)
    if not self._array.ndim:
        return g
    dim = normal_dim(dim, self._array.ndim)
    if not keepdim:
        g, result = aten.unsqueeze(g, dim), aten.unsqueeze(result, dim)
    if not (self == 0).sum(dim, True).sum().item():
        ratio = result / self
        return g * conj(ratio)
    return g * conj(_all_but_one(self, dim))


prod_dim.vjp(self=_prod_dim_grad)

# ---------------------------------------------------------------- to a size


def sum_to_size(self, *size):
    """The sum over the dims that broadcasting from `size` to this shape would have added or stretched."""
    wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if not wanted:
        return aten.sum(self)
    shape = self._array.shape
    lead = len(shape) - len(wanted)
    if lead < 0 or any(n not in (1, m) for n, m in zip(wanted, shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(shape)}}}.")
    dims = [*range(lead), *[i + lead for i, n in enumerate(wanted) if n == 1 and shape[i + lead] != 1]]
    total = aten.sum(self, dims, True) if dims else self
    return aten.view(total, wanted) if lead else total


METHODS = {"sum_to_size": sum_to_size}
