"""Views: the same memory in another shape. Kernels return NumPy views; the dispatcher ties storages together."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided as np_as_strided

from .._core.memory_format import contiguous_format
from .._core.storage import owner_of
from .._core.tensor import make_view
from .._dispatch.registry import aten, composite, op
from ._common import infer_size, normal_dim, normal_dims

# ---------------------------------------------------------------- reshaping


def view_strides(array, shape):
    """Byte strides of `array` seen in another shape without a copy, or None if there are none."""
    if array.flags.c_contiguous:
        return ()
    try:
        return np.reshape(array, shape, copy=False).strides
    except ValueError:
        return None


@op("view(Tensor(a) self, int[] size) -> Tensor(a)")
def view(self, size):
    if self.flags.c_contiguous:
        try:
            return self.reshape(size)
        except ValueError:
            pass
    shape = infer_size(size, self.size)
    try:
        return np.reshape(self, shape, copy=False)
    except ValueError:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension "
                           "spans across two contiguous subspaces). Use .reshape(...) instead.") from None


view.vjp(self=lambda g, self_shape: aten.reshape(g, self_shape))


@op("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", nondiff=True)
def view_dtype(self, dtype):
    wanted = dtype.np
    if wanted.itemsize != self.itemsize and (self.ndim == 0 or self.strides[-1] != self.itemsize):
        raise RuntimeError("self.stride(-1) must be 1 to view "
                           f"{self.dtype} as {wanted} (different element sizes), but got another stride")
    return self.view(wanted)


@op("_unsafe_view(Tensor self, int[] size) -> Tensor")
def unsafe_view(self, size):
    return self.reshape(infer_size(size, self.size))


unsafe_view.vjp(self=lambda g, self_shape: aten.reshape(g, self_shape))


@op("_reshape_alias(Tensor(a) self, int[] size, int[] stride) -> Tensor(a)")
def reshape_alias(self, size, stride):
    return np.reshape(self, size, copy=False)


reshape_alias.vjp(self=lambda g, self_shape: aten.reshape(g, self_shape))


def _reshaped(self, shape):
    """What reshape and flatten do: a view where one exists, else a copy."""
    array = self._array
    if array.flags.c_contiguous:
        return aten.view(self, shape)
    strides = view_strides(array, shape)
    if strides is not None:
        return aten._reshape_alias(self, shape, strides)
    return aten._unsafe_view(aten.clone(self, memory_format=contiguous_format), shape)


@composite("reshape(Tensor(a) self, int[] shape) -> Tensor(a)")
def reshape(self, shape):
    return _reshaped(self, infer_size(shape, self._array.size))


@composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(self, start_dim, end_dim):
    shape = self._array.shape
    start, end = normal_dim(start_dim, len(shape)), normal_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return _reshaped(self, (1,))
    if start == end:
        return self
    return _reshaped(self, (*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:]))


alias = op("alias(Tensor(a) self) -> Tensor(a)", lambda self: self.view())
alias.vjp(self=lambda g: g)

# ---------------------------------------------------------------- moving dims


@op("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
def transpose(self, dim0, dim1):
    ndim = self.ndim
    if not ndim:
        normal_dim(dim0, 0), normal_dim(dim1, 0)
        return self.view()
    return self.swapaxes(dim0, dim1)


transpose.vjp(self=lambda g, dim0, dim1: aten.transpose(g, dim0, dim1))


@composite("t(Tensor(a) self) -> Tensor(a)")
def t(self):
    ndim = self._array.ndim
    if ndim == 2:
        return aten.transpose(self, 0, 1)
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return make_view(self._array.view(), self)


t.vjp(self=lambda g: aten.t(g))


@composite("mT(Tensor(a) self) -> Tensor(a)")
def mT(self):
    if self._array.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self._array.ndim}-D tensor.")
    return aten.transpose(self, -2, -1)


composite("numpy_T(Tensor(a) self) -> Tensor(a)",
          lambda self: aten.permute(self, tuple(range(self._array.ndim))[::-1]))


@op("permute(Tensor(a) self, int[] dims) -> Tensor(a)")
def permute(self, dims):
    if len(dims) != self.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
                           f"the desired ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to "
                           f"len(dims) = {len(dims)}")
    wanted = [normal_dim(d, self.ndim) for d in dims]
    if len(set(wanted)) != len(wanted):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return self.transpose(wanted)


def _inverse_permutation(dims):
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d % len(dims)] = i
    return tuple(inverse)


permute.vjp(self=lambda g, dims: aten.permute(g, _inverse_permutation(dims)))


@op("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
def unsqueeze(self, dim):
    return np.expand_dims(self, normal_dim(dim, self.ndim + 1))


unsqueeze.vjp(self=lambda g, dim, self_shape: aten.squeeze(g, normal_dim(dim, len(self_shape) + 1)))


@op("squeeze(Tensor(a) self) -> Tensor(a)")
def squeeze(self):
    return self.squeeze()


squeeze.vjp(self=lambda g, self_shape: _unsqueeze_to(g, self_shape, range(len(self_shape))))


@op("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", node="SqueezeBackward1")
def squeeze_dim(self, dim):
    dim = normal_dim(dim, self.ndim)
    return self.squeeze(dim) if self.ndim and self.shape[dim] == 1 else self.view()


squeeze_dim.vjp(self=lambda g, self_shape, dim: _unsqueeze_to(g, self_shape, normal_dims((dim,), len(self_shape))))


@op("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", node="SqueezeBackward2")
def squeeze_dims(self, dim):
    return self.squeeze(tuple(d for d in normal_dims(dim, self.ndim) if self.shape[d] == 1))


squeeze_dims.vjp(self=lambda g, self_shape, dim: _unsqueeze_to(g, self_shape, normal_dims(dim, len(self_shape))))


def _unsqueeze_to(g, shape, dims):
    for d in sorted(dims):
        if shape[d] == 1:
            g = aten.unsqueeze(g, d)
    return g


@op("expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)")
def expand(self, size, implicit):
    size = tuple(int(n) for n in size)
    lead = len(size) - self.ndim
    if lead < 0:
        raise RuntimeError(f"expand(torch.FloatTensor{{{list(self.shape)}}}, size={list(size)}): the number of sizes "
                           f"provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor "
                           f"({self.ndim})")
    if -1 in size:
        size = tuple(self.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(size))
    if size == self.shape:
        return self.view()
    strides = list(self.strides)
    for i, (have, want) in enumerate(zip(self.shape, size[lead:], strict=True)):
        if have != want:
            if have != 1:
                raise RuntimeError(f"The expanded size of the tensor ({want}) must match the existing size ({have}) at "
                                   f"non-singleton dimension {i + lead}.  Target sizes: {list(size)}.  Tensor sizes: "
                                   f"{list(self.shape)}")
            strides[i] = 0
    return np.ndarray(size, self.dtype, self, 0, (0,) * lead + tuple(strides)) if self.size else \
        np_as_strided(self, size, (0,) * lead + tuple(strides))


def _expand_grad(g, self_shape):
    given = g._array.shape
    lead = len(given) - len(self_shape)
    dims = [*range(lead), *[i + lead for i, n in enumerate(self_shape) if n == 1 and given[i + lead] != 1]]
    if dims:
        g = aten.sum(g, dims, True)
    return aten.view(g, self_shape) if lead else g


expand.vjp(self=_expand_grad)

composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", lambda self, other: aten.expand(self, other._array.shape))
composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", lambda self, other: aten.view(self, other._array.shape))

# ---------------------------------------------------------------- parts


@op("select.int(Tensor(a) self, int dim, int index) -> Tensor(a)")
def select(self, dim, index):
    if self.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = normal_dim(dim, self.ndim)
    n = self.shape[dim]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}")
    # The trailing Ellipsis keeps a single element an array.
    return self[(slice(None),) * dim + (index, ...)]


select.vjp(self=lambda g, self_shape, dim, index: aten.select_backward(g, self_shape, dim, index))


@op("select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    shape=lambda grad_output, input_sizes, dim, index: (input_sizes, grad_output._array.dtype))
def select_backward(grad_output, input_sizes, dim, index):
    made = np.zeros(input_sizes, grad_output.dtype)
    made[(slice(None),) * normal_dim(dim, made.ndim) + (index,)] = grad_output
    return made


select_backward.vjp(grad_output=lambda g, dim, index: aten.select(g, dim, index))


@op("slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)")
def slice_(self, dim, start, end, step):
    if self.ndim == 0:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return self[(slice(None),) * normal_dim(dim, self.ndim) + (slice(start, end, step),)]


slice_.vjp(self=lambda g, self_shape, dim, start, end, step:
           aten.slice_backward(g, self_shape, dim, 0 if start is None else start,
                               9223372036854775807 if end is None else end, step))


@op("slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor",
    shape=lambda grad_output, input_sizes, *_: (input_sizes, grad_output._array.dtype))
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    made = np.zeros(input_sizes, grad_output.dtype)
    made[(slice(None),) * normal_dim(dim, made.ndim) + (slice(start, end, step),)] = grad_output
    return made


slice_backward.vjp(grad_output=lambda g, dim, start, end, step: aten.slice(g, dim, start, end, step))


@composite("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)")
def narrow(self, dim, start, length):
    n = self._array.shape[normal_dim(dim, self._array.ndim)]
    begin = start + n if start < 0 else start
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if begin + length > n:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({n}).")
    return aten.slice(self, dim, begin, begin + length, 1)


@composite("split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]")
def split(self, split_size, dim):
    n = self._array.shape[normal_dim(dim, self._array.ndim)]
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0 and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    count = max(1, -(-n // split_size)) if split_size else 1
    return tuple([aten.narrow(self, dim, i * split_size, min(split_size, n - i * split_size)) for i in range(count)])


@composite("split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]")
def split_with_sizes(self, split_sizes, dim):
    n = self._array.shape[normal_dim(dim, self._array.ndim)]
    if sum(split_sizes) != n:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension "
                           f"{dim}), but got split_sizes={list(split_sizes)}")
    pieces, start = [], 0
    for size in split_sizes:
        pieces.append(aten.narrow(self, dim, start, size))
        start += size
    return tuple(pieces)


@composite("chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]")
def chunk(self, chunks, dim):
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = self._array.shape[normal_dim(dim, self._array.ndim)]
    return aten.split(self, max(1, -(-n // chunks)), dim)


@composite("unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]")
def unbind(self, dim):
    return tuple([aten.select(self, dim, i) for i in range(self._array.shape[normal_dim(dim, self._array.ndim)])])


@op("as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)")
def as_strided(self, size, stride, storage_offset):
    owner = owner_of(self)
    item = self.itemsize
    offset = self.__array_interface__["data"][0] - owner.__array_interface__["data"][0] \
        if storage_offset is None else storage_offset * item
    reach = offset + sum((n - 1) * s * item for n, s in zip(size, stride, strict=True)) + item
    if math.prod(size) and reach > owner.nbytes:
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset // item}, and "
                           f"itemsize {item} requiring a storage size of {reach} are out of bounds for storage of size "
                           f"{owner.nbytes}")
    start = owner.view(np.uint8).reshape(-1)[offset:offset + item].view(self.dtype) if owner.flags.c_contiguous \
        else owner.reshape(-1)[:1]
    return np_as_strided(start, size, [s * item for s in stride])


