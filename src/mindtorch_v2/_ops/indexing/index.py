"""Reading and writing at integer or boolean positions: index, index_put, index_select, index_add, take, put."""

from __future__ import annotations

import math

import numpy as np

from ..._core.determinism import alert_not_deterministic
from ..._core.layout import dense_copy, in_order, order_of_dims
from ..._dispatch.errors import depends_on_values, overlapping_input
from ..._dispatch.facts import Autocast, Batching, Overlap
from ..._dispatch.registry import aten, composite, op
from .._support.common import WIDE, add_rows, like_first, normal_dim, scalar_name
from .._support.flops import per_element
from .._support.numbers import number_of
from .._support.out_rules import dtype_of_self, exact_dtype
from .._support.warn import warn
from ._checks import check_count, check_index, check_same_type, other_shape, size_at
from ._expanded_writes import is_expanded, writable
from .scatter import extremes

_INT64 = np.dtype(np.int64)
_INT32 = np.dtype(np.int32)
_UINT8 = np.dtype(np.uint8)
_BOOL = np.dtype(np.bool_)


# ---------------------------------------------------------------- what an index means


def _as_key(shape, indices):
    """The indices as NumPy takes them, checked in torch's words."""
    key = []
    dim = 0
    for index in indices:
        if index is None:
            key.append(slice(None))
            dim += 1
            continue
        kind = index.dtype
        if kind is _INT64 or kind in (_INT32, _INT64):
            key.append(index)
            dim += 1
            continue
        if kind == _UINT8:
            warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
            index = index != 0
        elif kind != _BOOL:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        _check_mask(shape, dim, index)
        key.append(index)
        dim += max(index.ndim, 1)
    if dim > len(shape) + sum(k is not None and k.ndim == 0 and k.dtype == _BOOL for k in indices):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {dim})")
    if 0 in shape:
        _check_positions(shape, key)
    return tuple(key)


def _check_mask(shape, dim, mask):
    """IndexError for a mask of another shape than the dims from `dim` on."""
    for i, n in enumerate(mask.shape):
        if dim + i >= len(shape) or shape[dim + i] != n:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match the shape of "
                f"the indexed tensor {list(shape)} at index {dim + i}"
            )


def _check_positions(shape, key):
    """IndexError for positions in a dim of size 0, where NumPy looks at none since another dim has no elements either."""
    given = [k for k in key if k.__class__ is np.ndarray]
    if all(k.any() if k.dtype == _BOOL else k.size for k in given):
        dim = 0
        for k in key:
            if k.__class__ is np.ndarray and k.dtype != _BOOL and not shape[dim]:
                raise IndexError("index is out of bounds for dimension with size 0")
            dim += k.ndim if k.__class__ is np.ndarray and k.dtype == _BOOL else 1


def index_error(error, self, indices):
    """NumPy's IndexError in torch's words."""
    text = str(error)
    if "could not be broadcast" in text:
        shapes = ", ".join(str(list(i.shape)) for i in indices if i is not None)
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    if "empty axes" in text or text.endswith("with size 0"):
        return IndexError("index is out of bounds for dimension with size 0")
    return IndexError(text.replace("for axis", "for dimension"))


def _c_order(array):
    return array if array.flags.c_contiguous else array.copy("C")


def _lies_in_rows(index):
    """Whether an index lies in row-major order; torch looks at the strides of dims of one element, too."""
    return index.flags.c_contiguous and (index.ndim < 2 or index.strides[-1] == index.itemsize)


def _index_layout(array, indices, result):
    """A result of `array[indices]` in torch's order of dims: those that no index takes lie as in the array."""
    dims, at = [], 0
    for index in indices:
        taken = 1 if index is None or index.dtype in (_INT64, _INT32) else index.ndim
        dims += [] if index is None else range(at, at + taken)
        at += taken
    in_rows = array.flags.c_contiguous and all(index is None or _lies_in_rows(index) for index in indices)
    if in_rows or result.ndim < 2 or not result.size or not dims:
        return _c_order(result)
    kept = [step for dim, step in enumerate(array.strides) if dim not in dims]
    before = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    wide = result.ndim - len(kept)  # the dims of the indices, which lie together
    strides = [[*kept[:before], *[0] * wide, *kept[before:]]]
    strides += [_index_steps(index, result.shape, before, wide) for index in indices if index is not None]
    return in_order(result, order_of_dims(result.shape, strides))


