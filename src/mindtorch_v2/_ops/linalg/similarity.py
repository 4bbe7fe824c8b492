"""Cosine similarity and pairwise distance of two sets of vectors."""

from __future__ import annotations

import numpy as np

from ..._autograd.graph import without_history
from ..._core import dtype as dt
from ..._dispatch.registry import aten, composite
from ..pointwise.scalar_forms import add_number


@composite("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
def cosine_similarity(x1, x2, dim, eps):
    """The cosine of the angle between vectors along `dim`.

    >>> F.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    common = dt.promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.scalar_name}")
    a, b = x1._array, x2._array
    if x1.dtype is not common:
        x1 = aten.to(x1, dtype=common)
    if x2.dtype is not common:
        x2 = aten.to(x2, dtype=common)
    if a.shape != b.shape:
        whole = np.broadcast_shapes(a.shape, b.shape)
        x1, x2 = aten.expand(x1, whole), aten.expand(x2, whole)
    first = aten.clone(aten.linalg_vector_norm(x1, 2, (dim,), True))
    second = aten.clone(aten.linalg_vector_norm(x2, 2, (dim,), True))
    # Norms are clamped away from 0 outside of autograd: the gradient is that of the plain quotient.
    without_history(aten.clamp_min_, (first, eps), {})
    without_history(aten.clamp_min_, (second, eps), {})
    left, right = aten.div(x1, first), aten.div(x2, second)
    return aten.sum(aten.mul(left, right), (dim,))


@composite("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor")
def pairwise_distance(x1, x2, p, eps, keepdim):
    """The p-norm of the difference of vectors along the last dim.

    >>> F.pairwise_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    return aten.norm(add_number(aten.sub(x1, x2), eps), p, (-1,), keepdim)
