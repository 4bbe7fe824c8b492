"""Reading and writing at integer or boolean positions in several dims: index, index_put."""

from __future__ import annotations

import math

import numpy as np

from ..._core.layout import dense_copy, in_order, order_of_dims
from ..._dispatch.errors import depends_on_values, overlapping_input
from ..._dispatch.registry import aten, op
from .._support.common import WIDE, add_rows, like_first, scalar_name
from .._support.numbers import number_of
from .._support.warn import warn
from ._expanded_writes import is_expanded, writable

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


def c_order(array):
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
        return c_order(result)
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
            add_at(out, key, values)
        elif values.ndim == 0 and len(key) == 1 and key[0].dtype == _BOOL and key[0].shape == out.shape:
            np.copyto(out, values, where=key[0])
        else:
            out[key] = values
    except (IndexError, ValueError) as error:
        wrong = _put_error(error, out, indices, values)
        if wrong is not None:
            raise wrong from None


def add_at(out, key, values):
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
