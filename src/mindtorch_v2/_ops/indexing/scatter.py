"""Gather and scatter: one position along a dim for every element of an index."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..._autograd.function import delayed_errors
from ..._core import parallel
from ..._core.sparse import make_sparse
from ..._core.tensor import make_tensor
from ..._dispatch.facts import Batching, Layout, Overlap
from ..._dispatch.registry import aten, composite, op
from .._support.common import WIDE, add_rows, is_within, like_first, no_kernel, normal_dim, scalar_name
from .._support.flops import per_element
from .._support.numbers import number_of
from ..creation.copy import converted
from ._checks import check_count, check_index, check_same_type, other_shape, size_at

_INT64 = np.dtype(np.int64)
# More elements are gathered and scattered by their places in memory, which takes less time than a key with several indices.
MANY = 1024
_BLOCK = 1 << 16  # places that are computed together, and stay in the cache

# ---------------------------------------------------------------- positions


def extremes(index):
    """(lowest, highest) of an index that is not empty."""
    return int(index.min()), int(index.max())


@lru_cache(maxsize=256)
def _mesh(shape, dim):
    """For every dim but one, the position of each element of an index along it; None in that dim's place."""
    return tuple(None if d == dim else np.arange(n).reshape((n,) + (1,) * (len(shape) - d - 1)) for d, n in enumerate(shape))


def positions(index, dim):
    """The NumPy key that picks, for every element of an index, the element at that position along a dim."""
    mesh = _mesh(index.shape, dim)
    return (*mesh[:dim], index, *mesh[dim + 1 :])


def _checked(self, dim, index, name, source=None):
    """The dim from the front, after torch's checks; for an empty index only the dim is checked."""
    ndim = self.ndim
    if not -ndim <= dim < ndim:
        dim = normal_dim(dim, ndim)
    elif dim < 0:
        dim += ndim
    if index.size == 0:
        return dim
    if index.dtype is not _INT64 and index.dtype not in (_INT64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if index.ndim != ndim and (index.ndim or 1) != (ndim or 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'input' if name == 'gather' else 'self'} tensor"
        )
    if source is not None and (source.ndim or 1) != (ndim or 1):
        _check_source_dims(self, dim, index, source)
    limits = self.shape or (1,)
    if source is not None or index.shape != limits:
        _check_sizes(self, dim, index, source)
    size = limits[dim]
    # Of dims that an index was expanded to, one place shows all.
    seen = index if index.flags.c_contiguous else index[tuple(slice(0, None if step else 1) for step in index.strides)]
    if not is_within(seen, size):
        low, high = extremes(index)
        raise RuntimeError(f"index {low if low < 0 else high} is out of bounds for dimension {dim} with size {size}")
    return dim


def _check_source_dims(self, dim, index, source):
    """What torch says of a source with another number of dims: it asks for the sizes of dims that may not be there first."""
    fits = all(n <= limit for d, (n, limit) in enumerate(zip(index.shape, self.shape, strict=False)) if d != dim)
    inside = all(n <= limit for n, limit in zip(index.shape, source.shape, strict=False))
    if fits and inside and 0 < source.ndim < index.ndim:
        normal_dim(source.ndim, source.ndim)
    raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")


def _check_sizes(self, dim, index, source):
    """RuntimeError for an index that is longer than the tensor in another dim, or than the source in any."""
    limits = self.shape or (1,)
    source_shape = None if source is None else source.shape or (1,)
    for d, n in enumerate(index.shape):
        if (n > limits[d] and d != dim) or (source_shape is not None and n > source_shape[d]):
            if source_shape is None:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no "
                    f"larger than self {list(self.shape)} apart from dimension {dim}"
                )
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart "
                f"from dimension {dim} and to be no larger size than src {list(source.shape)}"
            )


# ---------------------------------------------------------------- gather