def _index_steps(index, shape, before, wide):
    """The strides of an index that was brought to the shape of a result, where dims of one element lie around it."""
    sizes = shape[before : before + wide]
    if index.dtype not in (_INT64, _INT32):  # a mask stands for the list of its places
        own = [0] * (wide - 1) + [index.itemsize]
    else:
        missing = wide - index.ndim
        own = [0] * missing + [
            0 if n == 1 != size else step for n, step, size in zip(index.shape, index.strides, sizes[missing:], strict=True)
        ]
    outside, inside = (own[0] * sizes[0], own[-1]) if own else (index.itemsize, index.itemsize)
    ones = [outside] * before, [inside] * (len(shape) - before - wide)
    first, last = shape[:before], shape[before + wide :]
    return [
        *[step if n == 1 else 0 for n, step in zip(first, ones[0], strict=True)],
        *own,
        *[step if n == 1 else 0 for n, step in zip(last, ones[1], strict=True)],
    ]


@op(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    samples=lambda make: [
        (make(3, 4), [make.ints(3, 5)]),
        (make(3, 4), [None, make.ints(4, 2, 2)]),
        (make(3, 4), [make.ints(3, 2), make.ints(4, 2)]),
        (make(3, 4), [make.bools(3, 4)]),
    ],
    shape=lambda self, indices: (_indexed_shape(self._array, [_any_index(i) for i in indices]), self._array.dtype),
)
def index(self, indices):
    """The elements at integer or boolean positions: what `x[indices]` calls.

    >>> torch.ops.aten.index(torch.tensor([10, 20, 30]), [torch.tensor([2, 0])])
    tensor([30, 10])
    """
    try:
        if len(indices) == 1:
            first = indices[0]
            if first.dtype is _INT64 and self.ndim and self.flags.c_contiguous and _lies_in_rows(first):
                return self.take(first, 0)
            if first.dtype is _BOOL and first.shape == self.shape and first.ndim:
                # Taking the positions is up to five times as fast as NumPy's own loop over a mask.
                return self.take(first.ravel().nonzero()[0]) if self.flags.c_contiguous else self[first]
        elif (
            sum(i is not None for i in indices) == 1
            and indices[-1] is not None
            and indices[-1].dtype is _INT64
            and self.flags.c_contiguous
            and _lies_in_rows(indices[-1])
            and self.size
            and len(indices) <= self.ndim
        ):
            return self.take(indices[-1], len(indices) - 1)
        return _index_layout(self, indices, np.asarray(self[_as_key(self.shape, indices)]))
    except IndexError as error:
        shape = _shape_at(self, indices)
        if shape is not None and 0 in shape:  # torch looks at no position then
            return np.empty(shape, self.dtype)
        raise index_error(error, self, indices) from None


def _shape_at(array, indices):
    """The shape of array[indices], wherever the positions are; None if there is none, as for positions in a dim of size 0."""
    try:
        return _indexed_shape(array, [i * 0 if i is not None and i.dtype in (_INT64, _INT32) else i for i in indices])
    except IndexError:
        return None


def _indexed_shape(array, indices):
    """The shape of array[indices], worked out without touching the data."""
    probe = np.ndarray(array.shape, np.bool_, np.zeros(1, np.bool_), 0, (0,) * array.ndim)
    return probe[_as_key(array.shape, indices)].shape


def _any_index(index):
    """An index of the same shape as one whose values are not known."""
    if index is not None and index._array.dtype in (_BOOL, _UINT8):
        unknown = "the shape of a tensor indexed with a mask depends on the mask's values, which meta tensors do not have"
        raise depends_on_values(NotImplementedError(unknown), by_mask=True)
    return None if index is None else np.zeros(index._array.shape, _INT64)


index.vjp(self=lambda g, self_shape, indices: aten._index_put_impl_(aten.new_zeros(g, self_shape), indices, g, True, True))


# ---------------------------------------------------------------- index_put


def _put_mismatch(out, indices, values):
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing "
        f"result of shape {list(_shape_at(out, indices))}"
    )


def _put_error(error, out, indices, values):
    """What torch has against values at these positions; None if there is no position to write to."""
    shape = _shape_at(out, indices)
    if shape is None:
        return index_error(error, out, indices)
    if not _broadcasts(values.shape, shape):
        return _put_mismatch(out, indices, values)
    return None if 0 in shape else index_error(error, out, indices)


