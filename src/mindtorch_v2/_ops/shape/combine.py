"""Products of sets and of matrices: combinations, diagonal blocks, Kronecker's product, and flat buffers of many tensors."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import itertools

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Surface
from ..._dispatch.promotion import rank
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of
from .join import common, variadic


@composite(
    "cartesian_prod(Tensor[] tensors) -> Tensor", samples=lambda make: [([make(3), make(2)],)], handwritten=Surface.FUNCTION
)
def cartesian_prod(tensors):
    """All combinations of one element of each tensor.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([8, 9]))
    tensor([[1, 8],
            [1, 9],
            [2, 8],
            [2, 9]])
    """
    for t in tensors:
        if t._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return aten.stack([aten.flatten(t) for t in aten.meshgrid(tensors, indexing="ij")], 1)


@composite(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    samples=lambda make: [(make(4),), (make(3), 2, True)],
)
def combinations(self, r, with_replacement):
    """All choices of `r` elements, in order.

    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if self._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return aten.empty((0,), dtype=self.dtype, device=home_of(self))
    n = self._array.size
    grids = aten.meshgrid([self] * r, indexing="ij")
    places = aten.meshgrid([aten.arange(n, device=home_of(self))] * r, indexing="ij")
    chosen = aten.full((n,) * r, True, dtype=dt.bool_, device=home_of(self))
    for first, second in itertools.pairwise(places):
        chosen = aten.mul_(chosen, aten.le(first, second) if with_replacement else aten.lt(first, second))
    return aten.stack([aten.masked_select(grid, chosen) for grid in grids], 1)


def _as_matrix(array):
    return array if array.ndim == 2 else array.reshape(1, -1)


def _block_shape(tensors):
    shapes = [_as_matrix(t._array).shape for t in tensors]
    return (sum(s[0] for s in shapes), sum(s[1] for s in shapes)), dt.result_type(*map(rank, tensors)).np


@op(
    "block_diag(Tensor[] tensors) -> Tensor",
    shape=_block_shape,
    samples=lambda make: [([make(2, 2), make(1, 3), make(2)],)],
    handwritten=Surface.FUNCTION,
    out=False,
)
def block_diag(tensors):
    """Matrices along the diagonal of a larger one.

    >>> torch.block_diag(torch.tensor([[1]]), torch.tensor([[2, 3]]))
    tensor([[1, 0, 0],
            [0, 2, 3]])
    """
    for position, array in enumerate(tensors):
        if array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {array.ndim} dimensions"
            )
    if not tensors:
        return np.zeros((1, 0), dt.get_default_dtype().np)
    blocks = [_as_matrix(array) for array in common(tensors)]
    matrix = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    row = column = 0
    for block in blocks:
        height, width = block.shape
        matrix[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return matrix


def _block_grads(g, shapes):
    grads, row, column = [], 0, 0
    for shape in shapes:
        height, width = shape if len(shape) == 2 else (1, *shape) if shape else (1, 1)
        part = aten.slice(aten.slice(g, 0, row, row + height), 1, column, column + width)
        if len(shape) == 1:
            part = aten.squeeze(part, 0)
        elif not shape:
            part = aten.squeeze(part)
        grads.append(part)
        row, column = row + height, column + width
    return grads


block_diag.vjp(tensors=lambda g, tensors_shape: _block_grads(g, tensors_shape))


@composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    samples=lambda make: [(make(2, 3), make(2, 2)), (make(3), make(2, 2))],
    out=True,
)
def kron(self, other):
    """The Kronecker product: each element times the whole other tensor.

    >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    ndim = max(self._array.ndim, other._array.ndim)
    own, its = ((1,) * (ndim - t._array.ndim) + t._array.shape for t in (self, other))
    spread = aten.mul(
        aten._unsafe_view(self, [n for size in own for n in (size, 1)]),
        aten._unsafe_view(other, [n for size in its for n in (1, size)]),
    )
    return aten._unsafe_view(spread, [a * b for a, b in zip(own, its, strict=True)])


@composite(
    "flatten_dense_tensors(Tensor[] tensors) -> Tensor",
    surface=Surface.NONE,
    samples=lambda make: [([make(3, 4), make(5)],), ([make(2)],)],
)
def flatten_dense_tensors(tensors):
    """The elements of all tensors in one.

    >>> torch.ops.aten.flatten_dense_tensors([torch.ones(2, 1), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    return aten.cat([aten.reshape(each, (-1,)) for each in tensors])


@composite(
    "unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
    surface=Surface.NONE,
    samples=lambda make: [(make(17), [make(3, 4), make(5)])],
)
def unflatten_dense_tensors(flat, tensors):
    """The parts of a flat tensor, shaped like `tensors`.

    >>> torch.ops.aten.unflatten_dense_tensors(torch.arange(3.0), [torch.ones(2, 1), torch.zeros(1)])
    [tensor([[0.],
            [1.]]), tensor([2.])]
    """
    parts, start = [], 0
    for tensor in tensors:
        count = tensor.numel()
        parts.append(aten.reshape(aten.narrow(flat, 0, start, count), tuple(tensor.shape)))
        start += count
    return parts


FUNCTIONS = {
    "cartesian_prod": variadic("cartesian_prod", lambda tensors: aten.cartesian_prod(tensors)),
    "block_diag": variadic("block_diag", lambda tensors: aten.block_diag(tensors)),
}
