"""Sparse tensors by coordinates: construction, conversion from and to other layouts, and their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import META, SPARSE
from ..._core.memory_format import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..._core.sparse import CompressedTensor, SparseTensor, make_sparse, with_entries
from ..._core.tensor import Tensor, make_tensor
from ..._dispatch.registry import aten
from ..creation.from_data import as_tensor
from .compressed import LAYOUTS, PARTS, blocksize_of, compress, layout_name, to_coordinates


def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A sparse tensor from coordinates, one column per entry, and values; entries of equal coordinates add up."""
    if pin_memory:
        raise NotImplementedError("sparse_coo_tensor(pin_memory=True)")
    if values is None:  # sparse_coo_tensor(size): nothing in it
        size = tuple(indices if size is None else size)
        coordinates: Any = aten.zeros((len(size), 0), dtype=dt.int64)
        entries: Any = aten.zeros((0,), dtype=dtype)
    else:
        coordinates = as_tensor(indices).to(dt.int64)  # type: ignore[attr-defined]
        entries = as_tensor(values, dtype=dtype, device=device)
    if (coordinates._keys | entries._keys) & META:
        places = ["Meta" if part._keys & META else "CPU" for part in (coordinates, entries)]
        if size is None:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if places[0] != places[1]:
            raise RuntimeError(f"backend of indices ({places[0]}) must match backend of values ({places[1]})")
        raise NotImplementedError("sparse_coo_tensor() of tensors on the meta device")
    if coordinates.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(coordinates.shape)}")
    if entries.ndim < 1 or entries.shape[0] != coordinates.shape[1]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {coordinates.shape[1]}, nnz from "
            f"values: {entries.shape[0] if entries.ndim else 1}"
        )
    array = coordinates._array
    if size is None:
        size = (
            (*(int(n) + 1 for n in array.max(1)), *entries.shape[1:])
            if array.shape[1]
            else (*(0,) * array.shape[0], *entries.shape[1:])
        )
    size = _checked_size(size)
    if len(size) != coordinates.shape[0] + entries.ndim - 1:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({coordinates.shape[0]}) + dense_dim ({entries.ndim - 1}), "
            f"but got {len(size)}"
        )
    if array.size:
        lowest, highest = array.min(1), array.max(1)
        for dim, n in enumerate(size[: array.shape[0]]):
            if lowest[dim] < 0:
                raise RuntimeError(f"found negative index {lowest[dim]} for dim {dim}")
            if highest[dim] >= n:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {n} but found index {highest[dim]}"
                )
    if requires_grad:
        entries = entries.detach().requires_grad_()
    return make_sparse(coordinates, entries, size, bool(is_coalesced) or array.shape[1] < 2)