def _broadcasts(shape, wanted):
    """Whether an array of a shape can be seen in another, which has at least as many dims."""
    pairs = zip(shape[::-1], wanted[::-1], strict=False)
    return len(shape) <= len(wanted) and all(n in (1, m) for n, m in pairs)


def _is_one_mask(indices):
    given = [index for index in indices if index is not None]
    return len(given) == 1 and given[0].dtype in (_BOOL, _UINT8)


def _check_apart(out, indices, values):
    """RuntimeError for values or positions that lie in the memory that is written to."""
    if values.size != 1 or not _is_one_mask(indices):  # the number is read before the mask is filled
        for source in (values, *indices):
            if source is not None:
                overlapping_input(out, source, same=True)


def _check_masks(shape, indices, values):
    """What torch looks at before memory: the number of indices, and, for a single value, the shape of the first mask."""
    if len(indices) > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {len(indices)})")
    if values.size == 1:
        dim, first = next(((dim, index) for dim, index in enumerate(indices) if index is not None), (0, None))
        if first is not None and first.dtype in (_BOOL, _UINT8):
            _check_mask(shape, dim, first)


def put_at(out, indices, values, accumulate):
    """out[indices] = values, or += with repeated positions added up."""
    _check_masks(out.shape, indices, values)
    _check_apart(out, indices, values)
    key = _as_key(out.shape, indices)
    if values.size == 1 and _is_one_mask(indices) and not accumulate:  # torch fills the mask with the number
        if any(index is not None and index.dtype == _UINT8 for index in indices):
            raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
        if values.dtype != out.dtype:
            values = number_of(values.item(), out.dtype)
    if values.dtype != out.dtype:
        wanted = _shape_at(out, indices)
        if wanted is None:
            raise IndexError("index is out of bounds for dimension with size 0")
        if not _broadcasts(values.shape, wanted):
            raise _put_mismatch(out, indices, values)
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(out)} for the destination and {scalar_name(values)} for the source."
        )
    if is_expanded(out):
        out = writable(out, "index_put_", "tensor[indices] = tensor")
    try:
        if values.ndim > 1 and (values.shape[0] == 1 or not values.size):  # NumPy drops dims of size one
            shape = _shape_at(out, indices)
            if shape is not None and not _broadcasts(values.shape, shape):
                raise _put_mismatch(out, indices, values)
        if accumulate:
            _add_at(out, key, values)
        elif values.ndim == 0 and len(key) == 1 and key[0].dtype == _BOOL and key[0].shape == out.shape:
            np.copyto(out, values, where=key[0])
        else:
            out[key] = values
    except (IndexError, ValueError) as error:
        wrong = _put_error(error, out, indices, values)
        if wrong is not None:
            raise wrong from None


def _add_at(out, key, values):
    if not out.flags.c_contiguous or out.dtype.kind == "V":
        np.add.at(out, key, values)
        return
    # ufunc.at has a fast loop for flat positions only.
    if len(key) == 1 and key[0].dtype == _BOOL:
        key = key[0].nonzero()
    if all(k.__class__ is np.ndarray and k.dtype != _BOOL for k in key):
        rows = 0
        for dim, k in enumerate(key):
            n = out.shape[dim]
            rows = rows * n + from_front(k, n, dim)
        width = math.prod(out.shape[len(key) :])
        if width >= WIDE:
            values = np.broadcast_to(values, rows.shape + out.shape[len(key) :])
            add_rows(out.reshape(-1, width), rows.reshape(-1), values.reshape(-1, width))
            return
        places = rows[..., None] * width + np.arange(width) if width != 1 else rows
        shape = rows.shape + out.shape[len(key) :]
    else:
        # Index an array of flat positions in the same way: that gives the position of each element.
        places = np.arange(out.size).reshape(out.shape)[key]
        shape = places.shape
    np.add.at(out.reshape(-1), places.reshape(-1), np.broadcast_to(values, shape).reshape(-1))


def from_front(index, n, dim):
    """Positions counted from the front; IndexError for those outside of a dim of size n."""
    if not index.size:
        return index
    low, high = index.item(index.argmin()), index.item(index.argmax())
    if low < -n or high >= n:
        raise IndexError(f"index {low if low < -n else high} is out of bounds for dimension {dim} with size {n}")
    return index if low >= 0 else np.where(index < 0, index + n, index)


