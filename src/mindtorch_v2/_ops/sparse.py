"""Sparse tensors: construction, conversion, and the ops that keep them sparse or multiply them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.keys import META, SPARSE
from .._core.memory_format import sparse_coo, strided
from .._core.sparse import SparseTensor, make_sparse
from .._core.tensor import Tensor, make_tensor
from .._dispatch import backends
from .._dispatch.registry import OpSpec, aten, composite
from .creation.from_data import as_tensor


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
    size = tuple(int(n) for n in size)
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


def _sparse(self: Any, what: str) -> SparseTensor:
    if not self._keys & SPARSE:
        raise RuntimeError(f"{what} expected sparse coordinate tensor layout but got Strided")
    return self  # type: ignore[no-any-return]


def to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
    """The elements that are not zero, with their coordinates."""
    if self._keys & SPARSE:
        return self  # type: ignore[no-any-return]
    if sparse_dim is not None and sparse_dim != self.ndim:
        raise NotImplementedError(f"to_sparse(sparse_dim={sparse_dim}): hybrid tensors")
    coordinates = aten.nonzero(self)
    entries = aten.index(self, list(aten.unbind(coordinates, 1))) if self.ndim else aten.reshape(self, (1,))
    return make_sparse(aten.contiguous(aten.t(coordinates)), entries, tuple(self.shape), True)


def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor with all its zeros."""
    if not self._keys & SPARSE:
        return self.to(dtype) if dtype is not None else self  # type: ignore[no-any-return]
    zeros = aten.zeros(tuple(self.shape), dtype=self.dtype)
    dense = aten.index_put(zeros, list(aten.unbind(self._coordinates, 0)), self._entries, True)
    return dense.to(dtype) if dtype is not None else dense


def coalesce(self: Any) -> SparseTensor:
    """Coordinates in order and each only once; the values of equal ones are added."""
    _sparse(self, "coalesce")
    if self._coalesced:
        return self  # type: ignore[no-any-return]
    array, sizes = self._coordinates._array, self._array.shape[: self._coordinates.shape[0]]
    flat = np.ravel_multi_index(tuple(array), sizes)
    unique, place = np.unique(flat, return_inverse=True)
    entries = aten.index_add(
        aten.zeros((len(unique), *self._entries.shape[1:]), dtype=self.dtype),
        0,
        make_tensor(place.astype(np.int64)),
        self._entries,
    )
    coordinates = make_tensor(np.array(np.unravel_index(unique, sizes), dtype=np.int64))
    return make_sparse(coordinates, entries, self._array.shape, True)


def indices(self: Any) -> Tensor:
    """The coordinates of a coalesced tensor, one column per entry."""
    if not _sparse(self, "indices")._coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return self._coordinates  # type: ignore[no-any-return]


def values(self: Any) -> Tensor:
    """The values of a coalesced tensor."""
    if not _sparse(self, "values")._coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return self._entries  # type: ignore[no-any-return]


def is_coalesced(self: Any) -> bool:
    """Whether coordinates are in order and unique."""
    return _sparse(self, "is_coalesced")._coalesced


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
    return _with(mask, entries)


def _sparse_repr(self: SparseTensor, **options: Any) -> str:
    def part(name: str, tensor: Any) -> str:
        return f"{name}={tensor!r}".replace("\n", "\n" + " " * (len("tensor(") + len(name) + 1))

    return (
        f"tensor({part('indices', self._coordinates)},\n       {part('values', self._entries)},\n"
        f"       size={tuple(self.shape)}, nnz={self._entries.shape[0]}, layout=torch.sparse_coo)"
    )


