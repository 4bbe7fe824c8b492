"""Distances between tensors, between the rows of two, and between the rows of one."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.errors import broadcast_mismatch
from ..._dispatch.facts import Autocast, Batching, Layout, Promotion, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import no_kernel, scalar_name, unexpected_dtype
from .._support.elementwise import need_real
from .._support.flops import per_element
from .._support.half import in_float32, is_narrow
from .vector_norm import norm_grad

# ---------------------------------------------------------------- between two tensors


@op(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    promote=Promotion.SAME,
    tensors_only=True,
    promoted=("self", "other"),
    shape=lambda self, other, p: ((), dt.from_numpy(self._array.dtype).to_real().np),
    samples=lambda make: [(make(3, 4), make(3, 4)), (make(3, 4), make(4), 3)],
    batching=Batching.BY_SAMPLE,
    flops=per_element(2),
    out=False,
)
def dist(self, other, p):
    """The p-norm of the difference of two tensors.

    >>> torch.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if self.dtype.kind in "iub":
        _refuse_integers(self.dtype)
    size = np.abs(np.subtract(self, other)).reshape(-1)
    if not size.size and (p < 0 or math.isinf(p)):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {float(p):g} norm on an empty tensor because the operation "
            "does not have an identity"
        )
    return _norm(size, p)


def _refuse_integers(kind):
    if kind.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {scalar_name(kind)} instead.")


@in_float32
def _norm(size, p):
    return np.asarray(np.minimum.reduce(size)) if p == -math.inf else _power_mean(size, p)


dist.vjp(
    self=lambda g, self, other, p, result: norm_grad(g, self - other, p, result, None, False),
    other=lambda g, self, other, p, result: _minus(norm_grad(g, self - other, p, result, None, False)),
)


def _minus(g):
    return None if g is None else -g


def _power_mean(size, p):
    """The p-norm over the last dim of absolute values."""
    if p == 2:
        return np.sqrt(np.add.reduce(np.multiply(size, size), -1))
    if p == 1:
        return np.asarray(np.add.reduce(size, -1))
    if p == 0:
        return np.asarray(np.add.reduce(size != 0, -1, size.dtype))
    if math.isinf(p):
        return np.asarray(np.maximum.reduce(size, -1, initial=0))
    return np.power(np.add.reduce(np.power(size, p), -1), 1.0 / p)


def _power_slope(difference, distance, p):
    """d distance / d difference, where the distance has a last dim of size 1; 0 at distance 0."""
    if p == 0:
        return np.zeros_like(difference)
    if p == 1:
        return np.sign(difference)
    size = np.abs(difference)
    if math.isinf(p):
        return np.sign(difference) * (size == distance)
    need_real("cdist_backward", distance)
    safe = np.where(distance == 0, np.ones((), distance.dtype), distance)
    if p == 2:
        slope = difference / safe
    elif p < 2:
        slope = np.sign(difference) * np.where(size == 0, 0, np.power(size, p - 1)) / np.power(safe, p - 1)
    else:
        slope = difference * np.power(size, p - 2) / np.power(safe, p - 1)
    return np.where(distance == 0, np.zeros((), slope.dtype), slope).astype(difference.dtype, copy=False)


# ---------------------------------------------------------------- between the rows of two

_EXACT_UP_TO = 25  # rows; beyond, torch computes euclidean distances by one matrix product, and so do we


def _check_cdist(x1, x2, p):
    for which, array in (("X1", x1), ("X2", x2)):
        if array.dtype.kind not in "fV":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {which} got: {scalar_name(array)}")
    if x1.ndim < 2 or x2.ndim < 2:
        which, array = ("X1", x1) if x1.ndim < 2 else ("X2", x2)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {array.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.shape[:-2] != x2.shape[:-2] and (words := broadcast_mismatch([x1.shape[:-2], x2.shape[:-2]])):
        raise RuntimeError(words)
    if x1.size and x2.size:
        if is_narrow(x1.dtype):
            raise no_kernel("cdist", x1)
        if x1.dtype != x2.dtype:
            raise unexpected_dtype(x1, x2)


def _cdist_shape(x1, x2, p, compute_mode):
    a, b = x1._array.shape, x2._array.shape
    return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-2]), x1._array.dtype


@op(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    layout=Layout.ROW_MAJOR,
    shape=_cdist_shape,
    node="CdistBackward0",
    samples=lambda make: [
        (make(3, 4), make(2, 4), 2.0, None),
        (make(2, 3, 4), make(2, 4), 1.5, None),
        (make(3, 4), make(2, 4), math.inf, None),
    ],
)
def cdist_forward(x1, x2, p, compute_mode):
    _check_cdist(x1, x2, p)
    many = x1.shape[-2] > _EXACT_UP_TO or x2.shape[-2] > _EXACT_UP_TO
    if p == 2 and (compute_mode == 1 or (compute_mode in (None, 0) and many)):
        squares = np.add.reduce(x1 * x1, -1)[..., :, None] + np.add.reduce(x2 * x2, -1)[..., None, :]
        squares -= 2 * np.matmul(x1, np.swapaxes(x2, -1, -2))
        return np.sqrt(np.maximum(squares, 0, out=squares), squares)
    return _power_mean(np.abs(x1[..., :, None, :] - x2[..., None, :, :]), p).astype(x1.dtype, copy=False)


