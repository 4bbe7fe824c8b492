"""Rows that an index names along one dim: index_select, index_add, index_copy, index_fill."""

from __future__ import annotations

import numpy as np

from ..._core.layout import dense_copy
from ..._dispatch.errors import overlapping_input
from ..._dispatch.facts import Autocast, Batching, Overlap
from ..._dispatch.registry import aten, composite, op
from .._support.common import like_first, normal_dim, scalar_name
from .._support.flops import per_element
from .._support.numbers import number_of
from .._support.out_rules import dtype_of_self, exact_dtype
from ._checks import check_count, check_index, check_long, check_same_type, other_shape, size_at
from ._expanded_writes import is_expanded, writable
from .index import add_at, c_order, index_error
from .scatter import MANY, extremes, put_at_places

_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)


def _index_select_shape(self, dim, index):
    shape = list(self._array.shape)
    if shape:
        shape[normal_dim(dim, len(shape))] = index._array.size
    return shape, self._array.dtype


@op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    checks_overlap=Overlap.EVERY,
    shape=_index_select_shape,
    samples=lambda make: [(make(3, 4), 0, make.ints(3, 5)), (make(3, 4), -1, make.ints(4, 2))],
    batching=Batching.ALONG_DIM,
    out_rule=exact_dtype(dtype_of_self, lambda want, have: "index_select(): self and result must have the same scalar type"),
)
def index_select(self, dim, index):
    """The rows that the index names, along `dim`.

    >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 0, torch.tensor([1, 0]))
    tensor([[3, 4],
            [1, 2]])
    """
    if dim and dim != -1:
        normal_dim(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not self.ndim and index.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
    if index.dtype is not _INT64 and index.dtype not in (_INT64, _INT32):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not self.ndim:
        self = self.reshape(1)
        return index_select.kernel(self, 0, index).reshape(())
    if index.size and index.item(index.argmin()) < 0:
        raise _not_there(self, dim, index)
    if not self.size:
        return _select_nothing(self, normal_dim(dim, self.ndim), index)
    try:
        if self.flags.c_contiguous:
            return self.take(index if index.ndim else index.reshape(1), dim)
        key = (slice(None),) * normal_dim(dim, self.ndim) + (index.reshape(-1),)
        return c_order(self[key])
    except np.exceptions.AxisError:
        raise
    except IndexError:
        raise _not_there(self, dim, index) from None


def _not_there(self, dim, index):
    """What torch says of a position that a dim does not have: its kernels for dim 1 and for no elements have other words."""
    dim = normal_dim(dim, self.ndim)
    size = self.shape[dim]
    if self.ndim == 1 or (dim != 1 and self.size):
        return IndexError("index out of range in self")
    if not size:
        return RuntimeError("index_select(): self indexing axis dim should be positive")
    wrong = next(place for place in index.flat if not 0 <= place < size)
    return RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}")


def _select_nothing(self, dim, index):
    """The rows of an array without elements; positions count all the same."""
    if index.size and extremes(index)[1] >= self.shape[dim]:
        raise _not_there(self, dim, index)
    return np.empty((*self.shape[:dim], index.size, *self.shape[dim + 1 :]), self.dtype)


index_select.vjp(self=lambda g, self_shape, dim, index: aten.index_select_backward(g, self_shape, dim, index))


@composite(
    "index_select_backward(Tensor grad, int[] self_sizes, int dim, Tensor index) -> Tensor",
    samples=lambda make: [(make(2, 4), (3, 4), 0, make.ints(3, 2))],
)
def index_select_backward(grad, self_sizes, dim, index):
    return aten.index_add_(aten.new_zeros(grad, self_sizes), dim, index, grad)


def at_dim(dim, index):
    """The NumPy key that puts `index` at one dim and takes all of the dims before it."""
    return (slice(None),) * dim + (index,)


def _others(array, dim):
    """The sizes of all dims but one."""
    return [n for d, n in enumerate(array.shape) if d != dim]


