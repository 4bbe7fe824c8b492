"""Order along a dim: sort, topk, kthvalue, median, mode."""

from __future__ import annotations

import numpy as np

from ..._core.keys import AUTOGRAD
from ..._core.layout import dense_like
from ..._dispatch.facts import Batching, Layout
from ..._dispatch.registry import aten, composite, op
from .._support.common import like_first, no_kernel, normal_dim, reduced_shape
from .._support.elementwise import need_real
from ..indexing.scatter import positions

_INT64 = np.dtype(np.int64)

# From this many elements per line on, the few that are asked for are found before they are sorted.
_PARTITION = 128


# ---------------------------------------------------------------- what all share


def _comparable(array):
    """An array that NumPy can order: extension floats are compared as float32."""
    if array.dtype.kind == "b":
        return array.view(np.uint8) != 0  # `view(torch.bool)` shows bytes of any value, each of which but 0 is true
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _no_complex(name, array):
    if array.dtype.kind == "c":
        raise RuntimeError(f" {name} does not support complex dtypes on CPU")


def _order(array, dim, descending):
    """Positions that sort a dim; equal elements keep their order, NaN counts as the largest."""
    keys = _comparable(array)
    if not descending:
        return keys.argsort(dim, "stable")
    # Sorted backwards and read backwards, equal elements are in their order again.
    backwards = (slice(None),) * dim + (slice(None, None, -1),)
    return array.shape[dim] - 1 - keys[backwards].argsort(dim, "stable")[backwards]


def _place_of_rank(array, dim, rank):
    """What `_order` has at a rank of each line, in its dim of size one: the element is found without sorting the others."""
    n = array.shape[dim]
    if n < _PARTITION:
        return np.ascontiguousarray(_order(array, dim, False)[(slice(None),) * dim + (slice(rank, rank + 1),)])
    lines = np.ascontiguousarray(np.moveaxis(_comparable(array), dim, -1))
    picked = np.partition(lines, rank, -1)[..., rank : rank + 1]
    equal = lines == picked
    # A line whose element is a number has it once or more often.
    is_once = not _is_nan(picked).any() and np.count_nonzero(equal) == picked.size
    places = equal.argmax(-1) if is_once else _place_among_equals(lines, picked, equal, rank)
    return np.expand_dims(places, dim)


def _place_among_equals(lines, picked, equal, rank):
    """Where each line has its element of a rank, of those that equal it: they keep their order, and NaN is the largest."""
    lower = lines < picked
    nan = _is_nan(lines)
    is_nan = _is_nan(picked)
    equal |= nan & is_nan
    lower |= is_nan & ~nan
    counts = np.count_nonzero(equal, -1).reshape(-1)
    before = np.count_nonzero(lower, -1).reshape(-1)
    found = np.flatnonzero(equal)[np.cumsum(counts) - counts + rank - before]
    return (found % lines.shape[-1]).reshape(lines.shape[:-1])


def _no_elements(name, array, dim):
    if array.ndim and array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def _like_layout(array, result):
    """`result` in the memory order of `array`."""
    if array.flags.c_contiguous:
        return result
    copy = dense_like(array, result.dtype)
    copy[...] = result
    return copy


def _kept_grad(g, self_shape, dim, result1):
    return aten.value_selecting_reduction_backward(g, dim, result1, self_shape, True)


def _reduced_grad(g, self_shape, dim, keepdim, result1):
    return aten.value_selecting_reduction_backward(g, dim, result1, self_shape, keepdim)


# ---------------------------------------------------------------- sort


def _sort(self, dim, descending):
    dim = normal_dim(dim, self.ndim)
    _no_complex("Sort", self)
    if not self.ndim:
        return self.copy(), np.zeros((), _INT64)
    places = _order(self, dim, descending)
    return _like_layout(self, self[positions(places, dim)]), _like_layout(self, places)


def _two_like_first(self, *_rest):
    return [like_first(self), (self._array.shape, _INT64)]


@op(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    shape=_two_like_first,
    samples=lambda make: [(make(3, 4),), (make(3, 4), 0, True)],
    batching=Batching.ALONG_DIM,
    out_overload="values",
)
def sort(self, dim, descending):
    """Sorts along `dim` and tells where each element was.

    >>> torch.sort(torch.tensor([3, 1, 2]), descending=True)
    torch.return_types.sort(
    values=tensor([3, 2, 1]),
    indices=tensor([0, 2, 1]))
    """
    return _sort(self, dim, descending)


sort.vjp(self=_kept_grad)


@op(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    shape=lambda self, *_: _two_like_first(self),
    node="SortBackward1",
    samples=lambda make: [(make(3, 4), {"stable": True})],
    batching=Batching.ALONG_DIM,
    out_overload="values_stable",
)
def sort_stable(self, stable, dim, descending):
    return _sort(self, dim, descending)


