"""Views of some elements: select, slice, split, diagonal, windows, as_strided."""

from __future__ import annotations

import math

import numpy as np

from .._core.keys import AUTOGRAD
from .._core.storage import Storage, owner_of
from .._core.tensor import Tensor, make_view
from .._dispatch import namespace
from .._dispatch.registry import aten, composite, op
from ._common import normal_dim
from .view import memory_of, restride

END = 9223372036854775807  # where a slice ends that names no end, as torch writes it

_ALL = tuple((slice(None),) * d for d in range(65))


def _part(array):
    """A part of an expanded array; it may be written to again once no two of its elements share a place."""
    if 0 not in [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]:
        try:
            array.flags.writeable = True
        except ValueError:  # the memory itself is read-only
            pass
    return array



def _size_at(self, dim, name):
    """The size of a tensor's dim, counted from either end."""
    shape = self._array.shape
    if not shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    if not -len(shape) <= dim < len(shape):
        normal_dim(dim, len(shape))
    return shape[dim]


# ---------------------------------------------------------------- select


@op("select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), 0, 1), (make(3, 4), -1, -2)])
def select(self, dim, index):
    ndim = self.ndim
    if dim < 0:
        dim += ndim
    try:
        # The trailing Ellipsis keeps a single element an array.
        made = self[index, ...] if dim == 0 else self[(*_ALL[dim], index, ...)]
        return made if made.flags.writeable else _part(made)
    except IndexError:
        if not ndim:
            raise IndexError("select() cannot be applied to a 0-dim tensor.") from None
        if not 0 <= dim < ndim:
            normal_dim(dim if dim >= ndim else dim - ndim, ndim)
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension "
                         f"{dim}") from None


select.vjp(self=lambda g, self_shape, dim, index: aten.select_backward(g, self_shape, dim, index))


@op("select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    shape=lambda grad_output, input_sizes, dim, index: (input_sizes, grad_output._array.dtype),
    samples=lambda make: [(make(4), (3, 4), 0, 1)])
def select_backward(grad_output, input_sizes, dim, index):
    made = np.zeros(input_sizes, grad_output.dtype)
    made[(*_ALL[normal_dim(dim, made.ndim)], index)] = grad_output
    return made


select_backward.vjp(grad_output=lambda g, dim, index: aten.select(g, dim, index))

# ---------------------------------------------------------------- slice


@op("slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), 0, 1, 3), (make(3, 4), 1, None, -1, 2)])
def slice_(self, dim, start, end, step):
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if dim == 0:
        if not self.ndim:
            raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
        made = self[start:end:step]
    else:
        made = self[(*_ALL[normal_dim(dim, self.ndim)], slice(start, end, step))]
    return made if made.flags.writeable else _part(made)


slice_.vjp(self=lambda g, self_shape, dim, start, end, step:
           aten.slice_backward(g, self_shape, dim, 0 if start is None else start, END if end is None else end, step))
_slice = slice_.call


@op("slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor",
    shape=lambda grad_output, input_sizes, *_: (input_sizes, grad_output._array.dtype),
    samples=lambda make: [(make(2, 4), (3, 4), 0, 1, 3, 1)])
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    made = np.zeros(input_sizes, grad_output.dtype)
    made[(*_ALL[normal_dim(dim, made.ndim)], slice(start, end, step))] = grad_output
    return made


slice_backward.vjp(grad_output=lambda g, dim, start, end, step: aten.slice(g, dim, start, end, step))


@composite("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
           samples=lambda make: [(make(3, 4), 1, 1, 2)])
def narrow(self, dim, start, length):
    shape = self._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    n = shape[dim] if -len(shape) <= dim < len(shape) else normal_dim(dim, len(shape))
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if start < 0:
        start += n
        if start < 0:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n}], but got {start - n})")
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return _slice(self, dim, start, start + length, 1)


_narrow = narrow.call


@composite("narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)",
           samples=lambda make: [(make(3, 4), 1, make.ints(2, *()), 2)])
def narrow_tensor(self, dim, start, length):
    if start._array.ndim or start._array.dtype.kind not in "iu":
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return _narrow(self, dim, aten.item(start), length)


# ---------------------------------------------------------------- splits


def _filled(grads, shapes):
    """The gradients of all parts, zeros for those that nobody asked for."""
    known = next(g for g in grads if g is not None)
    return [aten.zeros(shape, dtype=known.dtype) if g is None else g for g, shape in zip(grads, shapes, strict=True)]


