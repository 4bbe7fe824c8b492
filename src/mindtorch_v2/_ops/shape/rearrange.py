"""Rearranging elements into new memory: repeat, roll, flip, triangles, diagonals."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import META
from ..._core.layout import dense_copy, like_image
from ..._core.memory_format import contiguous_format
from ..._core.strides import restride
from ..._dispatch.errors import depends_on_values
from ..._dispatch.facts import Autocast, Batching, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import existing_dim, home_of, like_first, no_kernel, normal_dim, normal_dims, np_dtype
from .._support.flops import per_element
from .view import contiguous
from .view_parts import diagonal_view

_INT64 = np.dtype(np.int64)

# ---------------------------------------------------------------- repeating


def _repeated_shape(shape, repeats):
    lead = len(repeats) - len(shape)
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    whole = [n * r for n, r in zip((1,) * lead + tuple(shape), repeats, strict=True)]
    for n in whole:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {whole}")
    return whole


@op(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    shape=lambda self, repeats: (_repeated_shape(self._array.shape, repeats), self._array.dtype),
    samples=lambda make: [(make(3, 4), (2, 3)), (make(3), (2, 1, 2))],
    surface=Surface.METHOD,
)
def repeat(self, repeats):
    """Copies the tensor side by side along each dim.

    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    whole = _repeated_shape(self.shape, repeats)
    if self.size == 0 or 0 in repeats:
        return np.empty(whole, self.dtype)
    lead = len(repeats) - self.ndim
    # Every dim is preceded by one that goes nowhere: (r0, n0, r1, n1, ...). Seen as a whole it is the repeated array.
    shape, strides = [], []
    for r, n, stride in zip(repeats, (1,) * lead + self.shape, (0,) * lead + self.strides, strict=True):
        shape += [r, n]
        strides += [0, stride]
    return restride(self, shape, strides).copy("C").reshape(whole)


def _repeat_grad(g, self_shape, repeats):
    if 0 in repeats:
        return aten.zeros(self_shape, dtype=g.dtype, device=home_of(g))
    lead = len(repeats) - len(self_shape)
    shape, dims = [], []
    for i, r in enumerate(repeats):
        if i < lead or r != 1:
            dims.append(len(shape))
            shape.append(r)
        if i >= lead:
            shape.append(self_shape[i - lead])
    g = aten.reshape(g, shape)
    return aten.sum(g, dims) if dims else g


repeat.vjp(self=_repeat_grad)


@composite("tile(Tensor self, int[] dims) -> Tensor", samples=lambda make: [(make(3, 4), (2,)), (make(3), (2, 2))])
def tile(self, dims):
    """Copies the tensor side by side along its last dims.

    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    return aten.repeat(self, (1,) * (self._array.ndim - len(dims)) + tuple(dims))


def _interleaved_shape(repeats, output_size):
    if output_size is None:
        raise depends_on_values(RuntimeError("cannot repeat_interleave a meta tensor without output_size"))
    return (output_size,), repeats._array.dtype


@op(
    "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
    nondiff=True,
    shape=_interleaved_shape,
    samples=lambda make: [(make.ints(4, 3),)],
    out=False,
)
def repeat_interleave_indices(repeats, output_size):
    """Repeats each element along `dim`.

    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (_INT64, np.int32):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    indices = np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)
    if output_size is not None and output_size != indices.size:
        raise RuntimeError(
            f"allocated size does not match required size: output_size={output_size} but the repeats add up to {indices.size}"
        )
    return indices


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    samples=lambda make: [(make(3, 4), make.ints(3, 3), 0)],
)
def repeat_interleave_tensor(self, repeats, dim, output_size):
    if dim is None:
        self, dim = aten.flatten(self), 0
    n = self._array.shape[normal_dim(dim, self._array.ndim)] if self._array.ndim else 1
    counts = repeats._array
    if counts.ndim == 0 or (counts.ndim == 1 and counts.size == 1 and n != 1):
        repeats = aten.expand(aten.reshape(repeats, (1,)), (n,))
    elif counts.ndim != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    elif counts.size != n:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{counts.size} and input.size({dim}) = {n}"
        )
    indices = aten.repeat_interleave(repeats, output_size=output_size)
    return aten.index_select(self, dim, aten.to(indices, device=self.device) if self._keys & META else indices)


