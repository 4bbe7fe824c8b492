"""Compressed sparse tensors (CSR, CSC, BSR, BSC): construction, invariants, and the way from and to coordinates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.memory_format import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..._core.sparse import CompressedTensor, SparseTensor, make_compressed, make_sparse
from ..._core.tensor import Tensor, make_tensor
from ..._dispatch.registry import aten, op
from ..creation.from_data import as_tensor

_INDICES = {"nondiff": True, "samples": lambda make: []}

_BY_ROWS = (sparse_csr, sparse_bsr)
_IN_BLOCKS = (sparse_bsr, sparse_bsc)
LAYOUTS = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
_NAMES = {sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr", sparse_bsc: "SparseBsc"}


def layout_name(tensor: Any) -> str:
    """What messages call a tensor's layout."""
    if isinstance(tensor, CompressedTensor):
        return _NAMES[tensor._layout]
    return "Sparse" if isinstance(tensor, SparseTensor) else "Strided"


def blocksize_of(tensor: CompressedTensor) -> tuple[int, int]:
    """The shape of one entry's block; (1, 1) for CSR and CSC."""
    return tuple(tensor._entries.shape[1:3]) if tensor._layout in _IN_BLOCKS else (1, 1)


# ---------------------------------------------------------------- construction


def _checked(layout: Any, compressed: Any, plain: Any, entries: Any, size: tuple[int, ...]) -> None:
    """RuntimeError, in torch's words, for indices that describe no matrix."""
    block = tuple(entries.shape[1:3]) if layout in _IN_BLOCKS else (1, 1)
    row, column = size[0] // block[0], size[1] // block[1]
    by_rows = layout in _BY_ROWS
    start, other = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    many, few = ("nrows", "ncols") if by_rows else ("ncols", "nrows")
    count, bound = (row, column) if by_rows else (column, row)
    starts, places, nnz = compressed._array, plain._array, entries.shape[0]
    if len(starts) != count + 1:
        raise RuntimeError(f"`{start}.shape[-1] == {many} + 1` is not satisfied.")
    if len(places) != nnz:
        raise RuntimeError(f"`{other}.shape[-1] == nnz` is not satisfied.")
    if starts[0] != 0:
        raise RuntimeError(f"`{start}[..., 0] == 0` is not satisfied.")
    if starts[-1] != nnz:
        raise RuntimeError(f"`{start}[..., -1] == nnz` is not satisfied.")
    steps = np.diff(starts)
    if ((steps < 0) | (steps > bound)).any():
        raise RuntimeError(f"`0 <= {start}[..., 1:] - {start}[..., :-1] <= {few}` is not satisfied.")
    if ((places < 0) | (places >= bound)).any():
        raise RuntimeError(f"`0 <= {other} < {few}` is not satisfied.")
    inside = np.ones(max(nnz - 1, 0), bool)
    inside[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < nnz)] - 1] = (
        False  # between the last of one and the first of another
    )
    if (np.diff(places)[inside] <= 0).any():
        raise RuntimeError(
            f"`{other}[..., {start}[..., i - 1]:{start}[..., i]] for all i = 1, ..., {many} are sorted and distinct along the "
            "last dimension values` is not satisfied."
        )


def _constructor(name: str, layout: Any) -> Any:
    def construct(
        compressed_indices: Any,
        plain_indices: Any,
        values: Any,
        size: Any = None,
        *,
        dtype: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        check_invariants: bool | None = None,
        layout: Any = layout,
    ) -> Tensor:
        if layout is None:
            raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
        if layout not in LAYOUTS:
            raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout}")
        if pin_memory:
            raise NotImplementedError(f"{name}(pin_memory=True)")
        compressed, plain = (_indices(part) for part in (compressed_indices, plain_indices))
        entries: Any = as_tensor(values, dtype=dtype, device=device)
        if compressed.ndim != 1 or plain.ndim != 1:
            raise NotImplementedError(f"{name}: batches of compressed sparse tensors")
        least = 3 if layout in _IN_BLOCKS else 1
        if entries.ndim < least:
            raise RuntimeError(f"values must have dimensionality > {least - 1} but got {entries.ndim}")
        if size is None:
            size = _inferred(layout, compressed, plain, entries)
        size = tuple(int(n) for n in size)
        if requires_grad:
            entries = entries.detach().requires_grad_()
        if check_invariants or (check_invariants is None and invariants.enabled):
            _checked(layout, compressed, plain, entries, size)
        return make_compressed(layout, compressed, plain, entries, size)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = "A sparse matrix of the starts of its rows or columns, the other index of each entry, and values."
    return construct


class invariants:
    """Whether constructors check what they are given, unless they are told."""

    enabled = False


