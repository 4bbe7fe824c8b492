"""A copy with one part replaced: select_scatter, slice_scatter, diagonal_scatter, as_strided_scatter; fill_diagonal_."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.layout import dense_copy
from ..._core.strides import memory_of, restride
from ..._core.tensor import Tensor
from ..._dispatch.errors import need_tensor
from ..._dispatch.facts import Batching, Layout, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, like_first, normal_dim
from ..creation.copy import copy_
from .view_parts import as_strided as _as_strided
from .view_parts import check_history_of_part, diagonal_view
from .view_parts import select as _select
from .view_parts import slice_ as _slice


def _same_strides(array):
    """A copy of the memory up to an array's last element, with the same view of it: strides and offset mean in it what they
    mean in the original. One whose elements share places is copied without gaps."""
    if not array.size or (not array.flags.writeable and 0 in array.strides):
        return dense_copy(array)
    memory, start = memory_of(array)
    item = array.itemsize
    first = start // item
    whole = np.ndarray((first + _reach(array.shape, [s // item for s in array.strides]),), array.dtype, memory).copy()
    return restride(whole[first:], array.shape, array.strides)


def _reach(shape, strides):
    """How far the elements of an array lie from its first one, the last of them included, where strides count elements."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0


def _placed(whole, part, src):
    """`whole` with `src` written into its view `part`, whose shape must be the same."""
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(part.shape)}"
        )
    copy_.kernel(part, src, False)
    return whole


def _zeros(g, shape):
    return aten.zeros(shape, dtype=g.dtype, device=home_of(g))


@op(
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    shape=like_first,
    layout=Layout.NOTED,
    samples=lambda make: [(make(3, 4), make(4), 0, 1)],
    out=False,
)
def select_scatter(self, src, dim, index):
    """A copy of the tensor with `src` at one position of a dim.

    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    copy = _same_strides(self)
    return _placed(copy, _select.kernel(copy, dim, index), src)


select_scatter.vjp(
    self=lambda g, src_shape, dim, index: aten.select_scatter(g, _zeros(g, src_shape), dim, index),
    src=lambda g, dim, index: aten.select(g, dim, index),
)


@op(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    shape=like_first,
    layout=Layout.NOTED,
    samples=lambda make: [(make(3, 4), make(2, 4), 0, 1, 3)],
)
def slice_scatter(self, src, dim, start, end, step):
    """A copy of the tensor with `src` where `slice` would look.

    >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    if not self.ndim:
        normal_dim(dim, 0)
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    copy = _same_strides(self)
    return _placed(copy, _slice.kernel(copy, dim, start, end, step), src)


slice_scatter.vjp(
    self=lambda g, src_shape, dim, start, end, step: aten.slice_scatter(g, _zeros(g, src_shape), dim, start, end, step),
    src=lambda g, dim, start, end, step: aten.slice(g, dim, start, end, step),
)


@op(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    shape=like_first,
    layout=Layout.NOTED,
    samples=lambda make: [(make(3, 4), make(3)), (make(3, 4), make(3), 1)],
    out=False,
)
def diagonal_scatter(self, src, offset, dim1, dim2):
    """A copy of the tensor with `src` on its diagonal.

    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    copy = _same_strides(self)
    return _placed(copy, diagonal_view(copy, offset, dim1, dim2), src)


diagonal_scatter.vjp(
    self=lambda g, src_shape, offset, dim1, dim2: aten.diagonal_scatter(g, _zeros(g, src_shape), offset, dim1, dim2),
    src=lambda g, offset, dim1, dim2: aten.diagonal(g, offset, dim1, dim2),
)


# ---------------------------------------------------------------- any part of the memory


@op(
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    shape=like_first,
    layout=Layout.NOTED,
    samples=lambda make: [(make(3, 4), make(2, 2), (2, 2), (4, 1)), (make(3, 4), make(2), (2,), (5,), 2)],
    batching=Batching.STRIDED,
    handwritten=Surface.BOTH,
    out=False,
)
def as_strided_scatter(self, src, size, stride, storage_offset):
    """A copy of the tensor with `src` put where `as_strided` would look.

    >>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    copy = _same_strides(self)
    return _placed(copy, _as_strided.kernel(copy, size, stride, storage_offset), src)


@as_strided_scatter.vjp
def _(g, self_shape, self_strides, self_dtype, src_shape, size, stride, storage_offset, needs):
    own = [s // self_dtype.itemsize for s in self_strides]
    # The gradient in memory laid out as the input's, from whose first element the part is counted.
    laid = aten.as_strided(aten.new_zeros(g, (_reach(self_shape, own),)), self_shape, own)
    aten.copy_(laid, g)
    return (
        aten.as_strided_scatter(laid, _zeros(g, src_shape), size, stride, storage_offset) if needs[0] else None,
        aten.clone(aten.as_strided(laid, size, stride, storage_offset)) if needs[1] else None,
    )


def as_strided_scatter_function(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` in the place of what `input.as_strided(size, stride, storage_offset)` shows."""
    need_tensor("as_strided_scatter", src, "src", 2)
    check_history_of_part(input, storage_offset, "as_strided_scatter", src)
    result: Tensor = aten.as_strided_scatter(input, src, size, stride, storage_offset)
    return result


# ---------------------------------------------------------------- diagonals in place


@composite(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    samples=lambda make: [(make(3, 4), 2.0), (make(7, 3), 2.0, True)],
)
def fill_diagonal_(self, fill_value, wrap):
    """Fill the diagonal over all dims; with `wrap` it starts anew below the square part of a tall matrix."""
    array = self._array
    if array.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if array.ndim > 2 and len(set(array.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    height, width = array.shape[:2]
    step = (sum(array.strides) // array.itemsize,)
    for first in range(0, height, width + 1) if wrap and array.ndim == 2 else (0,):
        rows = aten.slice(self, 0, first) if first else self
        aten.fill_(aten.as_strided(rows, (min(width, height - first),), step), fill_value)
    return self


METHODS = {"as_strided_scatter": as_strided_scatter_function}
FUNCTIONS = {"as_strided_scatter": as_strided_scatter_function}
