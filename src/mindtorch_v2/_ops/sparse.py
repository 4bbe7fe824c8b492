"""Sparse tensors: construction, conversion, and the ops that keep them sparse or multiply them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from .._autograd.grad_mode import is_grad_enabled
from .._core import dtype as dt
from .._core.keys import META, SPARSE
from .._core.memory_format import contiguous_format, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from .._core.sparse import CompressedTensor, SparseTensor, make_compressed, make_sparse, with_entries
from .._core.tensor import Tensor, make_tensor
from .._dispatch import backends
from .._dispatch.registry import OpSpec, aten, composite
from .creation.from_data import as_tensor
from .sparse_compressed import FUNCTIONS as _COMPRESSED
from .sparse_compressed import (
    LAYOUTS,
    PARTS,
    blocksize_of,
    compress,
    layout_name,
    show,
    shown_dtype,
    shown_part,
    to_coordinates,
)


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


def coalesce(self: Any) -> SparseTensor:
    """Coordinates in order and each only once; the values of equal ones are added."""
    _sparse(self, "coalesce")
    if self._coalesced:
        return self  # type: ignore[no-any-return]
    unique, first, place = np.unique(_flat_places(self), return_index=True, return_inverse=True)
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


def _sparse_repr(self: SparseTensor, **options: Any) -> str:
    if isinstance(self, CompressedTensor):
        return show(self)
    suffix = ", ".join([f"size={tuple(self.shape)}", f"nnz={self._entries.shape[0]}", *shown_dtype(self._entries)])
    return (
        f"tensor({shown_part('indices', self._coordinates)},\n       {shown_part('values', self._entries)},\n"
        f"       {suffix}, layout=torch.sparse_coo)"
    )


def _sparse_to(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
    """`to` of a sparse tensor: the values are converted, the coordinates stay."""
    entries = self._entries.to(*args, **kwargs)
    return self if entries is self._entries else with_entries(self, entries)  # type: ignore[no-any-return]


def _sparse_requires_grad_(self: SparseTensor, requires_grad: bool = True) -> SparseTensor:
    """`requires_grad_` of a sparse tensor: its values are what gradients flow to."""
    if not self._entries.is_leaf:
        self._entries.requires_grad_(requires_grad)  # which refuses what torch refuses
    else:
        self._entries = self._entries.detach().requires_grad_(requires_grad)
    return self


def _get_sparse_grad(self: SparseTensor) -> Any:
    """The gradient: as it was set, or that of the values at their places."""
    if self._grad is not None:
        return self._grad
    grad = self._entries.grad if self._entries.is_leaf else None
    return None if grad is None else with_entries(self, grad)


def _set_sparse_grad(self: SparseTensor, value: Any) -> None:
    if value is not None and not value._keys & SPARSE:
        raise RuntimeError("attempting to assign a gradient to a tensor that has data of a different type")
    if value is not None and value.shape != self.shape:
        raise RuntimeError("assigned grad has data of a different size")
    self._grad = value
    if self._entries.is_leaf:
        self._entries.grad = None


def _sparse_deepcopy(self: SparseTensor, memo: dict[int, Any]) -> Any:
    """A copy of indices, values and gradients."""
    copied = memo.get(id(self))
    if copied is not None:
        return copied
    entries, shape = deepcopy(self._entries, memo), self._array.shape
    if isinstance(self, CompressedTensor):
        copied = make_compressed(self._layout, deepcopy(self._compressed, memo), deepcopy(self._plain, memo), entries, shape)
    else:
        copied = make_sparse(deepcopy(self._coordinates, memo), entries, shape, self._coalesced)
    memo[id(self)] = copied
    if self._grad is not None:
        copied._grad = deepcopy(self._grad, memo)
    return copied


def _converter(dtype: dt.dtype) -> Any:
    return lambda self, memory_format=None: self.to(dtype)


for _name, _dtype in (
    ("float", dt.float32),
    ("double", dt.float64),
    ("half", dt.float16),
    ("bfloat16", dt.bfloat16),
    ("int", dt.int32),
    ("long", dt.int64),
    ("cfloat", dt.complex64),
    ("cdouble", dt.complex128),
):
    setattr(SparseTensor, _name, _converter(_dtype))
SparseTensor.__deepcopy__ = _sparse_deepcopy  # type: ignore[attr-defined]
SparseTensor.requires_grad_ = _sparse_requires_grad_  # type: ignore[attr-defined]
SparseTensor.grad = property(_get_sparse_grad, _set_sparse_grad)  # type: ignore[attr-defined]
SparseTensor.is_leaf = property(lambda self: self._entries.is_leaf)  # type: ignore[assignment, method-assign]
SparseTensor.__repr__ = _sparse_repr  # type: ignore[method-assign]
SparseTensor.detach = lambda self: with_entries(self, self._entries.detach())  # type: ignore[attr-defined]
SparseTensor.to = _sparse_to  # type: ignore[attr-defined]


def sparse_product(sparse: Any, dense: Any) -> Tensor:
    """sparse @ dense, differentiable by the sparse tensor's values and by the dense one."""
    rows, columns = aten.unbind(sparse._coordinates, 0)
    vector = dense.ndim == 1
    wide = aten.unsqueeze(dense, 1) if vector else dense
    if sparse.shape[1] != wide.shape[0]:
        raise RuntimeError(f"mm: Expected 'mat1' with {sparse.shape[1]} columns to match {wide.shape[0]} rows of 'mat2'")
    parts = aten.mul(aten.index_select(wide, 0, columns), aten.unsqueeze(sparse._entries, 1))
    zeros = aten.zeros((sparse.shape[0], wide.shape[1]), dtype=parts.dtype)
    product = aten.index_add(zeros, 0, rows, parts)
    return aten.squeeze(product, 1) if vector else product


