"""A tensor in parts: split, chunk, unbind, tensor_split. The parts are views."""

from __future__ import annotations

import numpy as np

from ..._core.copy_on_write import own_memory
from ..._core.storage import SHARED, Storage
from ..._core.tensor import Tensor, storage_of
from ..._dispatch.facts import Batching, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import check_room, existing_dim, home_of, normal_dim, scalar_name
from .view_parts import ALL, part_of_expanded
from .view_parts import narrow as _narrow_op
from .view_parts import slice_ as _slice_op

_narrow = _narrow_op.call
_slice = _slice_op.call


def _size_at(self, dim, name):
    """The size of a tensor's dim, counted from either end."""
    shape = self._array.shape
    if not shape:
        if name == "tensor_split":
            raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    if not -len(shape) <= dim < len(shape):
        normal_dim(dim, len(shape))
    return shape[dim]


def _filled(grads, shapes):
    """The gradients of all parts, zeros for parts that were not used."""
    known = next(g for g in grads if g is not None)
    return [
        aten.zeros(shape, dtype=known.dtype, device=home_of(known)) if g is None else g
        for g, shape in zip(grads, shapes, strict=True)
    ]


def _joined(grads, shape, sizes, dim):
    dim = normal_dim(dim, len(shape))
    return aten.cat(_filled(grads, [(*shape[:dim], n, *shape[dim + 1 :]) for n in sizes]), dim)


