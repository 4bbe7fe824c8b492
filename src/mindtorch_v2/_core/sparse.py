"""Sparse tensors in coordinate form: a tensor of indices, a tensor of values, and a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from .keys import SPARSE
from .shape_only import ShapeOnlyArray
from .tensor import Tensor


class SparseTensor(Tensor):
    """`_coordinates` is (sparse dims, entries), `_entries` (entries, *dense dims). Ops find it by the SPARSE key."""

    _coordinates: Any
    _entries: Any
    _coalesced: bool

    @property  # type: ignore[misc]
    def requires_grad(self) -> bool:
        return bool(self._entries.requires_grad)


def make_sparse(coordinates: Any, entries: Any, size: tuple[int, ...], coalesced: bool) -> SparseTensor:
    """A sparse tensor of its parts, which the caller has checked."""
    tensor = object.__new__(SparseTensor)
    tensor._coordinates, tensor._entries, tensor._coalesced = coordinates, entries, coalesced
    # The shape of the dense form without its memory: all elements are one, which must not be read.
    tensor._array = np.broadcast_to(np.zeros((), entries._array.dtype), size).view(ShapeOnlyArray)
    tensor._keys = SPARSE
    tensor._storage = tensor._base = tensor._grad = None
    return tensor


def with_entries(sparse: Any, entries: Any) -> SparseTensor:
    """A sparse tensor of the same places with other values."""
    if isinstance(sparse, CompressedTensor):
        return make_compressed(sparse._layout, sparse._compressed, sparse._plain, entries, sparse._array.shape)
    return make_sparse(sparse._coordinates, entries, sparse._array.shape, sparse._coalesced)


class CompressedTensor(SparseTensor):
    """A sparse matrix whose rows or columns are compressed: it has the place among the entries where each begins.

    `_compressed` are these starts, `_plain` the other index of each entry, `_entries` the values: single ones, or blocks for
    the layouts BSR and BSC. Dims behind the first two are dense.
    """

    _compressed: Any
    _plain: Any
    _layout: Any


def make_compressed(layout: Any, compressed: Any, plain: Any, entries: Any, size: tuple[int, ...]) -> CompressedTensor:
    """A compressed sparse tensor of its parts, which the caller has checked."""
    tensor = object.__new__(CompressedTensor)
    tensor._compressed, tensor._plain, tensor._entries, tensor._layout = compressed, plain, entries, layout
    tensor._coalesced = True
    tensor._array = np.broadcast_to(np.zeros((), entries._array.dtype), size).view(ShapeOnlyArray)
    tensor._keys = SPARSE
    tensor._storage = tensor._base = tensor._grad = None
    return tensor
