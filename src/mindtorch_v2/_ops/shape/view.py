"""Views of all elements: the same memory in another shape or order of dims.

Kernels return NumPy views; the dispatcher ties storages together.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ..._core import dtype as dt
from ..._core.keys import CONJUGATED
from ..._core.memory_format import contiguous_format
from ..._core.strides import memory_of, restride, strided
from ..._dispatch.facts import Batching, Surface
from ..._dispatch.lazy_values import turned
from ..._dispatch.registry import aten, composite, op
from .._support.common import infer_size, normal_dim, normal_dims, scalar_name

# ---------------------------------------------------------------- reshaping


@op(
    "view(Tensor(a) self, int[] size) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), (2, 6)), (make(3, 4), (-1,))],
    batching=Batching.RESHAPE,
    surface=Surface.METHOD,
)
def view(self, size):
    """The same elements in another shape, or bits in another dtype, without a copy.

    >>> torch.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    if self.flags.c_contiguous:
        try:
            viewed = self.reshape(size)
        except (ValueError, TypeError):
            infer_size(size, self.size)
            raise
        # NumPy takes any negative number for "as many as are left"; torch only -1.
        if viewed.shape != size and min(size, default=0) < -1:
            infer_size(size, self.size)
        return viewed
    shape = infer_size(size, self.size)
    try:
        return self.reshape(shape, copy=False)
    except ValueError:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension "
            "spans across two contiguous subspaces). Use .reshape(...) instead."
        ) from None


view.vjp(self=lambda g, self_shape: aten.reshape(g, self_shape))
_view = view.call