sort_stable.vjp(self=_kept_grad)

composite(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    lambda self, dim, descending: aten.sort(self, dim, descending)[1],
    samples=lambda make: [(make(3, 4),)],
    batching=Batching.ALONG_DIM,
    out=False,
    doc="""The positions that sort a tensor along `dim`.

    >>> torch.argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """,
)
composite(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    lambda self, stable, dim, descending: aten.sort(self, stable=stable, dim=dim, descending=descending)[1],
    samples=lambda make: [(make(3, 4), {"stable": True})],
    batching=Batching.ALONG_DIM,
    out=True,
)
composite(
    "msort(Tensor self) -> Tensor",
    lambda self: aten.sort(self, 0, False)[0],
    out=True,
    doc="""Sorts along the first dim.

    >>> torch.msort(torch.tensor([[3, 1], [1, 2]]))
    tensor([[1, 1],
            [3, 2]])
    """,
)

# ---------------------------------------------------------------- the first few


def _places_of_few(keys, dim, k, largest):
    """The positions of the `k` largest or smallest of each line."""
    n = keys.shape[dim]
    at = n - k if largest else k - 1
    lines = np.ascontiguousarray(np.moveaxis(keys, dim, -1))
    bound = np.partition(lines, at, -1)[..., at : at + 1]
    found = np.flatnonzero(lines >= bound if largest else lines <= bound)
    if found.size == k * bound.size:
        found = found.reshape(-1, k)
        if (found // n == np.arange(len(found))[:, None]).all():
            return np.moveaxis((found % n).reshape(*lines.shape[:-1], k), -1, dim)
    # NaN, or several that equal the last of the few.
    return keys.argpartition(at, dim)[(slice(None),) * dim + (slice(at, None) if largest else slice(0, k),)]


def _topk_shape(self, k, dim, largest, sorted):
    shape = list(self._array.shape)
    if shape:
        shape[normal_dim(dim, len(shape))] = k
    return [(shape, self._array.dtype), (shape, _INT64)]


@op(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    shape=_topk_shape,
    samples=lambda make: [(make(3, 4), 2), (make(3, 4), 1, 0, False)],
    batching=Batching.ALONG_DIM,
    out_overload="values",
)
def topk(self, k, dim, largest, sorted):
    """The `k` largest (or smallest) elements along `dim`, and their positions.

    >>> torch.topk(torch.tensor([3, 1, 2]), 2)
    torch.return_types.topk(
    values=tensor([3, 2]),
    indices=tensor([0, 2]))
    """
    dim = normal_dim(dim, self.ndim)
    n = self.shape[dim] if self.ndim else 1
    if k.__class__ is bool:
        raise TypeError("k must be an int, not a bool")
    if not 0 <= k <= n:
        raise RuntimeError("selected index k out of range")
    _no_complex("topk", self)
    if self.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.zeros((), _INT64)
    lead = (slice(None),) * dim
    if n < _PARTITION or k * 4 > n or k == 0:
        places = _order(self, dim, largest)[(*lead, slice(0, k))]
    else:
        keys = _comparable(self)
        places = _places_of_few(keys, dim, k, largest)
        places.sort(dim)  # equal elements in their order
        inner = _order(keys[positions(places, dim)], dim, largest)
        places = places[positions(inner, dim)]
    places = np.ascontiguousarray(places) if k else places.copy()  # not a part of more places
    return self[positions(places, dim)], places


topk.vjp(self=_kept_grad)


def _reduced_pair(self, dim, keepdim):
    shape = reduced_shape(self._array.shape, (dim,), keepdim)
    return [(shape, self._array.dtype), (shape, _INT64)]


def _pick(array, places, dim, keepdim):
    """(values, indices) at one position per line, whose dim still has size one."""
    values = array[positions(places, dim)]
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


@op(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    shape=lambda self, k, dim, keepdim: _reduced_pair(self, dim, keepdim),
    samples=lambda make: [(make(3, 4), 2)],
    batching=Batching.ALONG_DIM,
    out_overload="values",
)
def kthvalue(self, k, dim, keepdim):
    """The k-th smallest element along `dim`, and its position.

    >>> torch.kthvalue(torch.tensor([3, 1, 2]), 2)
    torch.return_types.kthvalue(
    values=tensor(2),
    indices=tensor(2))
    """
    dim = normal_dim(dim, self.ndim)
    n = self.shape[dim] if self.ndim else 1
    _no_elements("kthvalue", self, dim)
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if not self.ndim:
        return self.copy(), np.zeros((), _INT64)
    _need_order("kthvalue_cpu", self)
    return _pick(self, _place_of_rank(self, dim, k - 1), dim, keepdim)


kthvalue.vjp(self=_reduced_grad)

# ---------------------------------------------------------------- median


def _need_order(name, array):
    """NotImplementedError for what has no k-th value in torch: complex numbers and bools."""
    if array.dtype.kind in "cb":
        raise no_kernel(name, array)


def _is_nan(array):
    return np.isnan(array) if array.dtype.kind in "fV" else np.zeros(array.shape, np.bool_)


def _median_place(array, dim, ignore_nan):
    """The position of the (lower) median of each line, its dim of size one."""
    n = array.shape[dim]
    nan = _is_nan(array)
    if not nan.any():
        return _place_of_rank(array, dim, (n - 1) // 2)
    if not ignore_nan:  # the first of them is the median
        place = _place_of_rank(array, dim, (n - 1) // 2)
        return np.where(nan.any(dim, keepdims=True), nan.argmax(dim, keepdims=True), place)
    order = _order(array, dim, False)
    rank = np.maximum(n - nan.sum(dim, keepdims=True) - 1, 0) // 2  # they come last, and are passed over
    return order[positions(rank, dim)]


def _median_of_all(self, ignore_nan):
    if not self.size:
        if self.dtype.kind in "iu":  # what is left of a nan: the lowest number, or the low bits of that of 32 bits
            return np.array(np.iinfo(self.dtype).min if self.itemsize >= 4 else 0, self.dtype)
        return np.array(np.nan, self.dtype)
    _need_order("median_cpu", self)
    flat = self.reshape(-1)
    return flat[_median_place(flat, 0, ignore_nan)].reshape(())


def _even_grad(g, self, result):
    """A gradient shared by all elements that equal the result."""
    mask = aten.isnan(self) if aten.item(aten.isnan(result)) else aten.eq(self, result)
    if g._keys & AUTOGRAD:
        return aten.mul(mask, aten.div(g, aten.sum(mask)))
    return aten.masked_fill_(aten.new_zeros(g, self._array.shape), mask, aten.div(g, aten.sum(mask)))


def _declare_median(name, ignore_nan, *, doc=None):
    @op(f"{name}(Tensor self) -> Tensor", shape=lambda self: ((), self._array.dtype), batching=Batching.ALONG_DIM, doc=doc)
    def whole(self):
        return _median_of_all(self, ignore_nan)

    whole.vjp(self=_even_grad)

    @op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        layout=Layout.ROW_MAJOR,
        shape=_reduced_pair,
        node=f"{name.capitalize()}Backward1",
        samples=lambda make: [(make(3, 4), 1), (make(3, 5), 0, True)],
        batching=Batching.ALONG_DIM,
        out_overload="dim_values",
    )
    def along(self, dim, keepdim):
        dim = normal_dim(dim, self.ndim)
        _no_elements(name, self, dim)
        _need_order("median_out", self)
        if not self.ndim:
            return self.copy(), np.zeros((), _INT64)
        return _pick(self, _median_place(self, dim, ignore_nan), dim, keepdim)

    along.vjp(self=_reduced_grad)


_declare_median(
    "median",
    False,
    doc="""The median: the lower of the two in the middle; along `dim` with its position.

    >>> torch.median(torch.tensor([3, 1, 2, 4]))
    tensor(2)
    """,
)
_declare_median(
    "nanmedian",
    True,
    doc="""The median of the elements that are not nan.

    >>> torch.nanmedian(torch.tensor([1.0, float("nan"), 3.0]))
    tensor(1.)
    """,
)

# ---------------------------------------------------------------- mode


@op(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    shape=_reduced_pair,
    samples=lambda make: [(make(3, 4),)],
    batching=Batching.ALONG_DIM,
    out_overload="values",
)
def mode(self, dim, keepdim):
    """The value that occurs most often along `dim`, and a position of it.

    >>> torch.mode(torch.tensor([1, 2, 2, 3]))
    torch.return_types.mode(
    values=tensor(2),
    indices=tensor(2))
    """
    dim = normal_dim(dim, self.ndim)
    _no_elements("mode", self, dim)
    if not self.ndim:
        return self.copy(), np.zeros((), _INT64)
    if self.size:
        need_real("mode_cpu", self)
    order = _order(self, dim, False)
    lines = np.moveaxis(self[positions(order, dim)], dim, -1)
    # How long the run of equal elements is so far; the end of the first longest run is the smallest mode.
    count = np.arange(lines.shape[-1])
    begins = np.zeros(lines.shape, _INT64)
    begins[..., 1:] = np.where(lines[..., 1:] != lines[..., :-1], count[1:], 0)
    run = count - np.maximum.accumulate(begins, -1)
    best = np.expand_dims(run.argmax(-1), dim)
    return _pick(self, order[positions(best, dim)], dim, keepdim)


mode.vjp(self=_reduced_grad)