def _sparse_to(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
    """`to` of a sparse tensor: the values are converted, the coordinates stay."""
    entries = self._entries.to(*args, **kwargs)
    return self if entries is self._entries else _with(self, entries)


SparseTensor.__repr__ = _sparse_repr  # type: ignore[method-assign]
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


def _with(self: Any, entries: Any) -> SparseTensor:
    return make_sparse(self._coordinates, entries, self._array.shape, self._coalesced)


def _mm(self: Any, other: Any, *rest: Any) -> Any:
    if not self._keys & SPARSE:  # dense @ sparse
        return aten.t(sparse_product(_transposed(other, 0, 1), aten.t(self)))
    return to_sparse(sparse_product(self, to_dense(other))) if other._keys & SPARSE else sparse_product(self, other)


def _addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    return to_dense(self) * beta + _mm(mat1, mat2) * alpha  # type: ignore[operator]


@composite("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def sparse_addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    """`addmm` whose first matrix is sparse."""
    return aten.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _add(self: Any, other: Any, alpha: Any = 1) -> Any:
    if not (isinstance(other, Tensor) and self._keys & other._keys & SPARSE):
        return aten.add(to_dense(self), to_dense(other) if isinstance(other, Tensor) else other, alpha=alpha)
    if self.shape != other.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}")
    coordinates = aten.cat([self._coordinates, other._coordinates], 1)  # type: ignore[attr-defined]
    entries = aten.cat([self._entries, other._entries * alpha])  # type: ignore[attr-defined]
    return make_sparse(coordinates, entries, self._array.shape, False)


def _mul(self: Any, other: Any) -> Any:
    if isinstance(other, Tensor) and other.ndim and self.ndim:
        if not self._keys & SPARSE:
            self, other = other, self
        dense = to_dense(other).expand(self.shape)  # type: ignore[attr-defined]
        coalesced = coalesce(self)
        return _with(coalesced, aten.mul(coalesced._entries, aten.index(dense, list(aten.unbind(coalesced._coordinates, 0)))))
    return _with(self, aten.mul(self._entries, other))


def _transposed(self: Any, dim0: int, dim1: int) -> SparseTensor:
    order = list(range(self._coordinates.shape[0]))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    shape = list(self._array.shape)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    return make_sparse(aten.index_select(self._coordinates, 0, as_tensor(order)), self._entries, tuple(shape), False)


def _add_in_place(self: Any, other: Any, alpha: Any = 1) -> Any:
    """dense += sparse: only the places of the sparse tensor are written."""
    if self._keys & SPARSE or not (isinstance(other, Tensor) and other._keys & SPARSE):
        raise NotImplementedError("Could not run 'aten::add_' with arguments from the 'SparseCPU' backend.")
    places, entries = other._coordinates, other._entries  # type: ignore[attr-defined]
    return aten.index_put_(self, list(aten.unbind(places, 0)), aten.mul(entries, alpha), True)


def _zero_in_place(self: Any) -> Any:
    """Forget all entries."""
    self._coordinates = aten.zeros((self._coordinates.shape[0], 0), dtype=dt.int64)
    self._entries = aten.zeros((0, *self._entries.shape[1:]), dtype=self.dtype)
    self._coalesced = True
    return self


_KERNELS: dict[str, Any] = {
    "add_": _add_in_place,
    "mm": _mm,
    "mv": _mm,
    "addmm": _addmm,
    "mul": _mul,
    "add": _add,
    "sub": lambda self, other, alpha=1: _add(self, other, -alpha),
    "div": lambda self, other: _with(self, aten.div(self._entries, other)),
    "neg": lambda self: _with(self, aten.neg(self._entries)),
    "abs": lambda self: _with(coalesce(self), aten.abs(coalesce(self)._entries)),
    "clone": lambda self, memory_format=None: make_sparse(
        aten.clone(self._coordinates), aten.clone(self._entries), self._array.shape, self._coalesced
    ),
    "detach": lambda self: _with(self, aten.detach(self._entries)),
    "sum": lambda self, *rest: aten.sum(self._entries) if len(rest) < 2 else aten.sum(to_dense(self), *rest[:2]),
    "t": lambda self: _transposed(self, 0, 1),
    "transpose": _transposed,
    "zero_": _zero_in_place,
}


def _run_sparse(op: OpSpec, args: tuple[Any, ...]) -> Any:
    kernel = _KERNELS.get(op.schema.name)
    if kernel is None:
        raise NotImplementedError(f"Could not run '{op.name}' with arguments from the 'SparseCPU' backend.")
    return kernel(*args)


backends.fallbacks["sparse"] = _run_sparse

METHODS = {
    "to_sparse": to_sparse,
    "to_sparse_coo": to_sparse,
    "to_dense": to_dense,
    "coalesce": coalesce,
    "indices": indices,
    "values": values,
    "is_coalesced": is_coalesced,
    "sparse_mask": sparse_mask,
    "_nnz": lambda self: _sparse(self, "_nnz")._entries.shape[0],
    "_indices": lambda self: _sparse(self, "_indices")._coordinates,
    "_values": lambda self: _sparse(self, "_values")._entries,
    "sparse_dim": lambda self: self._coordinates.shape[0] if self._keys & SPARSE else 0,
    "dense_dim": lambda self: self._entries.ndim - 1 if self._keys & SPARSE else self.ndim,
}
PROPERTIES = {"layout": property(lambda self: sparse_coo if self._keys & SPARSE else strided)}
FUNCTIONS = {"sparse_coo_tensor": sparse_coo_tensor}