def _checked_size(size: Any) -> tuple[int, ...]:
    if not isinstance(size, list | tuple) or not all(_is_size(n) for n in size):
        raise TypeError(f"sparse_coo_tensor(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    return tuple(int(n) for n in size)


def _is_size(n: Any) -> bool:
    """Whether a value may stand for the number of elements along a dim: an integer, also of a tensor."""
    if isinstance(n, Tensor):
        return not n._array.ndim and n._array.dtype.kind in "iu"
    return isinstance(n, int | np.integer) and not isinstance(n, bool)


def _sparse(self: Any, what: str) -> SparseTensor:
    if not self._keys & SPARSE or isinstance(self, CompressedTensor):
        raise RuntimeError(f"{what} expected sparse coordinate tensor layout but got {layout_name(self)}")
    return self  # type: ignore[no-any-return]


def to_sparse(
    self: Any, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> SparseTensor:
    """The elements that are not zero, with their coordinates, or in a compressed layout; `dense_dim` last dims stay dense."""
    if sparse_dim is not None and (layout is not None or blocksize is not None or dense_dim is not None):
        raise TypeError("to_sparse() takes either sparse_dim or layout, blocksize and dense_dim")
    if self._keys & SPARSE:
        return _sparse_to_sparse(self, sparse_dim, layout, blocksize)
    wanted = sparse_coo if layout is None else layout
    if wanted is not sparse_coo and wanted not in LAYOUTS:
        raise RuntimeError(f"to_sparse: conversion from Strided to {wanted} is not supported")
    dims = self.ndim - (dense_dim or 0) if sparse_dim is None else sparse_dim
    if sparse_dim is not None and self.ndim and not 0 < sparse_dim <= self.ndim:
        raise RuntimeError(
            f"sparse_dim argument must be in [0,{self.ndim}] range, but {sparse_dim} is given"
            if not 0 <= sparse_dim <= self.ndim
            else f"sparse_dim argument must be in >0 when self.dim()>0, got {sparse_dim}"
        )
    if wanted is not sparse_coo and dims != 2:
        raise NotImplementedError(f"to_sparse(layout={wanted}) of {dims} sparse dims: batches of compressed sparse tensors")
    coo = _coordinates_of(self, dims)
    return coo if wanted is sparse_coo else compress(coo, wanted, blocksize)


def _coordinates_of(self: Any, dims: int) -> SparseTensor:
    """A strided tensor as COO with its first dims sparse: those rows that are not all zeros."""
    rows: Any = self if dims == self.ndim else aten.ne(self, 0).flatten(dims).any(-1)  # type: ignore[attr-defined]
    coordinates = aten.nonzero(rows)
    entries = aten.index(self, list(aten.unbind(coordinates, 1))) if dims else aten.reshape(self, (1, *self.shape))
    return make_sparse(aten.contiguous(aten.t(coordinates)), entries, tuple(self.shape), True)


def _sparse_to_sparse(self: Any, sparse_dim: int | None, layout: Any, blocksize: Any) -> SparseTensor:
    own = self._layout if isinstance(self, CompressedTensor) else sparse_coo
    if sparse_dim is not None and own is sparse_coo and sparse_dim != self._coordinates.shape[0]:
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    wanted = sparse_coo if layout is None else layout
    if wanted is own and (blocksize is None or tuple(blocksize) == blocksize_of(self)):
        return self  # type: ignore[no-any-return]
    coo = to_coordinates(self) if isinstance(self, CompressedTensor) else self
    if wanted is sparse_coo:
        return coo
    coo = coalesce(coo)
    return compress(coo, wanted, blocksize)


def _to_layout(name: str, layout: Any, in_blocks: bool) -> Any:
    if in_blocks:

        def blocked(self: Any, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
            sizes = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
            return to_sparse(self, layout=layout, blocksize=sizes, dense_dim=dense_dim)

        blocked.__name__, blocked.__doc__ = name, f"The matrix in the layout {layout}, in blocks of this shape."
        return blocked

    def converted(self: Any, dense_dim: int | None = None) -> SparseTensor:
        return to_sparse(self, layout=layout, dense_dim=dense_dim)

    converted.__name__, converted.__doc__ = name, f"The matrix in the layout {layout}."
    return converted


def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor with all its zeros."""
    if not self._keys & SPARSE:
        return self.to(dtype) if dtype is not None else self  # type: ignore[no-any-return]
    if isinstance(self, CompressedTensor):
        self = to_coordinates(self)
    if not self._coordinates.shape[0]:
        dense = aten.sum(self._entries, [0])
        return dense.to(dtype) if dtype is not None else dense
    zeros = aten.zeros(tuple(self.shape), dtype=self.dtype)
    dense = aten.index_put(zeros, list(aten.unbind(self._coordinates, 0)), self._entries, True)
    return dense.to(dtype) if dtype is not None else dense


def flat_places(self: Any) -> np.ndarray:
    """The places of the entries as numbers in row-major order."""
    array = self._coordinates._array
    if not array.size:  # no entries, or no sparse dims
        return np.zeros(array.shape[1], np.int64)
    return np.asarray(np.ravel_multi_index(tuple(array), self._array.shape[: array.shape[0]]))


def coalesce(self: Any) -> SparseTensor:
    """Coordinates in order and each only once; the values of equal ones are added."""
    _sparse(self, "coalesce")
    if self._coalesced:
        return self  # type: ignore[no-any-return]
    unique, first, place = np.unique(flat_places(self), return_index=True, return_inverse=True)
    entries = aten.index_add(
        aten.zeros((len(unique), *self._entries.shape[1:]), dtype=self.dtype),
        0,
        make_tensor(place.astype(np.int64)),
        self._entries,
    )
    coordinates = make_tensor(np.ascontiguousarray(self._coordinates._array[:, first]))
    return make_sparse(coordinates, entries, self._array.shape, True)


def indices(self: Any) -> Tensor:
    """The coordinates of a coalesced tensor, one column per entry."""
    if not _sparse(self, "indices")._coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return self._coordinates  # type: ignore[no-any-return]


def values(self: Any) -> Tensor:
    """The values of a coalesced tensor, or of a compressed one."""
    if isinstance(self, CompressedTensor):
        return self._entries  # type: ignore[no-any-return]
    if not self._keys & SPARSE:
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if not _sparse(self, "values")._coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return self._entries  # type: ignore[no-any-return]


def is_coalesced(self: Any) -> bool:
    """Whether coordinates are in order and unique."""
    return _sparse(self, "is_coalesced")._coalesced


def _set_coalesced(self: Any, coalesced: bool) -> SparseTensor:
    """Say that coordinates are in order and unique, or that they are not, without looking at them; returns the tensor."""
    _sparse(self, "_coalesced_")._coalesced = coalesced
    return self  # type: ignore[no-any-return]


def sparse_mask(self: Any, mask: Any) -> SparseTensor:
    """The elements of this tensor at the places of a sparse one, zeros included."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"sparse_mask(): argument 'mask' (position 1) must be Tensor, not {type(mask).__name__}")
    if not mask._keys & SPARSE:
        raise NotImplementedError("Could not run 'aten::sparse_mask' with arguments from the 'CPU' backend.")
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    entries = aten.index(to_dense(self), list(aten.unbind(mask._coordinates, 0)))  # type: ignore[attr-defined]
    return with_entries(mask, entries)


METHODS = {
    "to_sparse": to_sparse,
    "to_sparse_coo": lambda self: to_sparse(self),
    "to_sparse_csr": _to_layout("to_sparse_csr", sparse_csr, False),
    "to_sparse_csc": _to_layout("to_sparse_csc", sparse_csc, False),
    "to_sparse_bsr": _to_layout("to_sparse_bsr", sparse_bsr, True),
    "to_sparse_bsc": _to_layout("to_sparse_bsc", sparse_bsc, True),
    **PARTS,
    "to_dense": to_dense,
    "coalesce": coalesce,
    "indices": indices,
    "values": values,
    "is_coalesced": is_coalesced,
    "sparse_mask": sparse_mask,
    "_nnz": lambda self: (
        self._entries.shape[0] if isinstance(self, CompressedTensor) else _sparse(self, "_nnz")._entries.shape[0]
    ),
    "_indices": lambda self: _sparse(self, "_indices")._coordinates,
    "_values": lambda self: aten.detach(_sparse(self, "_values")._entries),
    "_coalesced_": _set_coalesced,
    "sparse_dim": lambda self: self._coordinates.shape[0] if self._keys & SPARSE else 0,
    "dense_dim": lambda self: self._entries.ndim - 1 if self._keys & SPARSE else self.ndim,
}


def _layout(self: Any) -> Any:
    if not self._keys & SPARSE:
        return strided
    return self._layout if isinstance(self, CompressedTensor) else sparse_coo


PROPERTIES = {"layout": property(_layout)}
FUNCTIONS = {"sparse_coo_tensor": sparse_coo_tensor}