def _joined(grads, shape, sizes, dim):
    dim = normal_dim(dim, len(shape))
    return aten.cat(_filled(grads, [(*shape[:dim], n, *shape[dim + 1:]) for n in sizes]), dim)


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


@composite("split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]", tags=("all_grads",),
           samples=lambda make: [(make(5, 4), 2), (make(3, 4), 2, 1)])
def split(self, split_size, dim):
    sizes = _checked_sizes(self, split_size, dim)
    if self._keys > AUTOGRAD or namespace.watch:
        return tuple([_narrow(self, dim, i * split_size, size) for i, size in enumerate(sizes)])
    # Nobody looks: the same views without asking for each of them.
    array = self._array
    if dim < 0:
        dim += array.ndim
    parts, start = [], 0
    for size in sizes:
        end = start + size
        parts.append(make_view(array[start:end] if dim == 0 else array[(*_ALL[dim], slice(start, end))], self))
        start = end
    return tuple(parts)


split.vjp(self=lambda grads, self_shape, split_size, dim:
          _joined(grads, self_shape, _part_sizes(self_shape[dim], split_size), dim))
_split = split.call


@op("split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]", tags=("all_grads",),
    samples=lambda make: [(make(5, 4), (1, 4)), (make(3, 4), (2, 1, 1), 1)])
def split_with_sizes(self, split_sizes, dim):
    if not self.ndim:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    lead = _ALL[normal_dim(dim, self.ndim)]
    n = self.shape[dim]
    if sum(split_sizes) != n:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
                           f"dimension {dim}), but got split_sizes={list(split_sizes)}")
    parts, start = [], 0
    for size in split_sizes:
        if size < 0:
            raise RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, but got "
                               f"split_sizes={list(split_sizes)}")
        parts.append(self[(*lead, slice(start, start + size))])
        start += size
    return parts


split_with_sizes.vjp(self=lambda grads, self_shape, split_sizes, dim: _joined(grads, self_shape, split_sizes, dim))

composite("split.sizes(Tensor(a) self, int[] split_size, int dim=0) -> Tensor(a)[]",
          lambda self, split_size, dim: aten.split_with_sizes(self, split_size, dim),
          samples=lambda make: [(make(5, 4), (1, 4))])


def split_method(input: Tensor, split_size_or_sections, dim=0, *, split_size=None):
    """Parts of one size (the last may be smaller), or of the sizes of a list."""
    if split_size is not None:
        split_size_or_sections = split_size
    if isinstance(split_size_or_sections, list | tuple):
        return aten.split_with_sizes(input, split_size_or_sections, dim)
    return _split(input, int(split_size_or_sections), dim)