# ---------------------------------------------------------------- ops that sparse tensors take part in


def _mm(self: Any, other: Any, *rest: Any) -> Any:
    if not self._keys & SPARSE:  # dense @ sparse
        return aten.clone(aten.t(sparse_product(_transposed(other, 0, 1), aten.t(self))), memory_format=contiguous_format)
    return to_sparse(sparse_product(self, to_dense(other))) if other._keys & SPARSE else sparse_product(self, other)


def _addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    return to_dense(self) * beta + _mm(mat1, mat2) * alpha  # type: ignore[operator]


@composite(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    samples=lambda make: [(make(2, 4), make(2, 3), make(3, 4))],
)
def sparse_addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    """`addmm` whose first matrix is sparse."""
    return aten.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _add(self: Any, other: Any, alpha: Any = 1) -> Any:
    if not (isinstance(other, Tensor) and self._keys & other._keys & SPARSE):
        return aten.add(to_dense(self), to_dense(other) if isinstance(other, Tensor) else other, alpha=alpha)
    if self.shape != other.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}")
    coalesced = self._coalesced and other._coalesced  # type: ignore[attr-defined]
    coordinates = aten.cat([self._coordinates, other._coordinates], 1)  # type: ignore[attr-defined]
    entries = aten.cat([self._entries, aten.mul(other._entries, alpha)])  # type: ignore[attr-defined]
    # As in torch, equal places add up where values lie one after the other.
    if all(each._entries._array.flags.c_contiguous for each in (self, other)):  # type: ignore[attr-defined]
        place, first = _merged(self, other)
        if len(first) < len(place):
            zeros = aten.zeros((len(first), *entries.shape[1:]), dtype=entries.dtype)
            entries = aten.index_add(zeros, 0, make_tensor(place), entries)
        else:
            entries = aten.index_select(entries, 0, make_tensor(first))
        coordinates = aten.index_select(coordinates, 1, make_tensor(first))
    return make_sparse(coordinates, entries, self._array.shape, coalesced)


def _flat_places(self: Any) -> np.ndarray:
    """The places of the entries as numbers in row-major order."""
    array = self._coordinates._array
    if not array.size:  # no entries, or no sparse dims
        return np.zeros(array.shape[1], np.int64)
    return np.asarray(np.ravel_multi_index(tuple(array), self._array.shape[: array.shape[0]]))


