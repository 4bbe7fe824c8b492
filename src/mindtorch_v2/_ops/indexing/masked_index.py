"""Indexing without a check of bounds, where a mask says which positions count: `_unsafe_index`, `_unsafe_masked_index`."""

from __future__ import annotations

from ..._dispatch.registry import aten, composite

# The positions themselves are checked all the same: NumPy has no way to read beyond an array.


@composite(
    "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", samples=lambda make: [(make(3, 4), [make.ints(3, 5)])]
)
def unsafe_index(self, indices):
    return aten.index(self, indices)


unsafe_index.vjp(self=lambda g, self_shape, indices: aten._unsafe_index_put(aten.new_zeros(g, self_shape), indices, g, True))


@composite(
    "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    samples=lambda make: [(make(3, 4), [make.ints(3, 2)], make(2, 4), True)],
)
def unsafe_index_put(self, indices, values, accumulate):
    return aten.index_put(self, indices, values, accumulate)


unsafe_index_put.vjp(
    self=lambda g, indices, values, accumulate: (
        g if accumulate else aten._unsafe_index_put(g, indices, aten.zeros_like(values), False)
    ),
    values=lambda g, indices: aten._unsafe_index(g, indices),
)


def _inside(self, indices):
    """Indices with what lies outside of the tensor moved to its ends; the mask leaves it out later."""
    return [
        None if index is None else aten.clamp(index, -n, n - 1) for index, n in zip(indices, self._array.shape, strict=False)
    ]


@composite(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    samples=lambda make: [(make(3, 4), make.bools(5), [make.ints(3, 5), make.ints(4, 5)], 0.5)],
)
def unsafe_masked_index(self, mask, indices, fill):
    """The elements at the indices where the mask is true, `fill` elsewhere: there the indices may be any numbers."""
    elements = aten._unsafe_index(self, _inside(self, indices))
    return aten.masked_fill(elements, aten.logical_not(mask), fill)


unsafe_masked_index.vjp(
    self=lambda g, self_shape, mask, indices: aten._unsafe_masked_index_put_accumulate(
        aten.new_zeros(g, self_shape), mask, indices, g
    )
)


@composite(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    samples=lambda make: [(make(3, 4), make.bools(5), [make.ints(3, 5), make.ints(4, 5)], make(5))],
)
def unsafe_masked_index_put_accumulate(self, mask, indices, values):
    """The values added at the indices where the mask is true."""
    kept = aten.masked_fill(values, aten.logical_not(mask), 0)
    return aten._unsafe_index_put(self, _inside(self, indices), kept, True)


unsafe_masked_index_put_accumulate.vjp(
    self=lambda g: g, values=lambda g, mask, indices: aten._unsafe_masked_index(g, mask, indices, 0)
)