@op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    checks_overlap=Overlap.EVERY,
    layout=Layout.ROW_MAJOR,
    shape=lambda self, dim, index, sparse_grad: (index._array.shape, self._array.dtype),
    samples=lambda make: [(make(3, 4), 1, make.ints(4, 3, 2)), (make(3, 4), 0, make.ints(3, 5, 4))],
    batching=Batching.GATHER,
)
def gather(self, dim, index, sparse_grad):
    """Picks one element along `dim` for every position of the index.

    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    dim = _checked(self, dim, index, "gather")
    if not index.size:
        return np.empty(index.shape, self.dtype)
    if index.ndim == 0 or self.ndim == 0:
        return self.reshape(-1).take(index)
    if index.size <= MANY or not self.flags.c_contiguous:
        return self[positions(index, dim)]
    out, elements = np.empty(index.shape, self.dtype), self.reshape(-1)
    # No position needs to be wrapped: with mode "raise" they would be checked again, and the result be copied.
    _by_places(self.shape, index, dim, lambda part, places: elements.take(places, None, out[part], "wrap"), parallel.blocks)
    return out


def _by_places(shape, index, dim, work, share):
    """Call `work` with slices of an index's first dim, and with the places in memory that these name in a row-major array."""
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    around = np.zeros((1,) * len(shape), np.int64)  # what the other dims add
    for d, n in enumerate(index.shape):
        if d != dim:
            around = around + np.arange(n).reshape((n,) + (1,) * (len(shape) - d - 1)) * steps[d]

    def places_of(part):
        places = index[part]
        if steps[dim] != 1:
            places = places * steps[dim]
        work(part, places + (around[part] if dim else around))

    share(len(index), max(_BLOCK * len(index) // index.size, 1), places_of)


gather.vjp(self=lambda g, self, dim, index, sparse_grad: aten.gather_backward(g, self, dim, index, sparse_grad))


def _sparse_gradient(grad, self, dim, index):
    """The gradient of gather as a sparse tensor, with an entry for every element that was picked."""
    shape = self._array.shape
    picked = index._array if index._array.ndim else index._array.reshape(1)
    if not shape:
        places = np.empty((0, picked.size), np.int64)
    else:
        grids = [grid.reshape(-1) for grid in np.indices(picked.shape)]
        grids[normal_dim(dim, len(shape))] = picked.reshape(-1)
        places = converted(np.stack(grids), _INT64)
    return make_sparse(make_tensor(places), aten.reshape(grad, (-1,)), shape, False)


@composite(
    "gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
    samples=lambda make: [(make(3, 2), make.constant(3, 4), 1, make.ints(4, 3, 2), False)],
)
def gather_backward(grad, self, dim, index, sparse_grad):
    if sparse_grad:
        return _sparse_gradient(grad, self, dim, index)
    return aten.scatter_add_(aten.new_zeros(grad, self._array.shape), dim, index, grad)


@composite(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    samples=lambda make: [(make(3, 4), make.ints(4, 3, 1), 1), (make(3, 4), make.ints(12, 2))],
    out=True,
)
def take_along_dim(self, indices, dim):
    """Picks elements along `dim` by an index that broadcasts, such as `argsort` gives.

    >>> torch.take_along_dim(torch.tensor([[3, 1, 2]]), torch.tensor([[1, 2, 0]]), dim=1)
    tensor([[1, 2, 3]])
    """
    if indices._array.dtype != _INT64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {scalar_name(indices._array)}")
    if dim is None:
        flat = aten.view(self, (-1,)) if self._array.flags.c_contiguous else aten.reshape(self, (-1,))
        return aten.gather(flat, 0, aten.view(indices, (-1,)))
    ndim = self._array.ndim
    if ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    dim = normal_dim(dim, ndim)
    own, wanted = list(self._array.shape), list(indices._array.shape)
    size = own[dim]
    own[dim] = wanted[dim] = 1
    try:
        shared = list(np.broadcast_shapes(own, wanted))
    except ValueError:
        raise RuntimeError(
            f"The shapes of input {list(self._array.shape)} and indices {list(indices._array.shape)} do "
            f"not broadcast apart from dimension {dim}"
        ) from None
    places = aten.broadcast_to(indices, (*shared[:dim], indices._array.shape[dim], *shared[dim + 1 :]))
    spread = aten.broadcast_to(self, (*shared[:dim], size, *shared[dim + 1 :]))
    return aten.gather(spread, dim, aten.remainder(places, size) if size else places)


# ---------------------------------------------------------------- scatter


_REDUCERS = {"add": np.add, "sum": np.add, "multiply": np.multiply, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _start(self, out):
    return self.copy("C") if out is None else out


def _pieces(out, index, source):
    """Views with at least one dim, the source cut to the index."""
    if index.ndim and out.ndim:
        return (
            out,
            index,
            source if source.ndim == 0 or source.shape == index.shape else source[tuple(slice(0, n) for n in index.shape)],
        )
    return out.reshape(-1), index.reshape(-1), source.reshape(-1)[: index.size] if source.ndim else source


def _checked_source(self, dim, index, source):
    """The dim from the front, after torch's checks of an index and an array of its shape, or a number."""
    dim = normal_dim(dim, self.ndim)
    array = source if isinstance(source, np.ndarray) else None
    if array is not None and array.dtype != self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    return _checked(self, dim, index, "scatter", array)


def _scatter(self, dim, index, source, out, reducer=None):
    """Write or combine `source` (an array like the index, or a number) at the positions of the index."""
    dim = _checked_source(self, dim, index, source)
    array = source if isinstance(source, np.ndarray) else None
    out = _start(self, out)
    if not index.size:
        return out
    value = array if array is not None else number_of(source, self.dtype)
    target, places, value = _pieces(out, index, value)
    if reducer is np.add and dim == 0 and _names_rows(target, places):
        width = math.prod(target.shape[1:])
        value = np.broadcast_to(value, places.shape)
        add_rows(target.reshape(-1, width), places.reshape(len(places), -1)[:, 0], value.reshape(-1, width))
        return out
    if places.size > MANY and target.flags.c_contiguous and target.dtype.kind not in "VW":
        put_at_places(target, dim, places, value, reducer)
        return out
    key = positions(places, dim)
    if reducer is None:
        target[key] = value
    elif reducer is np.add:
        _add_at(target, key, value)
    else:
        reducer.at(target, key, value)
    return out


def put_at_places(target, dim, index, value, reducer):
    """Write or combine many values, in a row-major array."""
    elements, values = target.reshape(-1), np.broadcast_to(value, index.shape)

    def put(part, places):
        flat, added = places.reshape(-1), values[part].reshape(-1)
        if reducer is None:
            elements[flat] = added
        else:
            reducer.at(elements, flat, added)  # which has a fast loop for a single index

    # Along other dims than the first, slices of that have nothing in common.
    _by_places(target.shape, index, dim, put, parallel.blocks if dim else parallel.each_block)


def _names_rows(target, index):
    """Whether an index was expanded from a column, and so names whole rows of a target."""
    return (
        index.ndim > 1
        and index.shape[1:] == target.shape[1:]
        and not any(index.strides[1:])
        and target.flags.c_contiguous
        and math.prod(target.shape[1:]) >= WIDE
    )


def _add_at(target, key, value):
    if not target.flags.c_contiguous or target.dtype.kind == "V":
        np.add.at(target, key, value)
        return
    # ufunc.at has a fast loop for flat positions only.
    places = 0
    for n, k in zip(target.shape, key, strict=True):
        places = places * n + k
    np.add.at(target.reshape(-1), places.reshape(-1), np.broadcast_to(value, places.shape).reshape(-1))


@op(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 1, make.ints(4, 3, 2), make(3, 2), {"reduce": "add"})],
    batching=Batching.GATHER,
)
def scatter_reduced(self, dim, index, src, reduce, out=None):
    """Puts elements of `src`, or a value, where the index says along `dim`.

    >>> torch.scatter(torch.zeros(2, 3), 1, torch.tensor([[2], [0]]), 5)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    return _scatter(self, dim, index, src, out, _reduction(reduce, ("add", "multiply")))


@op(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 1, make.ints(4, 3, 2), 2.0, {"reduce": "add"})],
    batching=Batching.GATHER,
)
def scatter_value_reduced(self, dim, index, value, reduce, out=None):
    return _scatter(self, dim, index, value, out, _reduction(reduce, ("add", "multiply")))


def _reduction(reduce, known):
    if reduce not in known:
        listed = " or ".join((", ".join(known[:-1]), known[-1]))
        raise RuntimeError(f"reduce argument must be either {listed}" + (f", got {reduce}" if len(known) > 2 else "."))
    return _REDUCERS.get(reduce)


@op(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 0, make.ints(1, 1, 4), make(1, 4)), (make(3, 4), 1, make.ints(1, 2, 1), make(3, 1))],
    batching=Batching.GATHER,
)
def scatter(self, dim, index, src, out=None):
    return _scatter(self, dim, index, src, out)


scatter.vjp(
    self=lambda g, dim, index: aten.scatter(g, dim, index, 0),
    src=lambda g, dim, index, src_shape: _cut_back(aten.gather(g, dim, index), src_shape),
)


def _cut_back(g, shape):
    """A gradient of the part of a source that was used, set in zeros where the source was larger."""
    if g._array.shape == tuple(shape):
        return g
    return aten.constant_pad_nd(
        g, [n for have, want in reversed(list(zip(g._array.shape, shape, strict=True))) for n in (0, want - have)], 0
    )


@op(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    node="ScatterBackward1",
    samples=lambda make: [(make(3, 4), 1, make.ints(4, 3, 2), 2.0)],
    batching=Batching.GATHER,
)
def scatter_value(self, dim, index, value, out=None):
    return _scatter(self, dim, index, value, out)


scatter_value.vjp(self=lambda g, dim, index: aten.scatter(g, dim, index, 0))


@op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 1, make.ints(4, 3, 2), make(3, 2))],
    batching=Batching.GATHER,
    flops=per_element(1),
)
def scatter_add(self, dim, index, src, out=None):
    """Adds elements of `src` where the index says along `dim`.

    >>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([0, 0, 1]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([3., 3.])
    """
    return _scatter(self, dim, index, src, out, np.add)


scatter_add.vjp(self=lambda g: g, src=lambda g, dim, index, src_shape: _cut_back(aten.gather(g, dim, index), src_shape))


# ---------------------------------------------------------------- scatter_reduce

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
_NEUTRAL = {"sum": 0, "prod": 1, "mean": 0}


def _lowest(dtype, reduce):
    """The identity of amax or amin: the end of the dtype's range that every value replaces."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min if reduce == "amax" else info.max
    if dtype.kind == "b":
        return reduce == "amin"
    return -np.inf if reduce == "amax" else np.inf


@op(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [
        (make(3, 4), 1, make.ints(4, 3, 2), make(3, 2), r, {"include_self": s})
        for r in ("sum", "mean", "prod")
        for s in (True, False)
    ],
    batching=Batching.GATHER,
)
def scatter_reduce(self, dim, index, src, reduce, include_self, out=None):
    """Reduces elements of `src` where the index says: "sum", "prod", "mean", "amax" or "amin".

    >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([0, 0, 1]), torch.tensor([1.0, 2.0, 3.0]), "amax")
    tensor([2., 3.])
    """
    reducer = _reduction(reduce, _REDUCTIONS)
    if not index.size:
        untouched = _scatter(self, dim, index, src, out)  # for its checks
        if self.dtype.kind == "b" and reduce == "mean":
            raise no_kernel("div_floor_cpu", self)
        return untouched
    unknown = (self.dtype.kind == "c" and reduce in ("amax", "amin")) or (self.dtype.kind == "b" and reduce == "mean")
    # Before anything is written; the kernel looks at positions, if there is one.
    _checked_source(self, dim, np.zeros_like(index) if unknown else index, src)
    if unknown:
        raise no_kernel(f"scatter_gather_tensor_cpu_reduce_{reduce}", self)
    out = _start(self, out)
    if not include_self:
        neutral = _NEUTRAL[reduce] if reduce in _NEUTRAL else _lowest(out.dtype, reduce)
        _scatter(self, dim, index, neutral, out)
    _scatter(self, dim, index, src, out, reducer or np.add)
    if reduce == "mean":
        count = np.full(out.shape, int(include_self), _INT64)
        _scatter(count, dim, index, 1, count, np.add)
        np.maximum(count, 1, out=count)
        if out.dtype.kind in "iu":
            np.floor_divide(out, count, out=out, casting="unsafe")
        else:
            np.divide(out, count, out=out, casting="unsafe")
    return out


@scatter_reduce.vjp
def _(g, self, dim, index, src, reduce, include_self, result):
    return _reduce_grads(g, self, dim, index, src, reduce, include_self, result)


def _reduce_grads(g, self, dim, index, src, reduce, include_self, result):
    if reduce == "sum":
        grad_self, grad_src = g, aten.gather(g, dim, index)
    elif reduce == "mean":
        count = aten.ones_like(g) if include_self else aten.zeros_like(g)
        count = aten.scatter_add(count, dim, index, aten.ones_like(src))
        count = aten.masked_fill(count, count == 0, 1)
        grad_self, grad_src = g / count, aten.gather(g, dim, index) / aten.gather(count, dim, index)
    elif reduce == "prod":
        grad_self, grad_src = _prod_grads(g, self, dim, index, src, include_self, result)
    else:
        at_result = aten.gather(result, dim, index)
        self_hit, src_hit = (self == result).to(dtype=g.dtype), (src == at_result).to(dtype=g.dtype)
        # As torch shares it out: what `self` holds counts among the ties even where it takes no part.
        ties = aten.scatter_add(self_hit, dim, index, src_hit)
        share = g / ties
        grad_self, grad_src = self_hit * share, src_hit * aten.gather(share, dim, index)
    if not include_self:
        grad_self = aten.scatter(grad_self, dim, index, 0)
    return grad_self, None, grad_src


def _prod_grads(g, self, dim, index, src, include_self, result):
    """A factor's gradient is the product of the others, so the only zero of a product gets one of its own."""
    alive = aten.masked_fill(self, self == 0, 1)
    grad_self = g * aten.scatter_reduce(alive, dim, index, src, "prod", include_self=include_self) / alive
    zero = src == 0
    zeros_there = aten.gather(aten.scatter_add(aten.zeros_like(self), dim, index, zero.to(dtype=g.dtype)), dim, index)
    single = zero & (zeros_there == 1)
    others = aten.scatter_reduce(self, dim, index, aten.masked_fill(src, single, 1), "prod", include_self=include_self)
    grad_src = aten.where(
        single, aten.gather(g * others, dim, index), aten.gather(g * result, dim, index) / aten.masked_fill(src, zero, 1)
    )
    if grad_src.requires_grad and bool(aten.any(zero & (zeros_there > 1))):
        (grad_src,) = delayed_errors(
            (grad_src,),
            "Double backward is unsupported for src when >1 zeros in src are scattered to the same position in self",
        )
    return grad_self, grad_src


# ---------------------------------------------------------------- index_reduce


def _spread(index, dim, shape):
    """The 1-d index of one dim as one for every element of a source; sources and indices without dims have one of size 1."""
    return np.broadcast_to(index.reshape((-1,) + (1,) * (len(shape) - dim - 1)), shape) if shape else index.reshape(())


def _check_reduced(self, dim, index, source, reduce):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    check_index(index, "index_reduce_")
    check_same_type(self, source, "index_reduce_")
    if self.ndim != source.ndim or any(n != source.shape[d] for d, n in enumerate(self.shape) if d != dim):
        raise other_shape(self, source)
    check_count(source, dim, index, "index_reduce_")
    if index.size:
        low, high = extremes(index)
        if low < 0 or high >= size_at(self, dim):
            raise IndexError("index out of range in self")


@op(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 0, make.ints(3, 5), make(5, 4), "prod")],
)
def index_reduce(self, dim, index, source, reduce, include_self, out=None):
    """Reduces rows of `source` into those that the index names: "prod", "mean", "amax" or "amin".

    >>> torch.index_reduce(torch.ones(2), 0, torch.tensor([0, 0]), torch.tensor([2.0, 3.0]), "prod")
    tensor([6., 1.])
    """
    dim = normal_dim(dim, self.ndim)
    _check_reduced(self, dim, index, source, reduce)
    return scatter_reduce.kernel(self, dim, _spread(index, dim, source.shape), source, reduce, include_self, _start(self, out))


