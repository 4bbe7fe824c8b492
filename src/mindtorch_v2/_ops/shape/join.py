"""Joining tensors: cat, stack and their relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.layout import has_channels_last
from ..._core.single_pass import LARGE, copy_into
from ..._dispatch.errors import torch_error
from ..._dispatch.facts import Autocast, Overlap, Surface
from ..._dispatch.promotion import rank
from ..._dispatch.registry import aten, composite, op
from .._support.common import normal_dim


def common(arrays):
    """Arrays in the dtype that torch promotes them to."""
    first = arrays[0].dtype
    for array in arrays:
        if array.dtype is not first and array.dtype != first:
            kinds = [(dt.from_numpy(a.dtype), dt.DIM_TENSOR if a.ndim else dt.ZERO_DIM_TENSOR) for a in arrays]
            wanted = dt.result_type(*kinds).np
            return [a.astype(wanted, copy=False) for a in arrays]
    return arrays


def _is_nothing(shape):
    """Whether cat passes over a tensor: an empty 1-d one counts as nothing, whatever the shape of the others."""
    return len(shape) == 1 and shape[0] == 0


def _cat_error(arrays, dim):
    for position, array in enumerate(arrays):
        if array.ndim == 0:
            return RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    first = next((a for a in arrays if not _is_nothing(a.shape)), None)
    for position, array in enumerate(arrays):
        if _is_nothing(array.shape):
            continue
        if array.ndim != first.ndim:
            return RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {array.ndim}")
        for d in range(first.ndim):
            if d != dim and array.shape[d] != first.shape[d]:
                return RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size "
                    f"{first.shape[d]} but got size {array.shape[d]} for tensor number {position} in "
                    "the list."
                )
    return None


def _cat_shape(tensors, dim):
    shapes = [t._array.shape for t in tensors if not _is_nothing(t._array.shape)] or [(0,)]
    dim = normal_dim(dim, len(shapes[0]))
    error = _cat_error([t._array for t in tensors], dim)
    if error is not None:
        raise error
    whole = list(shapes[0])
    whole[dim] = sum(s[dim] for s in shapes)
    return whole, dt.result_type(*map(rank, tensors)).np


@op(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    shape=_cat_shape,
    samples=lambda make: [([make(3, 4), make(2, 4)],), ([make(3, 4), make(3, 1)], 1)],
    autocast=Autocast.WIDEST,
    checks_overlap=Overlap.ANY,
)
def cat(tensors, dim):
    """Joins tensors along a dim they have.

    >>> torch.cat([torch.tensor([[1, 2]]), torch.tensor([[3, 4]])])
    tensor([[1, 2],
            [3, 4]])
    """
    if not tensors:
        raise torch_error(ValueError("torch.cat(): expected a non-empty list of Tensors"))
    arrays = tensors
    kind = tensors[0].dtype
    for array in tensors:
        if array.dtype is not kind:
            arrays = common(tensors)
            break
    try:
        joined = _joined(arrays, dim)
    except ValueError:
        pass
    else:
        return joined if joined.flags.c_contiguous or _stays_channels_last(joined, arrays) else joined.copy("C")
    kept = [a for a in arrays if not _is_nothing(a.shape)]
    if not kept:
        return arrays[0].copy()
    if not kept[0].ndim:
        dim = 0  # torch counts dims before it looks for this one
    error = _cat_error(arrays, normal_dim(dim, kept[0].ndim))
    if error is not None:
        raise error
    return np.ascontiguousarray(np.concatenate(kept, dim))


def _joined(arrays, dim):
    """np.concatenate; threads share the copy of each large array."""
    first = arrays[0]
    if sum([a.size for a in arrays]) < LARGE or not -first.ndim <= dim < first.ndim:
        return np.concatenate(arrays, dim)
    dim %= first.ndim
    others = {a.shape[:dim] + a.shape[dim + 1 :] for a in arrays}
    if len(others) > 1 or not all(a.flags.c_contiguous for a in arrays):
        return np.concatenate(arrays, dim)
    joined, start = np.empty([*first.shape[:dim], sum([a.shape[dim] for a in arrays]), *first.shape[dim + 1 :]], first.dtype), 0
    for array in arrays:
        end = start + array.shape[dim]
        copy_into(joined[(*(slice(None),) * dim, slice(start, end))], array)
        start = end
    return joined


def _stays_channels_last(joined, arrays):
    """Whether the parts all have their channels innermost, and so has the whole; NumPy keeps the order that parts have."""
    return (
        joined.ndim in (4, 5)
        and all(map(has_channels_last, arrays))
        and joined.transpose(0, *range(2, joined.ndim), 1).flags.c_contiguous
    )


def _cat_grads(g, shapes, dim):
    grads, start = [], 0
    for shape in shapes:
        if _is_nothing(shape):
            grads.append(aten.new_zeros(g, (0,)))
            continue
        dim = normal_dim(dim, g._array.ndim)  # where there is nothing but such tensors, any dim will do
        grads.append(aten.narrow(g, dim, start, shape[dim]))
        start += shape[dim]
    return grads


cat.vjp(tensors=lambda g, tensors_shape, dim: _cat_grads(g, tensors_shape, dim))

composite(
    "concat(Tensor[] tensors, int dim=0) -> Tensor",
    lambda tensors, dim: aten.cat(tensors, dim),
    samples=lambda make: [([make(3, 4), make(2, 4)],)],
    out=True,
    doc="""Joins tensors along a dim they have, as `cat`.

    >>> torch.concat([torch.tensor([1]), torch.tensor([2])])
    tensor([1, 2])
    """,
)
composite(
    "concatenate(Tensor[] tensors, int dim=0) -> Tensor",
    lambda tensors, dim: aten.cat(tensors, dim),
    samples=lambda make: [([make(3, 4), make(2, 4)],)],
    out=True,
    doc="""Joins tensors along a dim they have, as `cat`.

    >>> torch.concatenate([torch.tensor([1]), torch.tensor([2])])
    tensor([1, 2])
    """,
)


def _alike(arrays):
    """Whether arrays have one shape and one dtype."""
    shape, kind = arrays[0].shape, arrays[0].dtype
    return all(not (array.dtype is not kind or array.shape != shape) for array in arrays)


def _common_shape(arrays):
    """The shape that tensors must share to be stacked."""
    if not arrays:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = arrays[0].shape
    for position, array in enumerate(arrays):
        if array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(array.shape)} at entry {position}"
            )
    return shape


def _stack_shape(tensors, dim):
    shape = _common_shape([t._array for t in tensors])
    dim = normal_dim(dim, len(shape) + 1)
    return (*shape[:dim], len(tensors), *shape[dim:]), dt.result_type(*map(rank, tensors)).np


@op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    shape=_stack_shape,
    samples=lambda make: [([make(3, 4), make(3, 4)],), ([make(3, 4), make(3, 4)], -1)],
    autocast=Autocast.WIDEST,
    checks_overlap=Overlap.ANY,
)
def stack(tensors, dim):
    """Joins tensors along a new dim.

    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if not tensors or not _alike(tensors):
        _common_shape(tensors)
        tensors = common(tensors)
    if dim != 0:
        dim = normal_dim(dim, tensors[0].ndim + 1)
    if dim == 0:
        return np.array(tensors)
    if dim < tensors[0].ndim == 4 and all(map(has_channels_last, tensors)):
        shape = tensors[0].shape  # torch joins along the dim that is there, and splits it
        return cat.kernel(tensors, dim).reshape(*shape[:dim], len(tensors), *shape[dim:])
    key = (slice(None),) * dim + (None,)
    stacked = np.concatenate([a[key] for a in tensors], dim)
    return stacked if stacked.flags.c_contiguous else stacked.copy("C")


