"""Ops that sparse tensors take part in: what keeps them sparse, and products with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._autograd.grad_mode import is_grad_enabled
from ..._core import dtype as dt
from ..._core.keys import SPARSE
from ..._core.memory_format import contiguous_format, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..._core.sparse import CompressedTensor, SparseTensor, make_compressed, make_sparse, with_entries
from ..._core.tensor import Tensor, make_tensor
from ..._dispatch import backends
from ..._dispatch.registry import OpSpec, aten, composite
from ..creation.from_data import as_tensor
from .compressed import blocksize_of, compress, to_coordinates
from .coordinates import coalesce, flat_places, to_dense, to_sparse


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


def _merged(self: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two lists of places merged by their heads: where each entry of both goes, and the first entry of each result."""
    left, right = flat_places(self), flat_places(other)
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
