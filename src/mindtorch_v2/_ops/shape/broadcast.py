"""Tensors brought to one shape: broadcasts and grids."""

from __future__ import annotations

import warnings

import numpy as np

from ..._core.size import Size
from ..._dispatch.errors import broadcast_mismatch
from ..._dispatch.facts import Surface
from ..._dispatch.registry import aten, composite
from .join import variadic


@composite(
    "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    samples=lambda make: [([make(3, 1), make(4)],)],
    handwritten=Surface.FUNCTION,
)
def broadcast_tensors(tensors):
    """All tensors expanded to their common shape.

    >>> [t.shape for t in torch.broadcast_tensors(torch.zeros(2, 1), torch.zeros(3))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    shapes = [t._array.shape for t in tensors]
    first = shapes[0] if shapes else ()
    if all(shape == first for shape in shapes):
        return tuple(tensors)
    problem = broadcast_mismatch(shapes)
    if problem:
        raise RuntimeError(problem)
    whole = np.broadcast_shapes(*shapes)
    return tuple([t if t._array.shape == whole else aten.expand(t, whole) for t in tensors])


def broadcast_shapes(*shapes):
    """The shape that all the shapes broadcast to."""
    tuples = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    if any(n < 0 for shape in tuples for n in shape):
        raise ValueError("Attempting to broadcast a dimension with negative length!")
    problem = broadcast_mismatch(tuples)
    if problem:
        raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
    return Size(np.broadcast_shapes(*tuples))


def _meshgrid(tensors, indexing):
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in ("ij", "xy"):
        raise RuntimeError('torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + str(indexing))
    for t in tensors:
        if t._array.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor with {t._array.ndim} dimensions"
            )
        if t._array.dtype != tensors[0]._array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    # The dim along which each tensor varies; "xy" has the first two the other way round.
    order = list(range(len(tensors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = [0] * len(order)
    for dim, t in zip(order, tensors, strict=True):
        shape[dim] = t._array.size
    return tuple(
        [
            aten.expand(aten.view(t, (1,) * dim + (t._array.size,) + (1,) * (len(order) - dim - 1)), shape)
            for dim, t in zip(order, tensors, strict=True)
        ]
    )


composite(
    "meshgrid(Tensor[] tensors) -> Tensor[]",
    lambda tensors: _meshgrid(tensors, "ij"),
    samples=lambda make: [([make(3), make(4)],)],
    doc="""Grids of coordinates from one tensor for each dim.

    >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
    (tensor([[1, 1],
            [2, 2]]), tensor([[3, 4],
            [3, 4]]))
    """,
    handwritten=Surface.FUNCTION,
)
composite(
    "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
    _meshgrid,
    samples=lambda make: [([make(3), make(4)], {"indexing": "xy"})],
    handwritten=Surface.FUNCTION,
)


def meshgrid(*tensors, indexing=None):
    """One tensor per input, each varying along a dim of its own; indexing is "ij" or "xy"."""
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        tensors = tensors[0]
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=2,
        )
        return aten.meshgrid(list(tensors))
    return aten.meshgrid(list(tensors), indexing=indexing)


FUNCTIONS = {
    "broadcast_tensors": variadic("broadcast_tensors", lambda tensors: aten.broadcast_tensors(tensors)),
    "broadcast_shapes": broadcast_shapes,
    "meshgrid": meshgrid,
}
