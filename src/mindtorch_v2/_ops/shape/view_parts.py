"""Views of some elements: select, slice, diagonal, windows, as_strided."""

from __future__ import annotations

import operator
from contextlib import suppress

import numpy as np

from ..._core.keys import AUTOGRAD
from ..._core.strides import memory_of, overlaps, restride, strided
from ..._core.tensor import Tensor
from ..._core.threads import threads
from ..._dispatch.errors import need_tensor
from ..._dispatch.facts import Batching, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, normal_dim

END = 9223372036854775807  # where a slice ends that names no end, as torch writes it

# (:, :) and the like: all of the dims before one.
ALL = tuple((slice(None),) * d for d in range(65))


def part_of_expanded(array):
    """A part of an expanded array; it may be written to again once no two of its elements share a place."""
    if not array.size or 0 not in [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]:
        with suppress(ValueError):  # the memory itself is read-only
            array.flags.writeable = True
    return array


# ---------------------------------------------------------------- select


@op(
    "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), 0, 1), (make(3, 4), -1, -2)],
    batching=Batching.ALONG_DIM,
)
def select(self, dim, index):
    """A view of one position of a dim, which is gone afterwards.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    ndim = self.ndim
    if dim < 0:
        dim += ndim
    if index.__class__ is not int:  # NumPy takes whole arrays of positions here
        if isinstance(index, bool):
            raise TypeError("select(): argument 'index' (position 3) must be int, not bool")
        index = operator.index(index)
    try:
        # The trailing Ellipsis keeps a single element an array.
        part = self[index, ...] if dim == 0 else self[(*ALL[dim], index, ...)]
        return part if part.flags.writeable else part_of_expanded(part)
    except IndexError:
        if not ndim:
            raise IndexError("select() cannot be applied to a 0-dim tensor.") from None
        if not 0 <= dim < ndim:
            normal_dim(dim if dim >= ndim else dim - ndim, ndim)
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        ) from None


select.vjp(self=lambda g, self_shape, dim, index: aten.select_backward(g, self_shape, dim, index))


@op(
    "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    shape=lambda grad_output, input_sizes, dim, index: (input_sizes, grad_output._array.dtype),
    samples=lambda make: [(make(4), (3, 4), 0, 1)],
)
def select_backward(grad_output, input_sizes, dim, index):
    grad_input = np.zeros(input_sizes, grad_output.dtype)
    grad_input[(*ALL[normal_dim(dim, grad_input.ndim)], index)] = grad_output
    return grad_input


select_backward.vjp(grad_output=lambda g, dim, index: aten.select(g, dim, index))

# ---------------------------------------------------------------- slice


@op(
    "slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), 0, 1, 3), (make(3, 4), 1, None, -1, 2)],
    batching=Batching.ALONG_DIM,
)
def slice_(self, dim, start, end, step):
    """A view of every `step`-th position of a dim, from `start` to `end`: what `x[start:end:step]` calls.

    >>> torch.ops.aten.slice(torch.arange(6), 0, 1, 5, 2)
    tensor([1, 3])
    """
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if dim == 0:
        if not self.ndim:
            raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
        part = self[start:end:step]
    else:
        dim = normal_dim(dim, self.ndim)
        part = self[(*ALL[dim], slice(start, end, step))]
    if not part.size and self.__class__ is np.ndarray:
        return _empty_from(self, part.shape, dim, start, step)
    return part if part.flags.writeable else part_of_expanded(part)


def _empty_from(array, shape, dim, start, step):
    """A view without elements that begins where a slice of a dim does, which NumPy's does not."""
    n = array.shape[dim]
    first = 0 if start is None else max(start + n, 0) if start < 0 else min(start, n)
    memory, offset = memory_of(array)
    steps = list(array.strides)
    steps[dim] *= step
    return strided(memory, array.dtype, shape, steps, offset + first * array.strides[dim])


slice_.vjp(
    self=lambda g, self_shape, dim, start, end, step: aten.slice_backward(
        g, self_shape, dim, 0 if start is None else start, END if end is None else end, step
    )
)
_slice = slice_.call