@index_reduce.vjp
def _(g, self, dim, index, source, reduce, include_self, result):
    dim = normal_dim(dim, self._array.ndim)
    spread = make_tensor(_spread(index._array, dim, source._array.shape))
    return _reduce_grads(g, self, dim, spread, source, reduce, include_self, result)


# ---------------------------------------------------------------- one_hot


def _one_hot_shape(self, num_classes):
    if num_classes < 1:
        raise NotImplementedError("the number of classes of one_hot depends on values, which meta tensors do not have")
    return (*self._array.shape, num_classes), _INT64


@op(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    nondiff=True,
    shape=_one_hot_shape,
    samples=lambda make: [(make.ints(4, 3), 4)],
    batching=Batching.LAST_DIMS,
    doc="""A row for each class number, with a one at its place.

    >>> F.one_hot(torch.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """,
)
def one_hot(self, num_classes):
    """One row of zeros per element, with a one at the element's own position."""
    if self.dtype != _INT64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not self.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return np.empty((*self.shape, num_classes), _INT64)
    low, high = extremes(self)
    if low < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = high + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif high >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    rows = np.zeros((self.size, num_classes), _INT64)
    rows[np.arange(self.size), self.reshape(-1)] = 1
    return rows.reshape(*self.shape, num_classes)