def _merged(self: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two lists of places merged by their heads: where each entry of both goes, and the first entry of each result."""
    left, right = _flat_places(self), _flat_places(other)
    count = len(left)
    if all(bool((keys[1:] > keys[:-1]).all()) for keys in (left, right)):
        _, first, place = np.unique(np.concatenate([left, right]), return_index=True, return_inverse=True)
        return place.astype(np.int64), first.astype(np.int64)
    places, firsts = [0] * (count + len(right)), list[int]()
    one, two, i, j = left.tolist(), right.tolist(), 0, 0
    while i < count or j < len(two):
        takes_one = j == len(two) or (i < count and one[i] <= two[j])
        takes_two = i == count or (j < len(two) and two[j] <= one[i])
        if takes_two:
            places[count + j] = len(firsts)
        if takes_one:
            places[i] = len(firsts)
        firsts.append(i if takes_one else count + j)
        i, j = i + takes_one, j + takes_two
    return np.array(places, np.int64), np.array(firsts, np.int64)


def _mul(self: Any, other: Any) -> Any:
    if isinstance(other, Tensor) and other.ndim and self.ndim:
        if not self._keys & SPARSE:
            self, other = other, self
        dense = to_dense(other).expand(self.shape)  # type: ignore[attr-defined]
        coalesced = coalesce(self)
        return with_entries(
            coalesced, aten.mul(coalesced._entries, aten.index(dense, list(aten.unbind(coalesced._coordinates, 0))))
        )
    return with_entries(self, aten.mul(self._entries, other))


def _transposed(self: Any, dim0: int, dim1: int) -> SparseTensor:
    order = list(range(self._coordinates.shape[0]))
    if self.ndim < 2:
        return self  # type: ignore[no-any-return]
    if max(dim0, dim1) >= len(order):
        raise RuntimeError(
            f"transpose: transposed dimensions must be sparse Got sparse_dim: {len(order)}, d0: {dim0}, d1: {dim1}"
        )
    order[dim0], order[dim1] = order[dim1], order[dim0]
    shape = list(self._array.shape)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    return make_sparse(aten.index_select(self._coordinates, 0, as_tensor(order)), self._entries, tuple(shape), False)


def _add_in_place(self: Any, other: Any, alpha: Any = 1) -> Any:
    """dense += sparse: only the places of the sparse tensor are written."""
    if self._keys & SPARSE:
        if not (isinstance(other, Tensor) and other._keys & SPARSE):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _become(self, _add(self, other, alpha))
    places, entries = other._coordinates, other._entries  # type: ignore[attr-defined]
    return aten.index_put_(self, list(aten.unbind(places, 0)), aten.mul(entries, alpha), True)


def _become(self: Any, result: SparseTensor) -> SparseTensor:
    """Give a sparse tensor another's entries: what in-place ops do."""
    if self._entries.requires_grad and is_grad_enabled() and self._entries.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    self._coordinates, self._entries, self._coalesced = result._coordinates, result._entries.to(self.dtype), result._coalesced
    return self  # type: ignore[no-any-return]


def _zero_in_place(self: Any) -> Any:
    """Forget all entries."""
    self._coordinates = aten.zeros((self._coordinates.shape[0], 0), dtype=dt.int64)
    self._entries = aten.zeros((0, *self._entries.shape[1:]), dtype=self.dtype)
    self._coalesced = True
    return self


# Ops that leave zeros zeros: they run on the values. Those in the first row are not linear, so that equal places add up before.
_ON_VALUES = (
    *(
        "abs",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "expm1",
        "floor",
        "log1p",
        "relu",
        "round",
        "sgn",
        "sign",
        "sin",
        "sinh",
    ),
    *("sqrt", "tan", "tanh", "trunc", "frac", "erf", "erfinv", "isnan", "isinf", "signbit", "pow", "threshold_backward"),
)
_LINEAR = ("neg", "deg2rad", "rad2deg", "real", "imag", "conj", "conj_physical", "positive", "to", "_to_copy")


def _on_values(name: str, linear: bool) -> Any:
    def kernel(self: Any, *rest: Any) -> Any:
        if name == "pow" and (not isinstance(rest[0], int | float) or rest[0] <= 0):
            raise RuntimeError("sparse tensors have powers by positive numbers only: zeros stay zeros")
        whole = self if linear or isinstance(self, CompressedTensor) else coalesce(self)
        return with_entries(whole, getattr(aten, name)(whole._entries, *rest))

    return kernel


def _select(self: Any, dim: int, index: int) -> Any:
    """The entries at one place along a dim."""
    dim = dim + self.ndim if dim < 0 else dim
    if not 0 <= dim < self.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-self.ndim}, {self.ndim - 1}], but got {dim})")
    size = self.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}")
    index = index + size if index < 0 else index
    shape = tuple(n for d, n in enumerate(self._array.shape) if d != dim)
    dims = self._coordinates.shape[0]
    if dim >= dims:
        return make_sparse(self._coordinates, aten.select(self._entries, dim - dims + 1, index), shape, self._coalesced)
    chosen = make_tensor(np.flatnonzero(self._coordinates._array[dim] == index))
    entries = aten.index_select(self._entries, 0, chosen)
    if dims == 1:
        return aten.sum(entries, [0])
    kept = make_tensor(np.array([d for d in range(dims) if d != dim], np.int64))
    places = aten.index_select(aten.index_select(self._coordinates, 0, kept), 1, chosen)
    return make_sparse(places, entries, shape, self._coalesced)