@op(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor",
    shape=lambda grad_output, input_sizes, *_: (input_sizes, grad_output._array.dtype),
    samples=lambda make: [(make(2, 4), (3, 4), 0, 1, 3, 1)],
)
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    grad_input = np.zeros(input_sizes, grad_output.dtype)
    grad_input[(*ALL[normal_dim(dim, grad_input.ndim)], slice(start, end, step))] = grad_output
    return grad_input


slice_backward.vjp(grad_output=lambda g, dim, start, end, step: aten.slice(g, dim, start, end, step))


@composite("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", samples=lambda make: [(make(3, 4), 1, 1, 2)])
def narrow(self, dim, start, length):
    """A view of `length` elements along `dim`, from `start` on.

    >>> torch.narrow(torch.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    shape = self._array.shape
    if start < 0 or length < 0 or not -len(shape) <= dim < len(shape) or start + length > shape[dim]:
        if shape and length < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        start = _narrow_start(shape, dim, start, length)
    return _slice(self, dim, start, start + length, 1)


def _narrow_start(shape, dim, start, length):
    """Where a narrowed part of a dim begins, counted from the front."""
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    n = shape[dim] if -len(shape) <= dim < len(shape) else normal_dim(dim, len(shape))
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    if start < 0:
        start += n
    if start + length > n or length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return start


_narrow = narrow.call


def _narrow_shape(self, dim, start, length):
    shape = list(self._array.shape)
    _narrow_start(shape, dim, start, length)
    shape[dim] = length
    return shape, self._array.dtype


@op(
    "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
    shape=_narrow_shape,
    samples=lambda make: [(make(3, 4), 1, 1, 2)],
)
def narrow_copy(self, dim, start, length):
    """A copy of what `narrow` shows.

    >>> torch.narrow_copy(torch.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    start = _narrow_start(self.shape, dim, start, length)
    return self[(*ALL[normal_dim(dim, self.ndim)], slice(start, start + length))].copy("C")


@narrow_copy.vjp
def _(g, self_shape, dim, start, length):
    start = _narrow_start(self_shape, dim, start, length)
    return aten.slice_backward(g, self_shape, dim, start, start + length, 1)


@composite(
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), 1, make.ints(2, *()), 2)],
)
def narrow_tensor(self, dim, start, length):
    if start._array.ndim or start._array.dtype.kind not in "iu":
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return _narrow(self, dim, aten.item(start), length)


# ---------------------------------------------------------------- diagonals