@composite(
    "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
    samples=lambda make: [(make(3, 4), 2), (make(3, 4), 2, 1)],
)
def repeat_interleave(self, repeats, dim, output_size):
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        self, dim = aten.flatten(self), 0
    elif not self._array.ndim:
        normal_dim(1 if dim in (0, -1) else dim, 0)  # torch looks for the dim behind it
    shape = self._array.shape
    dim = normal_dim(dim, len(shape))
    if output_size is not None and output_size != shape[dim] * repeats:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {shape[dim] * repeats}, got {output_size}")
    spread = aten.expand(aten.unsqueeze(self, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    return aten.flatten(aten.clone(spread, memory_format=contiguous_format), dim, dim + 1)


# ---------------------------------------------------------------- turning


def _roll_one(array, shift, dim):
    n = array.shape[dim]
    shift = shift % n if n else 0
    if not shift:
        return array
    lead = (slice(None),) * dim
    return np.concatenate((array[(*lead, slice(n - shift, None))], array[(*lead, slice(None, n - shift))]), dim)


@op(
    "roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), 1, 0), (make(3, 4), 2), (make(3, 4), (1, -1), (0, 1))],
    batching=Batching.ALONG_DIM,
    out=False,
)
def roll(self, shifts, dims):
    """Shifts elements along dims; what falls off one end comes back at the other.

    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if not dims and len(shifts) == 1:
        return np.array(_roll_one(self.reshape(-1), shifts[0], 0)).reshape(self.shape)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    rolled = self
    for shift, dim in zip(shifts, dims, strict=True) if self.size else ():
        rolled = _roll_one(rolled, shift, existing_dim(dim, self.ndim))
    return like_image(self.copy() if rolled is self else rolled, self)


roll.vjp(self=lambda g, shifts, dims: aten.roll(g, [-n for n in shifts], dims))


def _flipped(array, dims):
    """A view with some dims backwards."""
    key = [slice(None)] * array.ndim
    for d in dims:
        key[d] = slice(None, None, -1)
    return array[tuple(key)]


@op(
    "flip(Tensor self, int[] dims) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), (0,)), (make(3, 4), (0, 1))],
    batching=Batching.ALONG_DIM,
    out=False,
)
def flip(self, dims):
    """Turns the order around along the given dims.

    >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    return dense_copy(_flipped(self, normal_dims(dims, self.ndim)) if len(dims) else self)


flip.vjp(self=lambda g, dims: aten.flip(g, dims))


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(self):
    """Turns columns around.

    >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if self._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return aten.flip(self, (1,))


@composite("flipud(Tensor self) -> Tensor")
def flipud(self):
    """Turns rows around.

    >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if self._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return aten.flip(self, (0,))


def _rot90_shape(self, k, dims):
    shape = list(self._array.shape)
    first, second = _rotation_dims(len(shape), dims)
    if k % 2:
        shape[first], shape[second] = shape[second], shape[first]
    return shape, self._array.dtype


def _rotation_dims(ndim, dims):
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = (normal_dim(d, ndim) for d in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return first, second


@op(
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    shape=_rot90_shape,
    samples=lambda make: [(make(3, 4), k) for k in range(4)],
    out=False,
)
def rot90(self, k, dims):
    """Turns the plane of two dims by 90 degrees, `k` times.

    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    first, second = _rotation_dims(self.ndim, dims)
    turns = k % 4
    if turns == 0:
        return self.copy()
    if turns == 2:
        return dense_copy(_flipped(self, (first, second)))
    return dense_copy(_flipped(self, (second if turns == 1 else first,))).swapaxes(first, second)


rot90.vjp(self=lambda g, k, dims: aten.rot90(g, -k, dims))

# ---------------------------------------------------------------- triangles


def _triangle(name, lower, docs):
    @op(
        f"{name}(Tensor self, int diagonal=0) -> Tensor",
        inplace=True,
        shape=like_first,
        samples=lambda make: [(make(3, 4),), (make(2, 3, 3), 1)],
        batching=Batching.LAST_DIMS,
        doc=docs[name],
    )
    def triangle(self, diagonal, out=None):
        if self.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        rows, columns = self.shape[-2:]
        below = np.tri(rows, columns, diagonal if lower else diagonal - 1, np.bool_)
        if out is not None:
            np.copyto(out, out.dtype.type(0), where=~below if lower else below)
            return out
        result = np.zeros(self.shape, self.dtype)
        np.copyto(result, self, where=below if lower else ~below)
        return result

    triangle.vjp(self=lambda g, diagonal: getattr(aten, name)(g, diagonal))

    def inside(row, col, offset):
        below = np.tri(row, col, offset if lower else offset - 1, np.bool_)
        return below if lower else ~below

    def indices_dtype(dtype):
        return _INT64 if dtype in (None, "int64") else np_dtype(dtype)

    @op(
        f"{name}_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
        nondiff=True,
        samples=lambda make: [(3, 4), (3, 4, 1)],
        shape=lambda row, col, offset, dtype, *_: ((2, int(inside(row, col, offset).sum())), indices_dtype(dtype)),
        host_made=True,
        doc=docs[f"{name}_indices"],
        out=False,
    )
    def indices(row, col, offset, dtype, layout, device, pin_memory):
        if row < 0 or col < 0:
            raise RuntimeError(f"{'row' if row < 0 else 'col'} must be non-negative, got{row if row < 0 else col}")
        return np.array(inside(row, col, offset).nonzero()).astype(indices_dtype(dtype), copy=False)


_triangle(
    "tril",
    True,
    docs={
        "tril": """The lower triangle of a matrix, zeros elsewhere.

        >>> torch.tril(torch.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
        """,
        "tril_indices": """The positions of the lower triangle of a matrix.

        >>> torch.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
        """,
    },
)
_triangle(
    "triu",
    False,
    docs={
        "triu_indices": """The positions of the upper triangle of a matrix.

        >>> torch.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
        """,
        "triu": """The upper triangle of a matrix, zeros elsewhere.

        >>> torch.triu(torch.ones(2, 2))
        tensor([[1., 1.],
                [0., 1.]])
        """,
    },
)

# ---------------------------------------------------------------- diagonals


@composite("diag(Tensor self, int diagonal=0) -> Tensor", samples=lambda make: [(make(3),), (make(3, 4), 1)], out=True)
def diag(self, diagonal):
    """The diagonal of a matrix, or a matrix with the given diagonal.

    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    ndim = self._array.ndim
    if ndim == 1:
        return aten.diag_embed(self, diagonal)
    if ndim == 2:
        return aten.diagonal_copy(self, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")


composite(
    "diagflat(Tensor self, int offset=0) -> Tensor",
    lambda self, offset: aten.diag(aten.view(contiguous(self), (-1,)), offset),
    doc="""A matrix with all elements on its diagonal.

    >>> torch.diagflat(torch.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """,
)


def _embedded(shape, offset, dim1, dim2):
    """(shape of the matrix, dim1, dim2 from the front) of a diag_embed."""
    ndim = len(shape) + 1
    first, second = normal_dim(dim1, ndim), normal_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = shape[-1] + abs(offset)
    whole = list(shape[:-1])
    for d in sorted((first, second)):
        whole.insert(d, n)
    return whole, first, second


@op(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    shape=lambda self, offset, dim1, dim2: (_embedded(self._array.shape, offset, dim1, dim2)[0], self._array.dtype),
    samples=lambda make: [(make(3),), (make(2, 3), 1, 0, 2)],
    out=False,
)
def diag_embed(self, offset, dim1, dim2):
    """Matrices whose diagonals are the last dim of the input.

    >>> torch.diag_embed(torch.tensor([[1, 2]]))
    tensor([[[1, 0],
             [0, 2]]])
    """
    whole, first, second = _embedded(self.shape, offset, dim1, dim2)
    matrices = np.zeros(whole, self.dtype)
    diagonal_view(matrices, offset, first, second)[...] = self
    return matrices


diag_embed.vjp(self=lambda g, offset, dim1, dim2: aten.diagonal(g, offset, dim1, dim2))


@op(
    "trace(Tensor self) -> Tensor",
    shape=lambda self: ((), _trace_dtype(self._array)),
    autocast=Autocast.FLOAT32,
    flops=per_element(1),
    out=False,
)
def trace(self):
    """The sum of the diagonal of a matrix.

    >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if self.dtype.kind == "b":
        raise no_kernel("trace", self)
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    return np.add.reduce(self.diagonal(), dtype=_trace_dtype(self))


def _trace_dtype(array):
    return _INT64 if array.dtype.kind in "iub" else array.dtype


trace.vjp(self=lambda g, self_shape: aten.trace_backward(g, self_shape))


@op(
    "trace_backward(Tensor grad, int[] sizes) -> Tensor",
    samples=lambda make: [(make(), (3, 4))],
    shape=lambda grad, sizes: (tuple(sizes), grad._array.dtype),
)
def trace_backward(grad, sizes):
    grad_input = np.zeros(sizes, grad.dtype)
    diagonal_view(grad_input, 0, 0, 1)[...] = grad
    return grad_input


trace_backward.vjp(grad=lambda g: aten.trace(g))


@composite(
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    samples=lambda make: [(make(3),), (make(3), 2, True)],
    doc="""The matrix of powers of the elements, highest first unless `increasing`.

    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """,
)
def vander(x, N, increasing):
    """The powers of each element, from the highest down (or from 0 up)."""
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._array.size if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    rows = x._array.shape[0]
    kind = dt.promote_types(x.dtype, dt.int64)
    parts = [aten.ones((rows, min(count, 1)), dtype=kind, device=home_of(x))]
    if count > 1:
        spread = aten.expand(aten.unsqueeze(x, 1), (rows, count - 1))
        parts.append(aten.cumprod(spread, 1, dtype=kind))
    powers = aten.cat(parts, 1)
    return powers if increasing else aten.flip(powers, (1,))