def _unsqueeze(self: Any, dim: int) -> Any:
    dim = dim + self.ndim + 1 if dim < 0 else dim
    shape = (*self._array.shape[:dim], 1, *self._array.shape[dim:])
    dims = self._coordinates.shape[0]
    if dim > dims:
        return make_sparse(self._coordinates, aten.unsqueeze(self._entries, dim - dims + 1), shape, self._coalesced)
    zeros = aten.zeros((1, self._coordinates.shape[1]), dtype=dt.int64)
    parts = [aten.narrow(self._coordinates, 0, 0, dim), zeros, aten.narrow(self._coordinates, 0, dim, dims - dim)]
    return make_sparse(aten.cat(parts, 0), self._entries, shape, self._coalesced)


def _sum(self: Any, *rest: Any) -> Any:
    if len(rest) < 2:
        return aten.sum(self._entries)
    dims = [dim % self.ndim for dim in ([rest[0]] if isinstance(rest[0], int) else rest[0] or range(self.ndim))]
    total = aten.sum(to_dense(self), dims, bool(rest[1]))
    return total if total.ndim == 0 else to_sparse(total)


_KERNELS: dict[str, Any] = {
    **{name: _on_values(name, False) for name in _ON_VALUES},
    **{name: _on_values(name, True) for name in _LINEAR},
    "mul_": lambda self, other: _become(self, coalesce(_mul(self, other))),
    "sub_": lambda self, other, alpha=1: _become(self, _add(self, other, -alpha)),
    "div_": lambda self, other: _become(self, with_entries(self, aten.div(self._entries, other))),
    "neg_": lambda self: _become(self, with_entries(self, aten.neg(self._entries))),
    "add_": _add_in_place,
    "mm": _mm,
    "mv": _mm,
    "addmm": _addmm,
    "mul": _mul,
    "add": _add,
    "sub": lambda self, other, alpha=1: _add(self, other, -alpha),
    "div": lambda self, other: with_entries(self, aten.div(self._entries, other)),
    "clone": lambda self, memory_format=None: (
        make_compressed(
            self._layout, aten.clone(self._compressed), aten.clone(self._plain), aten.clone(self._entries), self._array.shape
        )
        if isinstance(self, CompressedTensor)
        else make_sparse(aten.clone(self._coordinates), aten.clone(self._entries), self._array.shape, self._coalesced)
    ),
    "detach": lambda self: with_entries(self, aten.detach(self._entries)),
    "sum": _sum,
    "select": _select,
    "unsqueeze": _unsqueeze,
    "t": lambda self: _transposed(self, 0, 1),
    "transpose": _transposed,
    "zero_": _zero_in_place,
}


def _run_sparse(op: OpSpec, args: tuple[Any, ...]) -> Any:
    name = op.schema.name
    kernel = _KERNELS.get(name)
    first = next((one for one in args if isinstance(one, CompressedTensor)), None)
    if kernel is None or (first is not None and name.endswith("_")):
        place = "SparseCPU" if first is None else "SparseCsrCPU"
        raise NotImplementedError(f"Could not run '{op.name}' with arguments from the '{place}' backend.")
    if first is None:
        return kernel(*args)
    if name in _VALUES_OF_COMPRESSED and first is args[0] and not any(isinstance(one, Tensor) for one in args[1:]):
        return kernel(*args)
    result = kernel(*(to_coordinates(one) if isinstance(one, CompressedTensor) else one for one in args))
    if not isinstance(result, SparseTensor) or result._coordinates.shape[0] != 2:
        return result
    layout, blocks = first._layout, blocksize_of(first)
    if name in ("t", "transpose"):
        layout, blocks = _TURNED[layout], blocks[::-1]
    return compress(coalesce(result), layout, blocks)


# Ops that a compressed tensor runs on its values: the layout stays, zeros that are stored included.
_VALUES_OF_COMPRESSED = frozenset({*_ON_VALUES, *_LINEAR, "mul", "div", "detach", "clone"})
_TURNED = {sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr}


backends.fallbacks["sparse"] = _run_sparse

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
FUNCTIONS = {"sparse_coo_tensor": sparse_coo_tensor, **_COMPRESSED}
