"""Joining tensors: cat, stack and their relatives."""

from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._dispatch.promotion import rank
from .._dispatch.registry import aten, composite, op
from ._common import normal_dim


def _common(arrays):
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
    kept = [a for a in arrays if not _is_nothing(a.shape)]
    first = kept[0]
    for position, array in enumerate(arrays):
        if _is_nothing(array.shape):
            continue
        if array.ndim != first.ndim:
            return RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {array.ndim}")
        for d in range(first.ndim):
            if d != dim % first.ndim and array.shape[d] != first.shape[d]:
                return RuntimeError(f"Sizes of tensors must match except in dimension {dim % first.ndim}. Expected size "
                                    f"{first.shape[d]} but got size {array.shape[d]} for tensor number {position} in the "
                                    "list.")
    return None


def _cat_shape(tensors, dim):
    shapes = [t._array.shape for t in tensors if not _is_nothing(t._array.shape)] or [(0,)]
    dim = normal_dim(dim, len(shapes[0]))
    whole = list(shapes[0])
    whole[dim] = sum(s[dim] for s in shapes)
    return whole, dt.result_type(*map(rank, tensors)).np


@op("cat(Tensor[] tensors, int dim=0) -> Tensor", shape=_cat_shape,
    samples=lambda make: [([make(3, 4), make(2, 4)],), ([make(3, 4), make(3, 1)], 1)])
def cat(tensors, dim):
    if not tensors:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    arrays = _common(tensors)
    try:
        return np.concatenate(arrays, dim)
    except ValueError:
        pass
    kept = [a for a in arrays if not _is_nothing(a.shape)]
    error = _cat_error(arrays, normal_dim(dim, kept[0].ndim if kept else 1))
    if error is not None:
        raise error
    return np.concatenate(kept, dim)


def _cat_grads(g, shapes, dim):
    dim = normal_dim(dim, g._array.ndim)
    grads, start = [], 0
    for shape in shapes:
        if _is_nothing(shape):
            grads.append(aten.new_zeros(g, (0,)))
            continue
        grads.append(aten.narrow(g, dim, start, shape[dim]))
        start += shape[dim]
    return grads


cat.vjp(tensors=lambda g, tensors_shape, dim: _cat_grads(g, tensors_shape, dim))

composite("concat(Tensor[] tensors, int dim=0) -> Tensor", lambda tensors, dim: aten.cat(tensors, dim),
          samples=lambda make: [([make(3, 4), make(2, 4)],)])
composite("concatenate(Tensor[] tensors, int dim=0) -> Tensor", lambda tensors, dim: aten.cat(tensors, dim),
          samples=lambda make: [([make(3, 4), make(2, 4)],)])


def _stack_shape(tensors, dim):
    shape = tensors[0]._array.shape
    dim = normal_dim(dim, len(shape) + 1)
    return (*shape[:dim], len(tensors), *shape[dim:]), dt.result_type(*map(rank, tensors)).np


@op("stack(Tensor[] tensors, int dim=0) -> Tensor", shape=_stack_shape,
    samples=lambda make: [([make(3, 4), make(3, 4)],), ([make(3, 4), make(3, 4)], -1)])
def stack(tensors, dim):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    arrays = _common(tensors)
    shape = arrays[0].shape
    for position, array in enumerate(arrays):
        if array.shape != shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                               f"{list(array.shape)} at entry {position}")
    if dim != 0:
        dim = normal_dim(dim, len(shape) + 1)
    if dim == 0 and shape:
        # Rows one after the other are the stack already.
        return np.concatenate(arrays, 0).reshape(len(arrays), *shape)
    key = (slice(None),) * dim + (None,)
    return np.concatenate([a[key] for a in arrays], dim)


stack.vjp(tensors=lambda g, tensors_shape, dim:
          [aten.select(g, dim, i) for i in range(len(tensors_shape))])