def _indices(part: Any) -> Any:
    tensor: Any = as_tensor(part)
    return tensor if tensor.dtype in (dt.int64, dt.int32) else tensor.to(dt.int64)


def _inferred(layout: Any, compressed: Any, plain: Any, entries: Any) -> tuple[int, ...]:
    count = compressed.shape[0] - 1
    other = int(plain._array.max()) + 1 if plain.shape[0] else 0
    matrix = (count, other) if layout in _BY_ROWS else (other, count)
    if layout in _IN_BLOCKS:
        return (matrix[0] * entries.shape[1], matrix[1] * entries.shape[2], *entries.shape[3:])
    return (*matrix, *entries.shape[1:])


def rebuilt(layout: Any, compressed: Any, plain: Any, entries: Any, size: Any, later: Any) -> CompressedTensor:
    """A compressed tensor of parts that are not checked yet; `later(check)` runs a check when their elements are there."""
    for part in (compressed, plain, entries):
        if not isinstance(part, Tensor) or isinstance(part, SparseTensor) or part._keys:
            raise RuntimeError("checkpoint makes a sparse tensor of something that is no tensor")
    shape = tuple(size)
    blocks = 3 if layout in _IN_BLOCKS else 1
    if (
        compressed.ndim != 1
        or plain.ndim != 1
        or compressed._array.dtype.kind != "i"
        or plain._array.dtype.kind != "i"
        or entries.ndim < blocks
        or len(shape) < 2
        or not all(type(n) is int and n >= 0 for n in shape)
        or 0 in entries.shape[1:3]
    ):
        raise RuntimeError("checkpoint makes a compressed sparse tensor of parts of other sizes")
    later(lambda: _checked(layout, compressed, plain, entries, shape))
    return make_compressed(layout, compressed, plain, entries, shape)


# ---------------------------------------------------------------- from and to coordinates


def to_coordinates(tensor: CompressedTensor) -> SparseTensor:
    """The same as COO; blocks become single entries. Gradients reach the values."""
    lines = make_tensor(np.repeat(np.arange(len(tensor._compressed._array) - 1), np.diff(tensor._compressed._array)))
    pair = [lines, tensor._plain.to(dt.int64)]
    rows, columns = pair if tensor._layout in _BY_ROWS else pair[::-1]
    entries: Any = tensor._entries
    if tensor._layout in _IN_BLOCKS:
        high, wide = blocksize_of(tensor)
        inner = np.indices((high, wide)).reshape(2, -1)
        rows = make_tensor((rows._array[:, None] * high + inner[0]).reshape(-1))
        columns = make_tensor((columns._array[:, None] * wide + inner[1]).reshape(-1))
        entries = aten.reshape(entries, (-1, *entries.shape[3:]))
    order = np.lexsort((columns._array, rows._array))
    if (order[1:] < order[:-1]).any():
        index = make_tensor(order)
        rows, columns = (aten.index_select(part, 0, index) for part in (rows, columns))
        entries = aten.index_select(entries, 0, index)
    return make_sparse(aten.stack([rows, columns]), entries, tensor._array.shape, True)


