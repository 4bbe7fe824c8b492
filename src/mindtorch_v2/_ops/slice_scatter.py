"""A copy with one part replaced: select_scatter, slice_scatter, diagonal_scatter; fill_diagonal_."""

from __future__ import annotations

from .._dispatch.registry import aten, composite, op
from ._common import home_of, like_first
from .copy import dense_copy
from .view_parts import diagonal_view
from .view_parts import select as _select
from .view_parts import slice_ as _slice


def _placed(made, part, src, name):
    """`made` with `src` written into its view `part`, whose shape must be the same."""
    if part.shape != src.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
                           f"slice size = {list(part.shape)}")
    if made.dtype != src.dtype:
        raise RuntimeError(f"{name}: expected src to have the dtype of self, {made.dtype}, but got {src.dtype}")
    part[...] = src
    return made


def _zeros(g, shape):
    return aten.zeros(shape, dtype=g.dtype, device=home_of(g))


@op("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", shape=like_first,
    samples=lambda make: [(make(3, 4), make(4), 0, 1)])
def select_scatter(self, src, dim, index):
    made = dense_copy(self)
    return _placed(made, _select.kernel(made, dim, index), src, "select_scatter")


select_scatter.vjp(self=lambda g, src_shape, dim, index: aten.select_scatter(g, _zeros(g, src_shape), dim, index),
                   src=lambda g, dim, index: aten.select(g, dim, index))


@op("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    shape=like_first, samples=lambda make: [(make(3, 4), make(2, 4), 0, 1, 3)])
def slice_scatter(self, src, dim, start, end, step):
    made = dense_copy(self)
    return _placed(made, _slice.kernel(made, dim, start, end, step), src, "slice_scatter")


slice_scatter.vjp(self=lambda g, src_shape, dim, start, end, step:
                  aten.slice_scatter(g, _zeros(g, src_shape), dim, start, end, step),
                  src=lambda g, dim, start, end, step: aten.slice(g, dim, start, end, step))


@op("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", shape=like_first,
    samples=lambda make: [(make(3, 4), make(3)), (make(3, 4), make(3), 1)])
def diagonal_scatter(self, src, offset, dim1, dim2):
    made = dense_copy(self)
    return _placed(made, diagonal_view(made, offset, dim1, dim2), src, "diagonal_scatter")


diagonal_scatter.vjp(self=lambda g, src_shape, offset, dim1, dim2:
                     aten.diagonal_scatter(g, _zeros(g, src_shape), offset, dim1, dim2),
                     src=lambda g, offset, dim1, dim2: aten.diagonal(g, offset, dim1, dim2))


@composite("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
           samples=lambda make: [(make(3, 4), 2.0), (make(7, 3), 2.0, True)])
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