@op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [
        (make(3, 4), 0, make.ints(3, 5), make(5, 4)),
        (make(3, 4), 1, make.ints(4, 2), make(3, 2), {"alpha": 2}),
    ],
    flops=per_element(1),
)
def index_add(self, dim, index, source, alpha, out=None):
    """Adds rows of `source`, times `alpha`, where the index says.

    >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 2, 0]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    dim = normal_dim(dim, self.ndim)
    check_index(index, "index_add_")
    check_same_type(self, source, "index_add_")
    check_count(source, dim, index, "index_add_")
    if _others(self, dim) != _others(source, dim) or bool(self.ndim) != bool(source.ndim):
        raise other_shape(self, source)
    if out is None:
        out = self.copy("C")
    if not self.size and self.ndim > 1:
        return out
    low, high = extremes(index) if index.size else (0, -1)
    if low < 0 or high >= size_at(self, dim):
        if self.ndim < 2 or 0 < dim < self.ndim - 1:
            raise IndexError("index out of range in self")
        raise RuntimeError(
            f"index {low if low < 0 else high} is out of bounds for dimension {dim} with size {size_at(self, dim)}"
        )
    target, places = out.reshape(1) if not out.ndim else out, index.reshape(-1)
    added = source.reshape(1) if not source.ndim else source
    if alpha != 1 and (index.size or self.ndim < 2):
        added = np.multiply(added, number_of(alpha, added.dtype), dtype=added.dtype, casting="unsafe")
    if dim and added.size > MANY and target.flags.c_contiguous and target.dtype.kind not in "VW":
        named = np.broadcast_to(places.reshape(-1, *[1] * (target.ndim - dim - 1)), added.shape)
        put_at_places(target, dim, named, added, np.add)
        return out
    # The dim comes first, so that whole rows are added.
    add_at(target.swapaxes(0, dim), (places,), added.swapaxes(0, dim))
    return out


def _source_grad(g, dim, index, source):
    if source._array.ndim:
        return aten.expand_as(aten.index_select(g, dim, index), source)
    return aten.squeeze(aten.index_select(g, dim, index))


def _added_grad(g, dim, index, source, alpha):
    grad = _source_grad(g, dim, index, source)
    return grad if alpha == 1 else grad * alpha


index_add.vjp(self=lambda g: g, source=_added_grad)


@op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 0, make.ints(1, 1), make(1, 4))],
    autocast=Autocast.WIDEST,
)
def index_copy(self, dim, index, source, out=None):
    """Copies rows of `source` to where the index says.

    >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    dim = normal_dim(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim != self.ndim and source.ndim and self.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
        )
    check_long(index, "index_copy_")
    if self.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(self)} and (source) {scalar_name(source)}"
        )
    if _others(self, dim) != _others(source, dim):
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
            f"shape: {' '.join(map(str, _others(self, dim)))} at dimension {dim} and source slice "
            f"shape: {' '.join(map(str, _others(source, dim)))} at dimension {dim}."
        )
    if source.ndim and size_at(source, dim) != index.size:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({size_at(source, dim)})"
        )
    if out is None:
        out = self.copy("C")
    if not source.size:
        return out
    target, places = out if out.ndim else out.reshape(1), index.reshape(-1)
    low, high = extremes(places)
    if low < 0 or high >= target.shape[dim]:
        wrong = low if low < 0 else high
        raise IndexError(f"index_copy_(): index {wrong} is out of bounds for dimension {dim} with size {target.shape[dim]}")
    target[at_dim(dim, places)] = source
    return out


index_copy.vjp(self=lambda g, dim, index: aten.index_fill(g, dim, index, 0), source=_source_grad)


def _fill_index(self, dim, index, value, out):
    dim = normal_dim(dim, self.ndim)
    if index.dtype != _INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if out is None:
        out = dense_copy(self)
    else:
        overlapping_input(out, index, same=True)
    target = out if out.ndim else out.reshape(1)
    if not isinstance(value, np.ndarray):
        value = number_of(value, self.dtype)
    if 0 in _others(target, dim):
        return out  # torch looks at no position then
    if is_expanded(target):
        target = writable(target, "index_fill_", "tensor[indices] = scalar")
    try:
        target[at_dim(dim, index)] = value
    except IndexError as error:
        raise index_error(error, out, [index]) from None
    return out


@op(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    refuses_integer_results=True,
    inplace=True,
    shape=like_first,
    node="IndexFillBackward1",
    samples=lambda make: [(make(3, 4), 0, make.ints(3, 2), make())],
    batching=Batching.ALONG_DIM,
    out=False,
)
def index_fill_tensor(self, dim, index, value, out=None):
    """Fills the rows that the index names with one value.

    >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 5)
    tensor([5., 0., 5.])
    """
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return _fill_index(self, dim, index, value, out)


index_fill_tensor.vjp(
    self=lambda g, dim, index: aten.index_fill(g, dim, index, 0),
    value=lambda g, dim, index: aten.sum(aten.index_select(g, dim, aten._unique(index)[0])),
)


@op(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace=True,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 0, make.ints(3, 2), 2.0)],
    batching=Batching.ALONG_DIM,
    out=False,
)
def index_fill(self, dim, index, value, out=None):
    if isinstance(value, complex) and self.dtype.kind != "c" and index.dtype == _INT64:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    return _fill_index(self, dim, index, value, out)


index_fill.vjp(self=lambda g, dim, index: aten.index_fill(g, dim, index, 0))