@op(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    inplace=True,
    shape=like_first,
    samples=lambda make: [(make(3, 4), [make.ints(3, 2)], make(2, 4), True), (make(3, 4), [make.bools(3, 4)], make())],
    out=False,
)
def index_put(self, indices, values, accumulate, out=None):
    """Puts values at integer or boolean positions, or adds them there.

    >>> torch.index_put(torch.zeros(3), (torch.tensor([0, 0]),), torch.tensor([1.0, 2.0]), accumulate=True)
    tensor([3., 0., 0.])
    """
    if out is None:
        out = dense_copy(self)
    put_at(out, indices, values, accumulate)
    return out


def _index_put_self_grad(g, indices, accumulate):
    return g if accumulate else aten.index_put(g, indices, aten.new_zeros(g, ()), False)


index_put.vjp(self=_index_put_self_grad, values=lambda g, indices: aten.index(g, indices))


@op(
    "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) "
    "-> Tensor(a!)",
    node="IndexPutImplBackward0",
    samples=lambda make: [(make(3, 4), [make.ints(3, 2)], make(2, 4), True)],
)
def index_put_impl_(self, indices, values, accumulate, unsafe):
    put_at(self, indices, values, accumulate)


index_put_impl_.vjp(self=_index_put_self_grad, values=lambda g, indices: aten.index(g, indices))


# ---------------------------------------------------------------- along one dim


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
        return _c_order(self[key])
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
    # The dim comes first, so that whole rows are added.
    _add_at(target.swapaxes(0, dim), (places,), added.swapaxes(0, dim))
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
    _check_long(index, "index_copy_")
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


# ---------------------------------------------------------------- flat positions


def _check_long(index, name):
    if index.dtype != _INT64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {scalar_name(index)}")


def _take_error(error, array):
    return IndexError(f"out of range: tried to access index {str(error).split()[1]} on a tensor of {array.size} elements.")


@op(
    "take(Tensor self, Tensor index) -> Tensor",
    checks_overlap=Overlap.EVERY,
    shape=lambda self, index: (index._array.shape, self._array.dtype),
    samples=lambda make: [(make(3, 4), make.ints(12, 2, 3))],
    out_rule=exact_dtype(
        dtype_of_self,
        lambda want, have: (
            "take(): self and out expected to have the same dtype, but got self.dtype = "
            f"{want.scalar_name} and out.dtype = {have.scalar_name}"
        ),
    ),
)
def take(self, index):
    """The elements at positions of the flattened tensor.

    >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
    tensor([1, 4])
    """
    _check_long(index, "take")
    if not self.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    try:
        return self.take(index)
    except IndexError as error:
        raise _take_error(error, self) from None


take.vjp(self=lambda g, self, index: aten.put_(aten.zeros_like(self), index, g, True))


@op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    inplace=True,
    checks_overlap=Overlap.ANY,
    shape=like_first,
    samples=lambda make: [(make(3, 4), make.ints(12, 5), make(5), True), (make(3, 4), make.ints(1, 1), make(1))],
    out=False,
)
def put(self, index, source, accumulate, out=None):
    """Puts values at positions of the flattened tensor.

    >>> torch.put(torch.tensor([1, 2, 3]), torch.tensor([0, 2]), torch.tensor([10, 30]))
    tensor([10,  2, 30])
    """
    if not accumulate:
        alert_not_deterministic("put_")
    _check_long(index, "put_")
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(self)} and source.dtype = {scalar_name(source)}"
        )
    if index.size != source.size:
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    if out is None:
        out = dense_copy(self)
    flat = out.reshape(-1)  # a copy where the memory does not lie in order, written back below
    values, places = source.reshape(-1), index.reshape(-1)
    try:
        if accumulate:
            np.add.at(flat, places, values)
        else:
            flat[places] = values
    except IndexError as error:
        raise _take_error(error, out) from None
    if not out.flags.c_contiguous:
        out[...] = flat.reshape(out.shape)
    return out


put.vjp(
    self=lambda g, index, source_shape, accumulate: (
        g if accumulate else aten.put(g, index, aten.new_zeros(g, source_shape), False)
    ),
    source=lambda g, index, source_shape: aten.reshape(aten.take(g, index), source_shape),
)