stack.vjp(tensors=lambda g, tensors_shape, dim: [aten.select(g, dim, i) for i in range(len(tensors_shape))])


@composite(
    "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
    out=True,
    samples=lambda make: [([make(3, 4), make(5)], 0, 2), ([make(3, 4), make(3, 2)], 1, 2)],
)
def chunk_cat(tensors, dim, num_chunks):
    """Each tensor's dim in equal chunks, filled up with zeros, all that follows it flat behind; then joined chunk by chunk."""
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    ranks = {tensor._array.ndim for tensor in tensors}
    if dim < 0 and len(ranks) > 1:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    dim = normal_dim(dim, max(ranks))
    if dim >= min(ranks):
        raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
    before = tensors[0]._array.shape[:dim]
    parts = []
    for tensor in tensors:
        array = tensor._array
        if not array.size:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if array.dtype != tensors[0]._array.dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if array.shape[:dim] != before:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
        n = array.shape[dim]
        length = -(-n // num_chunks) * num_chunks
        if length != n:
            whole = aten.new_zeros(tensor, (*before, length, *array.shape[dim + 1 :]))
            aten.copy_(aten.narrow(whole, dim, 0, n), tensor)
            tensor = whole
        parts.append(aten.reshape(tensor, (*before, num_chunks, -1)))
    return aten.cat(parts, dim + 1)


# ---------------------------------------------------------------- with at least so many dims


def _atleast_1d(self):
    return self if self._array.ndim else aten.reshape(self, (1,))


def _atleast_2d(self):
    ndim = self._array.ndim
    return self if ndim > 1 else aten.unsqueeze(self, 0) if ndim else aten.reshape(self, (1, 1))


def _atleast_3d(self):
    ndim = self._array.ndim
    if ndim > 2:
        return self
    if ndim == 2:
        return aten.unsqueeze(self, -1)
    return aten.unsqueeze(aten.unsqueeze(self, 0), -1) if ndim else aten.reshape(self, (1, 1, 1))


FUNCTIONS: dict[str, Callable[..., Any]] = {}


def variadic(name, schema_of_list):
    """torch.<name>(a, b, ...) for an op that takes one list; a list may be given as well."""

    def call(*tensors, **kwargs):
        if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
            tensors = tensors[0]
        return schema_of_list(list(tensors), **kwargs)

    call.__name__ = name
    return call


def _declare_atleast(name, body, *, doc=None):
    composite(
        f"{name}(Tensor self) -> Tensor",
        body,
        samples=lambda make: [(make(3),), (make(),)],
        doc=doc,
        handwritten=Surface.FUNCTION,
    )
    several = composite(
        f"{name}.Sequence(Tensor[] tensors) -> Tensor[]",
        lambda tensors: tuple([body(t) for t in tensors]),
        samples=lambda make: [([make(3), make()],)],
        handwritten=Surface.FUNCTION,
    )

    def call(*tensors):
        if len(tensors) == 1 and not isinstance(tensors[0], list | tuple):
            return getattr(aten, name)(tensors[0])
        return several.call(tensors[0] if len(tensors) == 1 else tensors)

    call.__name__ = name
    FUNCTIONS[name] = call


_declare_atleast(
    "atleast_1d",
    _atleast_1d,
    doc="""The tensor with at least one dim.

    >>> torch.atleast_1d(torch.tensor(3))
    tensor([3])
    """,
)
_declare_atleast(
    "atleast_2d",
    _atleast_2d,
    doc="""The tensor with at least two dims.

    >>> torch.atleast_2d(torch.tensor([3]))
    tensor([[3]])
    """,
)
_declare_atleast(
    "atleast_3d",
    _atleast_3d,
    doc="""The tensor with at least three dims.

    >>> torch.atleast_3d(torch.tensor([3])).shape
    torch.Size([1, 1, 1])
    """,
)


def _pair_samples(make):
    return [([make(3, 4), make(3, 4)],), ([make(4), make(4)],)]


@composite("hstack(Tensor[] tensors) -> Tensor", samples=_pair_samples, out=True)
def hstack(tensors):
    """Joins tensors as columns: along the second dim, or the only one.

    >>> torch.hstack([torch.tensor([1]), torch.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    rows = aten.atleast_1d(tensors)
    return aten.cat(rows, 0 if rows[0]._array.ndim == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", samples=_pair_samples, out=True)
def vstack(tensors):
    """Joins tensors as rows.

    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return aten.cat(aten.atleast_2d(tensors), 0)


@composite("dstack(Tensor[] tensors) -> Tensor", samples=_pair_samples, out=True)
def dstack(tensors):
    """Joins tensors along a third dim.

    >>> torch.dstack([torch.tensor([1]), torch.tensor([2])])
    tensor([[[1, 2]]])
    """
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return aten.cat(aten.atleast_3d(tensors), 2)


@composite("column_stack(Tensor[] tensors) -> Tensor", samples=_pair_samples, out=True)
def column_stack(tensors):
    """Joins tensors as columns.

    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return aten.hstack([t if t._array.ndim > 1 else aten.reshape(t, (t._array.size, 1)) for t in tensors])


composite(
    "row_stack(Tensor[] tensors) -> Tensor",
    lambda tensors: aten.vstack(tensors),
    samples=_pair_samples,
    out=True,
    doc="""Joins tensors as rows, as `vstack`.

    >>> torch.row_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """,
)