def diagonal_view(array, offset, dim1, dim2):
    """The diagonal of two dims as a last dim, writable where the array is."""
    first, second = normal_dim(dim1, array.ndim), normal_dim(dim2, array.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    # NumPy takes offsets of 32 bits, and all that lie outside of the matrix are the same.
    outside = max(array.shape[first], array.shape[second])
    view = array.diagonal(max(-outside, min(offset, outside)), first, second)
    if array.flags.writeable:
        view.flags.writeable = True
        return view
    return part_of_expanded(view)


@op(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    samples=lambda make: [(make(3, 4),), (make(3, 4), 1), (make(2, 3, 4), -1, 1, 2)],
    batching=Batching.ALONG_DIM,
)
def diagonal(self, offset, dim1, dim2):
    """A view of a diagonal of two dims.

    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]), offset=1)
    tensor([2])
    """
    return diagonal_view(self, offset, dim1, dim2)


diagonal.vjp(self=lambda g, self_shape, offset, dim1, dim2: aten.diagonal_backward(g, self_shape, offset, dim1, dim2))


@op(
    "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    shape=lambda grad_output, input_sizes, *_: (tuple(input_sizes), grad_output._array.dtype),
    samples=lambda make: [(make(3), (3, 4), 0, 0, 1)],
)
def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    grad_input = np.zeros(input_sizes, grad_output.dtype)
    diagonal_view(grad_input, offset, dim1, dim2)[...] = grad_output
    return grad_input


diagonal_backward.vjp(grad_output=lambda g, offset, dim1, dim2: aten.diagonal(g, offset, dim1, dim2))


# ---------------------------------------------------------------- windows


@op(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    samples=lambda make: [(make(8), 0, 3, 2), (make(3, 4), 1, 2, 1)],
    batching=Batching.ALONG_DIM,
    surface=Surface.METHOD,
)
def unfold(self, dimension, size, step):
    """A view of windows of `size` that slide along a dim by `step`.

    >>> torch.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
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
    shape = (*self.shape[:dim], (n - size) // step + 1, *self.shape[dim + 1 :], size)
    return restride(self, shape, (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim]))


unfold.vjp(self=lambda g, self_shape, dimension, size, step: aten.unfold_backward(g, self_shape, dimension, size, step))


@op(
    "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
    shape=lambda grad_in, input_sizes, *_: (tuple(input_sizes), grad_in._array.dtype),
    samples=lambda make: [(make(3, 3), (8,), 0, 3, 2)],
)
def unfold_backward(grad_in, input_sizes, dim, size, step):
    grad_input = np.zeros(input_sizes, grad_in.dtype)
    target = grad_input if grad_input.ndim else grad_input.reshape(1)
    dim = normal_dim(dim, grad_input.ndim)  # of the input: the gradient has the windows' dim behind it
    lead = ALL[dim]
    count = grad_in.shape[dim] if grad_input.ndim else 1
    # One position within all windows at a time.
    for i in range(size):
        target[(*lead, slice(i, i + (count - 1) * step + 1, step))] += grad_in[..., i]
    return grad_input


unfold_backward.vjp(grad_in=lambda g, dim, size, step: aten.unfold(g, dim, size, step))

# ---------------------------------------------------------------- as_strided


@op(
    "as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), (2, 2), (4, 1)), (make(3, 4), (2, 3), (1, 1), 2)],
    batching=Batching.STRIDED,
    handwritten=Surface.BOTH,
)
def as_strided(self, size, stride, storage_offset):
    """A view with any size and strides into the tensor's memory.

    >>> torch.as_strided(torch.tensor([1, 2, 3, 4]), (2, 2), (1, 1))
    tensor([[1, 2],
            [2, 3]])
    """
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    item = self.itemsize
    memory, own = memory_of(self)
    start = own if storage_offset is None else storage_offset * item
    return strided(memory, self.dtype, size, [s * item for s in stride], start)


def _place_grad(g, size, stride, offset, count):
    """A flat array of `count` elements with the gradient added at its places."""
    flat = aten.new_zeros(g, (count,))
    if not overlaps(size, stride):
        aten.copy_(aten.as_strided(flat, size, stride, offset), g)
        return flat
    places = aten.as_strided(aten.arange(count, device=home_of(g)), size, stride, offset)
    return aten.index_add_(flat, 0, aten.reshape(places, (-1,)), aten.reshape(g, (-1,)))


def as_strided_grad(g, self_shape, self_strides, self_dtype, size, stride, storage_offset):
    """The gradient of the tensor of which a window in memory was taken."""
    own = [s // self_dtype.itemsize for s in self_strides]
    offset = storage_offset or 0
    count = 1 + max(
        sum((n - 1) * s for n, s in zip(self_shape, own, strict=True) if n),
        offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True) if n),
    )
    flat = _place_grad(g, size, stride, offset, count)
    if overlaps(self_shape, own):
        # Elements that share a place share its gradient.
        ones = aten.ones(tuple(self_shape), device=home_of(g))
        flat = flat / aten.clamp(_place_grad(ones, self_shape, own, 0, count), min=1).to(dtype=g.dtype)
    return aten.as_strided(flat, self_shape, own, 0)


as_strided.vjp(as_strided_grad)


def check_history_of_part(self: Tensor, storage_offset: int | None, name: str, *others: Tensor) -> None:
    """The derivative counts from where a tensor begins, so it must begin where its memory does if an offset is given."""
    need_tensor(name, self)
    if (
        storage_offset is not None
        and threads.state.grad_enabled
        and any(t._keys & AUTOGRAD for t in (self, *others))
        and self.storage_offset()
    ):
        raise NotImplementedError(
            f"{name} with a storage_offset has no derivative for a tensor that does not begin where its memory does"
        )


def as_strided_method(self: Tensor, size, stride, storage_offset=None):
    """A view with any size and strides of the memory; what its offset counts from is the start of the memory."""
    check_history_of_part(self, storage_offset, "as_strided")
    return aten.as_strided(self, size, stride, storage_offset)


METHODS = {"as_strided": as_strided_method}
FUNCTIONS = {"as_strided": as_strided_method}