@composite("chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]", samples=lambda make: [(make(5, 4), 2)])
def chunk(self, chunks, dim):
    n = _size_at(self, dim, "chunk")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not n:
        return aten.split_with_sizes(self, [0] * chunks, dim)
    return _split(self, -(-n // chunks), dim)


def _detached_parts(self, sizes, dim):
    """Narrowed tensors that share memory but are no views: each may be changed without the others' history."""
    parts, start = [], 0
    for size in sizes:
        part = _narrow(self, dim, start, size)
        part._base = None
        part._storage = Storage(owner_of(part._array), external=True)  # versions of its own, too
        parts.append(part)
        start += size
    return tuple(parts)


@composite("unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]", tags=("all_grads",),
           samples=lambda make: [(make(5, 4), 2)])
def unsafe_split(self, split_size, dim):
    return _detached_parts(self, _checked_sizes(self, split_size, dim), dim)


unsafe_split.vjp(self=lambda grads, self_shape, split_size, dim:
                 _joined(grads, self_shape, _part_sizes(self_shape[dim], split_size), dim))


@composite("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", tags=("all_grads",),
           samples=lambda make: [(make(5, 4), (1, 4))])
def unsafe_split_with_sizes(self, split_sizes, dim):
    return _detached_parts(self, split_sizes, dim)


unsafe_split_with_sizes.vjp(self=lambda grads, self_shape, split_sizes, dim:
                            _joined(grads, self_shape, split_sizes, dim))

composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
          lambda self, chunks, dim: aten.unsafe_split(self, max(1, -(-_size_at(self, dim, "unsafe_chunk") // chunks)), dim),
          samples=lambda make: [(make(5, 4), 2)])


@op("unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]", tags=("all_grads",),
    samples=lambda make: [(make(3, 4),), (make(3, 4), 1)])
def unbind(self, dim):
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    lead = _ALL[normal_dim(dim, self.ndim)]
    return [self[(*lead, i, ...)] for i in range(self.shape[dim])]


@unbind.vjp
def _(grads, self_shape, dim):
    dim = normal_dim(dim, len(self_shape))
    shape = (*self_shape[:dim], *self_shape[dim + 1:])
    known = next(g for g in grads if g is not None)
    whole = [aten.expand(aten.zeros((), dtype=known.dtype), shape) if g is None else g for g in grads]
    return aten.stack(whole, dim)


def _cut(self, bounds, dim):
    """Slices between the bounds, from the start to the end of a dim."""
    starts = [0, *bounds]
    return tuple([_slice(self, dim, start, end, 1)
                  for start, end in zip(starts, [*bounds, _size_at(self, dim, "tensor_split")], strict=True)])


@composite("tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor(a)[]",
           samples=lambda make: [(make(5, 4), 3)])
def tensor_split(self, sections, dim):
    n = _size_at(self, dim, "tensor_split")
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    low, extra = divmod(n, sections)
    return _cut(self, [i * low + min(i, extra) for i in range(1, sections)], dim)


@composite("tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor(a)[]",
           samples=lambda make: [(make(5, 4), (1, 3))])
def tensor_split_indices(self, indices, dim):
    return _cut(self, list(indices), dim)


@composite("tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0) "
           "-> Tensor(a)[]", samples=lambda make: [(make(5, 4), make.ints(4, 2))])
def tensor_split_tensor(self, tensor_indices_or_sections, dim):
    given = tensor_indices_or_sections._array
    if given.dtype != np.int64 or given.ndim > 1:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                           f"tensor of dtype long, but got {given.ndim}-D {given.dtype}")
    return tensor_split.kernel(self, int(given), dim) if not given.ndim else \
        tensor_split_indices.kernel(self, given.tolist(), dim)


def _declare_splits(name, least, dim_of):
    """hsplit, vsplit and dsplit: tensor_split along one dim, in equal parts where a number is given."""
    def check(self):
        ndim = self._array.ndim
        if ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension"
                               f"{'s' if least > 1 else ''}, but got a tensor with {ndim} dimensions!")
        return dim_of(ndim)

    def sections(self, sections):
        dim = check(self)
        if sections == 0 or self._array.shape[dim] % sections:
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                               f"{self._array.shape[dim]} is not divisible by the split_size {sections}!")
        return aten.tensor_split(self, sections, dim)

    composite(f"{name}.int(Tensor(a) self, int sections) -> Tensor(a)[]", sections,
              samples=lambda make: [(make(4, 4, 4), 2)])
    composite(f"{name}.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
              lambda self, indices: aten.tensor_split(self, indices, check(self)),
              samples=lambda make: [(make(4, 4, 4), (1, 3))])


_declare_splits("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1)
_declare_splits("vsplit", 2, lambda ndim: 0)
_declare_splits("dsplit", 3, lambda ndim: 2)

# ---------------------------------------------------------------- diagonals


def diagonal_view(array, offset, dim1, dim2):
    """The diagonal of two dims as a last dim, writable where the array is."""
    first, second = normal_dim(dim1, array.ndim), normal_dim(dim2, array.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    made = array.diagonal(offset, first, second)
    if array.flags.writeable:
        made.flags.writeable = True
    return made


@op("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    samples=lambda make: [(make(3, 4),), (make(3, 4), 1), (make(2, 3, 4), -1, 1, 2)])
def diagonal(self, offset, dim1, dim2):
    return diagonal_view(self, offset, dim1, dim2)


diagonal.vjp(self=lambda g, self_shape, offset, dim1, dim2:
             aten.diagonal_backward(g, self_shape, offset, dim1, dim2))


@op("diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    shape=lambda grad_output, input_sizes, *_: (tuple(input_sizes), grad_output._array.dtype),
    samples=lambda make: [(make(3), (3, 4), 0, 0, 1)])
def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    made = np.zeros(input_sizes, grad_output.dtype)
    diagonal_view(made, offset, dim1, dim2)[...] = grad_output
    return made


diagonal_backward.vjp(grad_output=lambda g, offset, dim1, dim2: aten.diagonal(g, offset, dim1, dim2))


def _diagonal_shape(self, offset, dim1, dim2):
    array = self._array
    return diagonal_view(array, offset, dim1, dim2).shape, array.dtype


@op("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", node="DiagonalBackward0_copy",
    shape=_diagonal_shape)
def diagonal_copy(self, offset, dim1, dim2):
    return diagonal_view(self, offset, dim1, dim2).copy("C")


diagonal_copy.vjp(self=lambda g, self_shape, offset, dim1, dim2:
                  aten.diagonal_backward(g, self_shape, offset, dim1, dim2))

# ---------------------------------------------------------------- windows


@op("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    samples=lambda make: [(make(8), 0, 3, 2), (make(3, 4), 1, 2, 1)])
def unfold(self, dimension, size, step):
    dim = normal_dim(dimension, self.ndim)
    n = self.shape[dim] if self.ndim else 1
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {n} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not self.ndim:
        return restride(self, (size,), (self.itemsize,))
    strides = self.strides
    shape = (*self.shape[:dim], (n - size) // step + 1, *self.shape[dim + 1:], size)
    return restride(self, shape, (*strides[:dim], strides[dim] * step, *strides[dim + 1:], strides[dim]))


unfold.vjp(self=lambda g, self_shape, dimension, size, step:
           aten.unfold_backward(g, self_shape, dimension, size, step))


@op("unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
    shape=lambda grad_in, input_sizes, *_: (tuple(input_sizes), grad_in._array.dtype),
    samples=lambda make: [(make(3, 3), (8,), 0, 3, 2)])
def unfold_backward(grad_in, input_sizes, dim, size, step):
    made = np.zeros(input_sizes, grad_in.dtype)
    target = made if made.ndim else made.reshape(1)
    lead = _ALL[normal_dim(dim, made.ndim)]
    count = grad_in.shape[dim] if made.ndim else 1
    # One position within all windows at a time.
    for i in range(size):
        target[(*lead, slice(i, i + (count - 1) * step + 1, step))] += grad_in[..., i]
    return made


unfold_backward.vjp(grad_in=lambda g, dim, size, step: aten.unfold(g, dim, size, step))

# ---------------------------------------------------------------- as_strided


@op("as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), (2, 2), (4, 1)), (make(3, 4), (2, 3), (1, 1), 2)])
def as_strided(self, size, stride, storage_offset):
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: "
                           f"{list(stride)}")
    item = self.itemsize
    steps = [s * item for s in stride]
    memory, own = memory_of(self)
    offset = own if storage_offset is None else storage_offset * item
    reach = offset + sum((n - 1) * s for n, s in zip(size, steps, strict=True)) + item
    if math.prod(size) and reach > memory.nbytes:
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset // item}, "
                           f"and itemsize {item} requiring a storage size of {reach} are out of bounds for storage of "
                           f"size {memory.nbytes}")
    return np.ndarray(size, self.dtype, memory, offset, steps)


def _overlaps(shape, strides):
    """Whether two elements may share a place."""
    reach = 1
    for stride, n in sorted(zip(strides, shape, strict=True)):
        if n == 1:
            continue
        if stride < reach:
            return True
        reach = stride * (n - 1) + reach
    return False


def _place_grad(g, size, stride, offset, count):
    """A flat array of `count` elements with the gradient added at its places."""
    flat = aten.new_zeros(g, (count,))
    if not _overlaps(size, stride):
        aten.copy_(aten.as_strided(flat, size, stride, offset), g)
        return flat
    places = aten.as_strided(aten.arange(count), size, stride, offset)
    return aten.index_add_(flat, 0, aten.reshape(places, (-1,)), aten.reshape(g, (-1,)))


@as_strided.vjp
def _(g, self_shape, self_strides, self_dtype, size, stride, storage_offset):
    own = [s // self_dtype.itemsize for s in self_strides]
    offset = storage_offset or 0
    count = 1 + max(sum((n - 1) * s for n, s in zip(self_shape, own, strict=True) if n),
                    offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True) if n))
    flat = _place_grad(g, size, stride, offset, count)
    if _overlaps(self_shape, own):
        # Elements that share a place share its gradient.
        ones = aten.ones(tuple(self_shape), dtype=g.dtype)
        flat = flat / aten.clamp(_place_grad(ones, self_shape, own, 0, count), min=1)
    return aten.as_strided(flat, self_shape, own, 0)


METHODS = {"split": split_method}
FUNCTIONS = {"split": split_method}