@op(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    nondiff=True,
    samples=lambda make: [(make.ints(5, 3, 4), dt.float64), (make.ints(5, 3, 4), dt.int32)],
    batching=Batching.RESHAPE,
    surface=Surface.METHOD,
    shares_memory=True,
)
def view_dtype(self, dtype):
    wanted = dtype.np
    if wanted.itemsize != self.itemsize:
        names = f"{scalar_name(self)} as {dtype.scalar_name} (different element sizes)"
        if not self.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to view {names}")
        if self.strides[-1] != self.itemsize and self.size:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {names}, but got {self.strides[-1] // self.itemsize}")
        if self.base is not None and self.size and memory_of(self)[1] % wanted.itemsize:
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {wanted.itemsize // self.itemsize} to view {names}, but got "
                f"{memory_of(self)[1] // self.itemsize}"
            )
        if self.shape[-1] * self.itemsize % wanted.itemsize:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {wanted.itemsize // self.itemsize} to view {names},"
                f" but got {self.shape[-1]}"
            )
        for dim, step in enumerate(self.strides[:-1] if self.size else ()):
            if step % wanted.itemsize:
                raise RuntimeError(
                    f"self.stride({dim}) must be divisible by {wanted.itemsize // self.itemsize} to view {names}, but got "
                    f"{step // self.itemsize}"
                )
        if not self.size:  # NumPy asks for a stride of one element even here
            return self.reshape(-1).view(wanted).reshape(*self.shape[:-1], self.shape[-1] * self.itemsize // wanted.itemsize)
    return self.view(wanted)


@view_dtype.kernel_for("lazy")
def _view_dtype_of_lazy(self, dtype):
    if dtype is self.dtype:
        return turned(self, 0)
    which = "conjugate view tensors" if self._keys & CONJUGATED else "tensors with negative bit set"
    raise RuntimeError(f"torch.Tensor.view is not supported for {which} when converting to a different dtype.")


@op(
    "_unsafe_view(Tensor self, int[] size) -> Tensor",
    samples=lambda make: [(make(3, 4), (2, 6))],
    shares_memory=True,
    shape=lambda self, size: (infer_size(size, self._array.size), self._array.dtype),
    batching=Batching.RESHAPE,
)
def unsafe_view(self, size):
    return self.reshape(infer_size(size, self.size))


unsafe_view.vjp(self=lambda g, self_shape: aten.reshape(g, self_shape))


@op(
    "_reshape_alias(Tensor(a) self, int[] size, int[] stride) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), (2, 6), (6, 1))],
    batching=Batching.RESHAPE,
)
def reshape_alias(self, size, stride):
    wanted = _in_bytes(stride if stride.__class__ is tuple else tuple(stride), self.itemsize)
    try:
        viewed = self.reshape(size, copy=False)
    except ValueError:
        return _realias(self, size, wanted)
    # The size and strides that reshape() passes are those of NumPy's own reshape, which needs no search for the memory.
    return viewed if viewed.strides == wanted else _realias(self, size, wanted)


def _realias(array, size, steps):
    memory, start = memory_of(array)
    return strided(memory, array.dtype, size, steps, start)


@lru_cache(maxsize=4096)
def _in_bytes(strides, itemsize):
    return tuple([s * itemsize for s in strides])


@lru_cache(maxsize=4096)
def _in_elements(strides, itemsize):
    return tuple([s // itemsize for s in strides])


reshape_alias.vjp(self=lambda g, self_shape: aten.reshape(g, self_shape))
_reshape_alias = reshape_alias.call


def _reshaped(self, shape):
    """What reshape and flatten do: a view where one exists, else a copy."""
    array = self._array
    if array.flags.c_contiguous:
        return _view(self, size=shape)
    try:
        viewed = array.reshape(shape, copy=False)
    except (ValueError, TypeError):
        shape = infer_size(shape, array.size)
        return aten._unsafe_view(aten.clone(self, memory_format=contiguous_format), shape)
    resolved = viewed.shape
    # NumPy takes any negative number for "as many as are left"; torch only -1.
    if resolved != shape and min(shape, default=0) < -1:
        infer_size(shape, array.size)
    return _reshape_alias(self, resolved, _in_elements(viewed.strides, array.itemsize))


composite(
    "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
    _reshaped,
    samples=lambda make: [(make(3, 4), (2, 6)), (make(3, 4), (-1,))],
    batching=Batching.RESHAPE,
    doc="""The same elements in another shape: a view if possible, else a copy; -1 is worked out.

    >>> torch.reshape(torch.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """,
)
composite(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.reshape(self, other._array.shape),
    samples=lambda make: [(make(3, 4), make(2, 6))],
    surface=Surface.METHOD,
    doc="""The same elements in the shape of another tensor.

    >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """,
)
composite(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.view(self, other._array.shape),
    samples=lambda make: [(make(3, 4), make(2, 6))],
    surface=Surface.METHOD,
    doc="""The same elements in the shape of another tensor, without a copy.

    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """,
)
composite(
    "ravel(Tensor(a) self) -> Tensor(a)",
    lambda self: _view(contiguous(self), (-1,)),
    doc="""All elements in one dim: a view if possible, else a copy.

    >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """,
)


def contiguous(self):
    """The tensor itself where its elements lie in order, else a copy in which they do."""
    return self if self._array.flags.c_contiguous else aten.contiguous(self)


@composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(self, start_dim, end_dim):
    """Merges the dims from `start_dim` to `end_dim` into one.

    >>> torch.flatten(torch.zeros(2, 3, 4), start_dim=1).shape
    torch.Size([2, 12])
    """
    shape = self._array.shape
    ndim = len(shape)
    start = start_dim if start_dim >= 0 else start_dim + ndim
    end = end_dim if end_dim >= 0 else end_dim + ndim
    if not 0 <= start <= end < ndim:
        start, end = normal_dim(start_dim, ndim), normal_dim(end_dim, ndim)
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        return _reshaped(self, (1,))  # what is left is a tensor without dims
    if start == end:
        return self
    return _reshaped(self, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


@composite("unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)", samples=lambda make: [(make(3, 4), 1, (2, -1))])
def unflatten(self, dim, sizes):
    """Splits a dim into several.

    >>> torch.unflatten(torch.zeros(4), 0, (2, 2)).shape
    torch.Size([2, 2])
    """
    shape = self._array.shape
    dim = normal_dim(dim, len(shape))
    if not shape:
        raise RuntimeError(f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions")
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known and shape[dim] % known == 0:
        sizes = tuple(shape[dim] // known if n == -1 else n for n in sizes)
    if -1 in sizes or math.prod(sizes) != shape[dim]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({shape[dim]}) in the input tensor"
        )
    return _view(self, (*shape[:dim], *sizes, *shape[dim + 1 :]))


alias = op(
    "alias(Tensor(a) self) -> Tensor(a)",
    lambda self: self.view(),
    batching=Batching.POINTWISE,
    doc="""A view of the whole tensor.

    >>> torch.ops.aten.alias(torch.tensor([1, 2]))
    tensor([1, 2])
    """,
)
alias.vjp(self=lambda g: g)

# ---------------------------------------------------------------- dims of size one


@op("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", samples=lambda make: [(make(3, 4), 1), (make(3, 4), -1)])
def unsqueeze(self, dim):
    """A view with a new dim of size 1.

    >>> torch.unsqueeze(torch.tensor([1, 2]), 1)
    tensor([[1],
            [2]])
    """
    shape = self.shape
    ndim = len(shape)
    if dim < 0:
        dim += ndim + 1
    if not 0 <= dim <= ndim:
        normal_dim(dim if dim > ndim else dim - ndim - 1, ndim + 1)
    if self.flags.c_contiguous:
        return self.reshape((1, *shape) if dim == 0 else (*shape[:dim], 1, *shape[dim:]))
    # The stride of a dim of size one is never taken; torch has that of the dim it stands before.
    strides = self.strides
    step = shape[dim] * strides[dim] if dim < ndim else self.itemsize
    return restride(self, (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]))


unsqueeze.vjp(self=lambda g, dim: aten.squeeze(g, dim))


@op("squeeze(Tensor(a) self) -> Tensor(a)", samples=lambda make: [(make(3, 1, 4),)], batching=Batching.ALONG_DIM)
def squeeze(self):
    """A view without the dims of size 1, or without those named.

    >>> torch.squeeze(torch.zeros(1, 3, 1)).shape
    torch.Size([3])
    """
    return self.squeeze()


squeeze.vjp(self=lambda g, self_shape: unsqueeze_to(g, self_shape, range(len(self_shape))))


@op(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    node="SqueezeBackward1",
    samples=lambda make: [(make(3, 1, 4), 1), (make(3, 4), 0)],
    batching=Batching.ALONG_DIM,
)
def squeeze_dim(self, dim):
    shape = self.shape
    if not shape:
        normal_dim(dim, 0)
        return self.view()
    if not -len(shape) <= dim < len(shape):
        normal_dim(dim, len(shape))
    return self.squeeze(dim) if shape[dim] == 1 else self.view()


squeeze_dim.vjp(self=lambda g, self_shape, dim: unsqueeze_to(g, self_shape, normal_dims((dim,), len(self_shape))))


@op(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    node="SqueezeBackward2",
    samples=lambda make: [(make(3, 1, 4, 1), (1, 0))],
    batching=Batching.ALONG_DIM,
)
def squeeze_dims(self, dim):
    return self.squeeze(tuple([d for d in _listed_dims(dim, self.ndim) if self.shape[d] == 1]))


def _listed_dims(dims, ndim):
    """The dims of a list, in which an empty one means none."""
    return normal_dims(dims, ndim) if len(dims) else ()


squeeze_dims.vjp(self=lambda g, self_shape, dim: unsqueeze_to(g, self_shape, _listed_dims(dim, len(self_shape))))


def unsqueeze_to(g, shape, dims):
    """A gradient with the dims of size one back that were squeezed."""
    for d in sorted(dims):
        if shape[d] == 1:
            g = aten.unsqueeze(g, d)
    return g


# ---------------------------------------------------------------- repeating without a copy


@lru_cache(maxsize=4096)
def _expansion(shape, strides, size):
    """(shape, byte strides, whether elements share places) of an array expanded to a size; None if that is its shape."""
    if shape == size:
        return None
    lead = len(size) - len(shape)
    wanted, steps = list(size), [0] * len(size)
    for i in reversed(range(len(shape))):  # the last dim that does not fit is the one to name
        have, step, want = shape[i], strides[i], size[lead + i]
        if want == have or want == -1:
            wanted[lead + i], steps[lead + i] = have, step
        elif have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at "
                f"non-singleton dimension {lead + i}.  Target sizes: {list(size)}.  Tensor sizes: "
                f"{list(shape)}"
            )
    for i, n in enumerate(wanted):
        if n < 0:
            raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}")
    if shape:
        # The stride of a new dim of size one is never taken; torch has that of the dim it stands before.
        for i in reversed(range(lead)):
            if wanted[i] == 1:
                steps[i] = wanted[i + 1] * steps[i + 1]
    shared = 0 not in wanted and any(step == 0 and n > 1 for n, step in zip(wanted, steps, strict=True))
    return tuple(wanted), tuple(steps), shared


@op(
    "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
    samples=lambda make: [(make(3, 1), (3, 4)), (make(4), (2, 3, -1))],
    surface=Surface.METHOD,
)
def expand(self, size, implicit):
    """A view in which dims of size 1 are repeated; -1 keeps a size.

    >>> torch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    if len(size) < self.ndim:
        raise RuntimeError(
            f"expand(torch.{scalar_name(self)}Tensor{{{list(self.shape)}}}, "
            f"size={list(size)}): the number of sizes provided ({len(size)}) must be greater or equal "
            f"to the number of dimensions in the tensor ({self.ndim})"
        )
    plan = _expansion(self.shape, self.strides, size if size.__class__ is tuple else tuple(size))
    if plan is None:
        return self.view()
    expanded = restride(self, plan[0], plan[1])
    if plan[2]:
        # Several elements are one place in memory, so that writing to them has no meaning.
        expanded.setflags(False)
    return expanded


def _expand_grad(g, self_shape):
    shape = g._array.shape
    lead = len(shape) - len(self_shape)
    dims = [*range(lead), *[i + lead for i, n in enumerate(self_shape) if n == 1 and shape[i + lead] != 1]]
    if dims:
        g = aten.sum(g, dims, True)
    return aten.view(g, self_shape) if lead else g


expand.vjp(self=_expand_grad)

composite(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    lambda self, other: aten.expand(self, other._array.shape),
    samples=lambda make: [(make(3, 1), make(3, 4))],
    surface=Surface.METHOD,
    doc="""A view expanded to the shape of another tensor.

    >>> torch.tensor([1]).expand_as(torch.zeros(3))
    tensor([1, 1, 1])
    """,
)
composite(
    "broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)",
    lambda self, size: aten.expand(self, size),
    samples=lambda make: [(make(4), (3, 4))],
    doc="""A view expanded to a shape: dims of size 1 repeat.

    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """,
)
