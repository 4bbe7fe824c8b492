"""Reductions: sums, means, products, extremes and truth over some or all dims."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core import parallel
from ..._core.layout import on_the_way
from ..._core.threads import threads
from ..._dispatch.facts import Autocast, Batching, Layout
from ..._dispatch.out_dtypes import castable
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, normal_dim, normal_dims, np_dtype, reduced_shape
from .._support.elementwise import need_real
from .._support.flops import per_element
from .._support.half import is_narrow
from .._support.out_rules import computes_in_out, like_self_as_extremes
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


_MANY = 1 << 16
_BLOCK = 4096
_ROWS = 256  # of so many elements that a thread adds up
_block_ones = np.ones(_BLOCK, _FLOAT32)


def _add_float32(array, axes, keepdim):
    if axes is None and not keepdim and array.size >= _MANY and array.flags.c_contiguous:
        return _add_many(array.reshape(-1))
    return _add_reduce(array, axes, None, None, keepdim)


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
    if wanted.kind == "V":  # extension floats are summed in float32: in their own precision long sums stop growing
        return np.asarray(_add_reduce(array, axes, _FLOAT32, None, keepdim)).astype(wanted)
    if wanted is _BOOL:
        return np.logical_or.reduce(array, axes, None, None, keepdim)
    if wanted is not array.dtype:
        array = array.astype(wanted) if wanted.kind in "iu" and array.dtype.kind in "fV" else on_the_way(array, wanted)
    return _add_reduce(array, axes, wanted, None, keepdim)


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
    if is_narrow(wanted):
        return np.asarray(_average(_add_reduce(self, axes, _FLOAT32, None, keepdim), count)).astype(wanted)
    return _average(_add_reduce(self, axes, wanted, None, keepdim), count)


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


def _multiply_up(array, axes, keepdim, dtype):
    wanted = _sum_dtype(array, dtype)
    array = _real(array, wanted)
    if wanted.kind == "V":
        return np.asarray(np.multiply.reduce(array, axes, _FLOAT32, None, keepdim)).astype(wanted)
    return np.multiply.reduce(array, axes, wanted, None, keepdim)


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

# ---------------------------------------------------------------- where gradients of picked elements go


@composite(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, bool keepdim) -> Tensor",
    samples=lambda make: [(make(3), 1, make.ints(4, 3), (3, 4), False)],
)
def value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim):
    """The gradient of picking elements along a dim: each goes where its element came from."""
    if not keepdim and len(sizes):
        grad, indices = aten.unsqueeze(grad, dim), aten.unsqueeze(indices, dim)
    return aten.scatter_(aten.zeros(sizes, dtype=grad.dtype, device=home_of(grad)), dim, indices, grad)


def evenly_distributed(g, self, result):
    """The gradient of `max()` or `min()` of all elements: shared evenly by those that have its value."""
    mask = self.isnan() if aten.item(aten.isnan(result)) else self == result
    zeros = aten.new_zeros(g, self._array.shape)
    share = g / mask.sum()
    return aten.masked_fill_(zeros, mask, share)


def _restored(t, shape, dim, keepdim):
    if keepdim:
        return t
    gone = set(normal_dims(dim, len(shape)))
    return aten.reshape(t, tuple(1 if i in gone else n for i, n in enumerate(shape)))


def _shared_by_count(g, mask, dim):
    """Each element that is the extreme of its slice takes an equal part."""
    count = aten.sum(mask, normal_dims(dim, mask._array.ndim), True)
    return (g / count) * mask


# ---------------------------------------------------------------- extremes


def _check_not_empty(caller, self, dim):
    if self.ndim and self.shape[normal_dim(dim, self.ndim)] == 0:
        raise IndexError(f"{caller}: Expected reduction dim {normal_dim(dim, self.ndim)} to have non-zero size.")


def _pair_shape(self, dim, keepdim):
    shape = reduced_shape(self._array.shape, (dim,), keepdim)
    return [(shape, self._array.dtype), (shape, _INT64)]


def _extreme(name, reduce, find, docs):  # noqa: C901  declares four ops
    @op(
        f"{name}(Tensor self) -> Tensor",
        shape=lambda self: ((), self._array.dtype),
        node=f"{name.title()}Backward1",
        batching=Batching.ALONG_DIM,
        out_overload="unary_out",
        doc=docs[name],
    )
    def whole(self):
        if not self.size:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument."
            )
        if self.dtype is not _FLOAT32:
            need_real(f"{name}_all", self)
        return reduce(self, None)

    whole.vjp(self=evenly_distributed)

    @op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        layout=Layout.ROW_MAJOR,
        node=f"{name.title()}Backward0",
        shape=_pair_shape,
        samples=by_dim,
        batching=Batching.ALONG_DIM,
        out_overload=f"dim_{name}",
    )
    def along(self, dim, keepdim):
        if not self.ndim:
            normal_dim(dim, 0)
            if self.dtype.kind == "c":
                raise RuntimeError(f"{name}(): does not support complex input")
            return self.copy(), np.zeros((), np.int64)
        if not self.size:
            _check_not_empty(name + "()", self, dim)
        if self.dtype is not _FLOAT32 and self.dtype.kind == "c":
            normal_dim(dim, self.ndim)
            raise RuntimeError(f"{name}(): does not support complex input")
        if keepdim:
            return reduce(self, dim, None, None, True), find(self, dim, None, keepdims=True)
        return reduce(self, dim), find(self, dim)

    along.vjp(
        self=lambda g, self_shape, dim, keepdim, result1: aten.value_selecting_reduction_backward(
            g, dim, result1, self_shape, keepdim
        )
    )

    @op(
        f"arg{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        nondiff=True,
        shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, None if dim is None else (dim,), keepdim), _INT64),
        batching=Batching.ALONG_DIM,
        doc=docs[f"arg{name}"],
    )
    def position(self, dim, keepdim):
        if self.dtype is not _FLOAT32 and self.dtype.kind in "bc":
            raise RuntimeError(f"arg{name}(): does not support {'bool' if self.dtype is _BOOL else 'complex'} input")
        if dim is None:
            if not self.size:
                raise IndexError(f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            index = np.asarray(find(self))
            return index.reshape((1,) * self.ndim) if keepdim else index
        if not self.ndim:
            normal_dim(dim, 0)
            return np.zeros((), np.int64)
        if not self.size:
            _check_not_empty(f"arg{name}()", self, dim)
        return find(self, dim, None, keepdims=True) if keepdim else find(self, dim)

    @op(
        f"a{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        samples=by_dims,
        batching=Batching.REDUCTION,
        out_rule=like_self_as_extremes,
        doc=docs[f"a{name}"],
        shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, dim, keepdim), self._array.dtype),
    )
    def over(self, dim, keepdim):
        axes = axes_of(dim, self.ndim)
        if not self.size:
            if axes is None:
                raise RuntimeError(
                    f"a{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                    "the reduction dim with the 'dim' argument."
                )
            for d in axes:
                _check_not_empty(f"a{name}()", self, d)
        if self.dtype is not _FLOAT32:
            normal_dims(() if dim is None else dim, self.ndim)
            if self.size:
                need_real(f"{name}_values_cpu", self)
        try:
            return reduce(self, axes, None, None, keepdim)
        except ValueError:
            normal_dims(dim, self.ndim)  # a dim that is named twice
            raise

    def over_grad(g, self, dim, keepdim, result):
        shape = self._array.shape
        mask = self == _restored(result, shape, dim, keepdim)
        return _shared_by_count(_restored(g, shape, dim, keepdim), mask, dim)

    over.vjp(self=over_grad)


_extreme(
    "max",
    np.maximum.reduce,
    np.ndarray.argmax,
    docs={
        "amax": """The largest element along one or several dims; ties share the gradient.

        >>> torch.amax(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([5., 7.])
        """,
        "max": """The largest element; along `dim` with its position; or the larger of two tensors, element by element.

        >>> torch.max(torch.tensor([3, 1, 2]))
        tensor(3)
        >>> torch.max(torch.tensor([[1, 5], [7, 2]]), dim=1)
        torch.return_types.max(
        values=tensor([5, 7]),
        indices=tensor([1, 0]))
        """,
        "argmax": """The position of the largest element, in the flattened tensor or along `dim`.

        >>> torch.argmax(torch.tensor([[1, 9], [4, 2]]))
        tensor(1)
        >>> torch.argmax(torch.tensor([[1, 9], [4, 2]]), dim=1)
        tensor([1, 0])
        """,
    },
)
_extreme(
    "min",
    np.minimum.reduce,
    np.ndarray.argmin,
    docs={
        "argmin": """The position of the smallest element, in the flattened tensor or along `dim`.

        >>> torch.argmin(torch.tensor([3, 1, 2]))
        tensor(1)
        """,
        "amin": """The smallest element along one or several dims; ties share the gradient.

        >>> torch.amin(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([1., 2.])
        """,
        "min": """The smallest element; along `dim` with its position; or the smaller of two tensors, element by element.

        >>> torch.min(torch.tensor([3, 1, 2]))
        tensor(1)
        >>> torch.min(torch.tensor([[1, 5], [7, 2]]), dim=1)
        torch.return_types.min(
        values=tensor([1, 2]),
        indices=tensor([0, 1]))
        """,
    },
)

composite(
    "max.other(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.maximum(self, other),
    batching=Batching.ALONG_DIM,
    out=True,
    out_overload="out",
)
composite(
    "min.other(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.minimum(self, other),
    batching=Batching.ALONG_DIM,
    out=True,
    out_overload="out",
)


def _both_shapes(self, dim, keepdim):
    return [(reduced_shape(self._array.shape, None if dim is None else (dim,), keepdim), self._array.dtype)] * 2


@op(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    layout=Layout.ROW_MAJOR,
    takes_all_grads=True,
    shape=_both_shapes,
    samples=lambda make: [(make(3, 4),), (make(3, 4), {"dim": 1}), (make(3, 4), {"dim": 0, "keepdim": True})],
    batching=Batching.ALONG_DIM,
)
def aminmax(self, dim, keepdim):
    """The smallest and the largest element, of the whole tensor or along `dim`.

    >>> torch.aminmax(torch.tensor([3, 1, 2]))
    torch.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))
    """
    axes = None if dim is None else normal_dims((dim,), self.ndim)
    if not self.size:
        if dim is None:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        _check_not_empty("aminmax", self, dim)
    need_real("aminmax_cpu", self)
    return np.minimum.reduce(self, axes, None, None, keepdim), np.maximum.reduce(self, axes, None, None, keepdim)


@aminmax.vjp
def _(grads, self, dim, keepdim, result0, result1):
    dims = None if dim is None else (dim,)
    total = None
    for g, result in zip(grads, (result0, result1), strict=True):
        if g is not None:
            shape = self._array.shape
            g, result = _restored(g, shape, dims, keepdim), _restored(result, shape, dims, keepdim)
            part = _shared_by_count(g, self == result, dims)
            total = part if total is None else total + part
    return (total,)


# ---------------------------------------------------------------- truth


def _truth_dtype(array):
    return array.dtype if array.dtype == np.uint8 else _BOOL  # torch's first bool was uint8, and stays so here


def _tested_dims(dim, ndim):
    """The dims to reduce; an empty list of them means none here, where other reductions take it for all."""
    return None if dim is None else normal_dims(dim, ndim) if len(dim) else ()


def _holds_truth(name):
    """The rule of `out=`: bool, or uint8, which stood for it once."""

    def check(computed, held):
        if held not in (dt.bool_, dt.uint8):
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {held.scalar_name}")

    return check


def _truth(name, reduce, *, doc=None):
    def test(self, axes, keepdim):
        if self.dtype.kind == "W":  # complex32: its conversion to bools would lose the imaginary parts
            self = self.astype(np.complex64)
        truth = reduce(self, axes, None, None, keepdim)
        return np.asarray(truth).astype(np.uint8) if self.dtype == np.uint8 else truth

    op(
        f"{name}(Tensor self) -> Tensor",
        lambda self: test(self, None, False),
        nondiff=True,
        shape=lambda self: ((), _truth_dtype(self._array)),
        batching=Batching.REDUCTION,
        out_overload="all_out",
        out_dtype=_holds_truth(name),
        doc=doc,
    )
    op(
        f"{name}.dim(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
        lambda self, dim, keepdim: test(self, _tested_dims(dim, self.ndim), keepdim),
        nondiff=True,
        samples=by_dims,
        shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, dim, keepdim), _truth_dtype(self._array)),
        batching=Batching.REDUCTION,
        out_overload="out",
        out_dtype=_holds_truth(name),
    )


_truth(
    "any",
    np.logical_or.reduce,
    doc="""Whether any element is true, of the whole tensor or along `dim`.

    >>> torch.any(torch.tensor([[False, False], [True, False]]), dim=1)
    tensor([False,  True])
    """,
)
_truth(
    "all",
    np.logical_and.reduce,
    doc="""Whether all elements are true, of the whole tensor or along `dim`.

    >>> torch.all(torch.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """,
)

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