def compress(coo: Any, layout: Any, blocksize: Any = None) -> CompressedTensor:
    """A coalesced COO matrix in another layout."""
    if coo._coordinates.shape[0] != 2:
        raise RuntimeError(f"compressed layouts need a matrix, got a tensor with {coo._coordinates.shape[0]} sparse dims")
    rows, columns = coo._coordinates._array
    entries: Any = coo._entries
    height, width = coo._array.shape[:2]
    if layout in _IN_BLOCKS:
        high, wide = (int(n) for n in blocksize)
        if high <= 0 or wide <= 0 or height % high or width % wide:
            raise RuntimeError(
                f"dense_to_sparse_{str(layout)[-3:]}: tensor sparse size ({height},{width}) must be divisible by given "
                f"blocksize ({high},{wide})"
            )
        flat = (rows // high) * (width // wide) + columns // wide
        blocks, which = np.unique(flat, return_inverse=True)
        room = aten.zeros((len(blocks), high, wide, *entries.shape[1:]), dtype=entries.dtype)
        places = [make_tensor(part) for part in (which.reshape(-1), rows % high, columns % wide)]
        entries = aten.index_put(room, places, entries, True)
        rows, columns = np.divmod(blocks, width // wide)
        height, width = height // high, width // wide
    lines, others, count = (rows, columns, height) if layout in _BY_ROWS else (columns, rows, width)
    if layout not in _BY_ROWS:
        order = np.lexsort((rows, columns))
        lines, others = lines[order], others[order]
        entries = aten.index_select(entries, 0, make_tensor(order))
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(lines, minlength=count), out=starts[1:])
    return make_compressed(layout, make_tensor(starts), make_tensor(np.ascontiguousarray(others)), entries, coo._array.shape)


@op("_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor", **_INDICES)
def _convert_indices_from_coo_to_csr(self, size, out_int32):
    """Where the entries of each row begin, of the row of each entry, in ascending order."""
    if self.ndim > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {self.ndim} dimensional tensor.")
    return np.searchsorted(self, np.arange(size + 1)).astype(np.int32 if out_int32 else np.int64)


_TO_ROWS = (
    "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool transpose=False)"
)


@op(f"{_TO_ROWS} -> Tensor", **_INDICES)
def _convert_indices_from_csr_to_coo(crow_indices, col_indices, out_int32, transpose):
    """The row and the column of each entry, of where the entries of each row begin and of their columns."""
    batch = [*col_indices.shape[:-1]]
    if [*crow_indices.shape[:-1]] != batch:
        raise RuntimeError("crow_indices and col_indices need the same batches")
    rows = np.arange(crow_indices.shape[-1] - 1)
    flat = crow_indices.reshape(-1, crow_indices.shape[-1])
    row = np.array([np.repeat(rows, np.diff(each)) for each in flat], np.int64).reshape(-1)
    places = np.indices(col_indices.shape).reshape(len(batch) + 1, -1)[:-1]
    parts = [col_indices.reshape(-1), row] if transpose else [row, col_indices.reshape(-1)]
    return np.stack([*places, *parts]).astype(np.int32 if out_int32 else np.int64)


# ---------------------------------------------------------------- what a tensor tells of its parts


def _part(name: str, layouts: tuple[Any, ...], kind: str, attribute: str) -> Any:
    def part(self: Any) -> Tensor:
        if not isinstance(self, CompressedTensor) or self._layout not in layouts:
            raise RuntimeError(f"{name} expected sparse {kind} compressed tensor layout but got {layout_name(self)}")
        return getattr(self, attribute)  # type: ignore[no-any-return]

    part.__name__ = part.__qualname__ = name
    part.__doc__ = f"The {name} of a sparse tensor whose {kind}s are compressed."
    return part


PARTS = {
    "crow_indices": _part("crow_indices", _BY_ROWS, "row", "_compressed"),
    "col_indices": _part("col_indices", _BY_ROWS, "row", "_plain"),
    "ccol_indices": _part("ccol_indices", (sparse_csc, sparse_bsc), "column", "_compressed"),
    "row_indices": _part("row_indices", (sparse_csc, sparse_bsc), "column", "_plain"),
}
FUNCTIONS = {
    name: _constructor(name, layout)
    for name, layout in (
        ("sparse_csr_tensor", sparse_csr),
        ("sparse_csc_tensor", sparse_csc),
        ("sparse_bsr_tensor", sparse_bsr),
        ("sparse_bsc_tensor", sparse_bsc),
        ("sparse_compressed_tensor", None),
    )
}


_DTYPE = re.compile(r",\s*dtype=torch\.\w+\)$")


def shown_dtype(values: Any) -> list[str]:
    """The dtype, where it is not the one that is assumed."""
    found = _DTYPE.search(repr(values.detach()))
    return [found.group(0)[1:-1].strip()] if found and values.numel() else []


def shown_part(name: str, part: Any) -> str:
    """`name=tensor(...)`, its further lines moved to the right."""
    text = repr(part.detach()) if part.numel() else f"tensor([], size={tuple(part.shape)})"
    first, *more = f"{name}={_DTYPE.sub(')', text)}".split("\n")
    indent = " " * (len("tensor(") + len(name) + 1)
    return "\n".join([first, *(indent + line if line else "" for line in more)])


def show(self: CompressedTensor) -> str:
    """The tensor as torch prints it."""
    names = ("crow_indices", "col_indices") if self._layout in _BY_ROWS else ("ccol_indices", "row_indices")
    parts = zip((*names, "values"), (self._compressed, self._plain, self._entries.detach()), strict=True)
    shown = [shown_part(name, part) for name, part in parts]
    text = "tensor(" + ",\n       ".join(shown)
    length = len(text) - text.rfind("\n") + 1
    suffixes = [f"size={tuple(self.shape)}", f"nnz={self._entries.shape[0]}", *shown_dtype(self._entries)]
    suffixes.append(f"layout={self._layout}")
    if self._entries.requires_grad:
        suffixes.append("requires_grad=True" if self._entries.is_leaf else f"grad_fn=<{type(self._entries.grad_fn).__name__}>")
    for suffix in suffixes:
        if length + len(suffix) + 2 > 80:
            text, length = f"{text},\n       {suffix}", 7 + len(suffix)
        else:
            text, length = f"{text}, {suffix}", length + len(suffix) + 2
    return text + ")"