def _transposed(t):
    return aten.contiguous(aten.mT(t))


def _cdist_x2_grad(g, x1, x2, p, result):
    distances = _transposed(result)
    return aten._cdist_backward(_transposed(g), x2, x1, p, distances)


cdist_forward.vjp(x1=lambda g, x1, x2, p, result: aten._cdist_backward(g, x1, x2, p, result), x2=_cdist_x2_grad)


@op(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    shape=lambda grad, x1, x2, p, cdist: (
        (*np.broadcast_shapes(x1._array.shape[:-2], x2._array.shape[:-2]), *x1._array.shape[-2:]),
        x1._array.dtype,
    ),
    samples=lambda make: [(make(26, 2), make(26, 3), make(2, 3), 2.0, make(26, 2))],  # so many have a derivative
)
def cdist_backward(grad, x1, x2, p, cdist):
    if p == 2:
        ratio = np.divide(grad, cdist, out=np.zeros_like(grad), where=cdist != 0)
        return np.add.reduce(ratio, -1)[..., None] * x1 - np.matmul(ratio, x2)
    slope = _power_slope(x1[..., :, None, :] - x2[..., None, :, :], cdist[..., None], p)
    return np.add.reduce(grad[..., None] * slope, -2)


_MANY_ROWS = 25
"""Above it torch takes Euclidean distances by a product, whose gradient has a derivative of its own."""


def _cdist_second(g, grad, x1, x2, p, cdist):
    """The factors of a second derivative: what is divided by distances, and the products of g with the differences."""
    if p != 2 or max(x1.size(-2), x2.size(-2)) <= _MANY_ROWS:
        raise NotImplementedError("the derivative for '_cdist_backward' is not implemented.")
    inverse = aten.masked_fill(1.0 / cdist, cdist == 0, 0)
    return inverse, (g * x1).sum(-1, True) - g @ aten.mT(x2)


cdist_backward.vjp(
    grad=lambda g, grad, x1, x2, p, cdist: math.prod(_cdist_second(g, grad, x1, x2, p, cdist)),
    x1=lambda g, grad, x1, x2, p, cdist: g * (grad * _cdist_second(g, grad, x1, x2, p, cdist)[0]).sum(-1, True),
    x2=lambda g, grad, x1, x2, p, cdist: -(aten.mT(grad * _cdist_second(g, grad, x1, x2, p, cdist)[0]) @ g),
    cdist=lambda g, grad, x1, x2, p, cdist: (
        -grad * math.prod(_cdist_second(g, grad, x1, x2, p, cdist)) * _cdist_second(g, grad, x1, x2, p, cdist)[0]
    ),
)


composite(
    "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
    lambda x1, x2, p, compute_mode: aten._cdist_forward(x1, x2, float(p), compute_mode),
    samples=lambda make: [(make(3, 4), make(2, 4))],
    autocast=Autocast.FLOAT32,
    doc="""The distance of every row of one matrix to every row of another.

    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """,
    handwritten=Surface.FUNCTION,
)

_MODES = {"use_mm_for_euclid_dist_if_necessary": 0, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


def cdist_function(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distance between each pair of the rows of two collections."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return aten.cdist(x1, x2, float(p), _MODES[compute_mode] or None)


# ---------------------------------------------------------------- between the rows of one


def _pairs(count):
    return np.triu_indices(count, 1)


@op(
    "_pdist_forward(Tensor self, float p=2) -> Tensor",
    node="PdistBackward0",
    samples=lambda make: [(make(3, 4),)],
    shape=lambda self, p: ((self._array.shape[0] * (self._array.shape[0] - 1) // 2,), self._array.dtype),
)
def pdist_forward(self, p):
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if self.dtype.kind not in "fV":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    i, j = _pairs(self.shape[0])
    return _power_mean(np.abs(self[i] - self[j]), p).astype(self.dtype, copy=False)


pdist_forward.vjp(self=lambda g, self, p, result: aten._pdist_backward(g, self, p, result))


@op(
    "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
    shape=lambda grad, self, p, pdist: (self._array.shape, self._array.dtype),
    samples=lambda make: [(make(3), make(3, 4), 2.0, make(3))],
)
def pdist_backward(grad, self, p, pdist):
    need_real("pdist_backward", grad)
    i, j = _pairs(self.shape[0])
    pull = grad[:, None] * _power_slope(self[i] - self[j], pdist[:, None], p)
    grad_self = np.zeros_like(self)
    np.add.at(grad_self, i, pull)
    np.subtract.at(grad_self, j, pull)
    return grad_self


composite(
    "pdist(Tensor self, float p=2) -> Tensor",
    lambda self, p: aten._pdist_forward(self, float(p)),
    doc="""The distances between all pairs of rows.

    >>> F.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([5.])
    """,
)

FUNCTIONS = {"cdist": cdist_function}