def _part_sizes(n, split_size):
    if not n:
        return [0]
    sizes = [split_size] * (n // split_size)
    if n % split_size:
        sizes.append(n % split_size)
    return sizes


def _checked_sizes(self, split_size, dim):
    n = _size_at(self, dim, "split")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0 and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    return _part_sizes(n, split_size)


@composite(
    "split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]",
    takes_all_grads=True,
    samples=lambda make: [(make(5, 4), 2), (make(3, 4), 2, 1)],
    batching=Batching.ALONG_DIM,
    handwritten=Surface.BOTH,
)
def split(self, split_size, dim):
    """Splits into views of `split_size` each, or of the given sizes.

    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    sizes = _checked_sizes(self, split_size, dim)
    return tuple([_narrow(self, dim, i * split_size, size) for i, size in enumerate(sizes)])


split.vjp(
    self=lambda grads, self_shape, split_size, dim: _joined(grads, self_shape, _part_sizes(self_shape[dim], split_size), dim)
)
_split = split.call


@op(
    "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
    takes_all_grads=True,
    samples=lambda make: [(make(5, 4), (1, 4)), (make(3, 4), (2, 1, 1), 1)],
    batching=Batching.ALONG_DIM,
)
def split_with_sizes(self, split_sizes, dim):
    """Splits into views of the given sizes.

    >>> torch.split_with_sizes(torch.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """
    if not self.ndim:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    lead = ALL[normal_dim(dim, self.ndim)]
    n = self.shape[dim]
    if sum(split_sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    parts, start = [], 0
    for size in split_sizes:
        if size < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(split_sizes)}"
            )
        parts.append(self[(*lead, slice(start, start + size))])
        start += size
    return parts if self.flags.writeable else [part_of_expanded(part) for part in parts]


split_with_sizes.vjp(self=lambda grads, self_shape, split_sizes, dim: _joined(grads, self_shape, split_sizes, dim))

composite(
    "split.sizes(Tensor(a) self, int[] split_size, int dim=0) -> Tensor(a)[]",
    lambda self, split_size, dim: aten.split_with_sizes(self, split_size, dim),
    samples=lambda make: [(make(5, 4), (1, 4))],
    batching=Batching.ALONG_DIM,
    handwritten=Surface.BOTH,
)


def split_function(tensor: Tensor, split_size_or_sections, dim=0):
    """Parts of one size (the last may be smaller), or of the sizes of a list."""
    return split_method(tensor, split_size_or_sections, dim)


def split_method(self: Tensor, split_size, dim=0):
    """Parts of one size (the last may be smaller), or of the sizes of a list."""
    if isinstance(split_size, list | tuple):
        return aten.split_with_sizes(self, split_size, dim)
    return _split(self, int(split_size), dim)


@composite("chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]", samples=lambda make: [(make(5, 4), 2)])
def chunk(self, chunks, dim):
    """Splits into `chunks` views along `dim`; the last may be smaller.

    >>> torch.chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    n = _size_at(self, dim, "chunk")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not n:
        check_room(chunks)
        return aten.split_with_sizes(self, [0] * chunks, dim)
    return _split(self, -(-n // chunks), dim)


def _detached_parts(self, sizes, dim):
    """Narrowed tensors that share memory but are no views: each may be changed without the others' history."""
    parts, start, own = [], 0, storage_of(self)
    own_memory(own)
    for size in sizes:
        part = _narrow(self, dim, start, size)
        part._base = None
        part._storage = Storage(own.owner, external=own.external or SHARED, device=own.place)  # versions of its own, too
        parts.append(part)
        start += size
    return tuple(parts)


@composite(
    "unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]",
    takes_all_grads=True,
    samples=lambda make: [(make(5, 4), 2)],
    batching=Batching.ALONG_DIM,
)
def unsafe_split(self, split_size, dim):
    """As `split`, but the results may be changed in place without autograd noticing.

    >>> torch.unsafe_split(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _detached_parts(self, _checked_sizes(self, split_size, dim), dim)


unsafe_split.vjp(
    self=lambda grads, self_shape, split_size, dim: _joined(grads, self_shape, _part_sizes(self_shape[dim], split_size), dim)
)


@composite(
    "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    takes_all_grads=True,
    samples=lambda make: [(make(5, 4), (1, 4))],
    batching=Batching.ALONG_DIM,
)
def unsafe_split_with_sizes(self, split_sizes, dim):
    """As `split_with_sizes`, but the results may be changed in place without autograd noticing.

    >>> torch.unsafe_split_with_sizes(torch.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """
    return _detached_parts(self, split_sizes, dim)


unsafe_split_with_sizes.vjp(self=lambda grads, self_shape, split_sizes, dim: _joined(grads, self_shape, split_sizes, dim))


def _unsafe_chunk(self, chunks, dim):
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = _size_at(self, dim, "unsafe_chunk")
    if not n:
        check_room(chunks)
        return aten.unsafe_split_with_sizes(self, [0] * chunks, dim)
    return aten.unsafe_split(self, -(-n // chunks), dim)


composite(
    "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    _unsafe_chunk,
    samples=lambda make: [(make(5, 4), 2)],
    doc="""As `chunk`, but the results may be changed in place without autograd noticing.

    >>> torch.unsafe_chunk(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """,
)


@op(
    "unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]",
    takes_all_grads=True,
    samples=lambda make: [(make(3, 4),), (make(3, 4), 1)],
    batching=Batching.ALONG_DIM,
)
def unbind(self, dim):
    """One view for each position of a dim.

    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    lead = ALL[existing_dim(dim, self.ndim)]
    parts = [self[(*lead, i, ...)] for i in range(self.shape[dim])]
    return parts if self.flags.writeable else [part_of_expanded(part) for part in parts]


@unbind.vjp
def _(grads, self_shape, dim):
    dim = normal_dim(dim, len(self_shape))
    shape = (*self_shape[:dim], *self_shape[dim + 1 :])
    known = next(g for g in grads if g is not None)
    whole = [aten.expand(aten.zeros((), dtype=known.dtype, device=home_of(known)), shape) if g is None else g for g in grads]
    return aten.stack(whole, dim)


def _cut(self, bounds, dim):
    """Slices between the bounds, from the start to the end of a dim."""
    starts = [0, *bounds]
    return tuple(
        [
            _slice(self, dim, start, end, 1)
            for start, end in zip(starts, [*bounds, _size_at(self, dim, "tensor_split")], strict=True)
        ]
    )


@composite(
    "tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor(a)[]", samples=lambda make: [(make(5, 4), 3)]
)
def tensor_split(self, sections, dim):
    """Splits into views of nearly equal size, or at the given positions.

    >>> torch.tensor_split(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    n = _size_at(self, dim, "tensor_split")
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    check_room(sections)
    low, extra = divmod(n, sections)
    return _cut(self, [i * low + min(i, extra) for i in range(1, sections)], dim)


@composite(
    "tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor(a)[]", samples=lambda make: [(make(5, 4), (1, 3))]
)
def tensor_split_indices(self, indices, dim):
    return _cut(self, list(indices), dim)


@composite(
    "tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
    samples=lambda make: [(make(5, 4), make.ints(4, 2))],
)
def tensor_split_tensor(self, tensor_indices_or_sections, dim):
    bounds = tensor_indices_or_sections._array
    if not tensor_indices_or_sections.is_cpu:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {tensor_indices_or_sections.device}"
        )
    if bounds.dtype != np.int64:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {scalar_name(bounds)}"
        )
    if bounds.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a "
            f"tensor with {bounds.ndim} dims"
        )
    return (
        tensor_split.kernel(self, int(bounds), dim)
        if not bounds.ndim
        else tensor_split_indices.kernel(self, bounds.tolist(), dim)
    )


def _declare_splits(name, least, dim_of, *, doc=None):
    """hsplit, vsplit and dsplit: tensor_split along one dim, in equal parts where a number is given."""

    def check(self):
        ndim = self._array.ndim
        if ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} dimensions!"
            )
        return dim_of(ndim)

    def sections(self, sections):
        dim = check(self)
        if sections == 0 or self._array.shape[dim] % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                f"{self._array.shape[dim]} is not divisible by the split_size {sections}!"
            )
        return aten.tensor_split(self, sections, dim)

    composite(
        f"{name}.int(Tensor(a) self, int sections) -> Tensor(a)[]", sections, samples=lambda make: [(make(4, 4, 4), 2)], doc=doc
    )
    composite(
        f"{name}.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
        lambda self, indices: aten.tensor_split(self, indices, check(self)),
        samples=lambda make: [(make(4, 4, 4), (1, 3))],
    )


_declare_splits(
    "hsplit",
    1,
    lambda ndim: 0 if ndim == 1 else 1,
    doc="""Splits into columns: along the second dim, or the only one.

    >>> torch.hsplit(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """,
)
_declare_splits(
    "vsplit",
    2,
    lambda ndim: 0,
    doc="""Splits into rows: along the first dim.

    >>> torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """,
)
_declare_splits(
    "dsplit",
    3,
    lambda ndim: 2,
    doc="""Splits along the third dim.

    >>> [t.shape for t in torch.dsplit(torch.zeros(1, 2, 4), 2)]
    [torch.Size([1, 2, 2]), torch.Size([1, 2, 2])]
    """,
)

METHODS = {"split": split_method}
FUNCTIONS = {"split": split_function}
