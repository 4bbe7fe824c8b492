"""Products with vectors, and sums of outer products; with a factor and an addend as BLAS has them."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Autocast, Batching, Layout, Overlap
from ..._dispatch.registry import aten, composite, op
from .._support.common import no_kernel, scalar_name
from .._support.flops import per_element
from .._support.out_rules import exactly
from ..pointwise.arithmetic import check_factor, conj, scaled
from .matmul import bmm_shape, check_bmm, has_dim, plus, product, sides, sum_orders


def _check_mv(self, vec, added=None):
    if not self.ndim and added is None:
        has_dim(self, 0)
    if self.ndim != 2 or vec.ndim != 1 or (added is not None and added.ndim > 1):
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {(vec if added is None else added).ndim}, {self.ndim}, {vec.ndim}"
        )
    if self.shape[1] != vec.shape[0] or (added is not None and added.size not in (1, self.shape[0])):
        if added is not None:
            has_dim(added, 0)
        rows = self.shape[0] if added is None else added.size
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({sides(self)}), vec ({vec.shape[0]})")
    first = vec if added is None else added
    if not first.dtype == self.dtype == vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {scalar_name(first)}, {scalar_name(self)}, "
            f"and {scalar_name(vec)}"
        )


def _mv_shape(self, vec):
    _check_mv(self._array, vec._array)
    return (self._array.shape[0],), self._array.dtype


@op(
    "mv(Tensor self, Tensor vec) -> Tensor",
    shape=_mv_shape,
    samples=lambda make: [(make(3, 4), make(4))],
    flops=lambda self, vec: 2 * self[0] * self[1],
    out_dtype=exactly(
        lambda want, have: (
            f"addmv input tensors must have the same dtype, but got {have.scalar_name}, {want.scalar_name}, "
            f"and {want.scalar_name}"
        )
    ),
)
def mv(self, vec):
    """The product of a matrix and a vector.

    >>> torch.mv(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
    tensor([3, 7])
    """
    _check_mv(self, vec)
    return product(self, vec, "addmv_impl_cpu")


mv.vjp(self=lambda g, vec: aten.ger(g, conj(vec)), vec=lambda g, self: aten.mv(aten.t(conj(self)), g))


def _check_dot(self, other):
    if self.ndim != 1 or other.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {other.ndim}D tensors")
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_name(self)} and {scalar_name(other)}"
        )
    if self.shape != other.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.shape[0]}] and src [{other.shape[0]}] to "
            f"have the same number of elements, but got {self.shape[0]} and {other.shape[0]} elements "
            "respectively"
        )


def _scalar_product(self, other):
    _check_dot(self, other)
    if self.dtype.kind == "b":  # even without elements
        raise no_kernel("dot", self)
    return product(self, other, "dot")


def _two_vectors(make):
    return [(make(4), make(4))]


def _dot_shape(self, other):
    _check_dot(self._array, other._array)
    return (), self._array.dtype


_scalar_product_into = exactly(
    lambda want, have: f"result dtype {have.scalar_name} does not match input dtype {want.scalar_name}"
)


@op(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    shape=_dot_shape,
    samples=_two_vectors,
    flops=lambda self, tensor: 2 * self[0],
    out_dtype=_scalar_product_into,
)
def dot(self, tensor):
    """The sum of the products of two vectors.

    >>> torch.dot(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor(11)
    """
    return _scalar_product(self, tensor)


dot.vjp(self=lambda g, tensor: g * conj(tensor), tensor=lambda g, self: g * conj(self))


@op(
    "vdot(Tensor self, Tensor other) -> Tensor",
    shape=_dot_shape,
    samples=_two_vectors,
    flops=per_element(2),
    out_dtype=_scalar_product_into,
)
def vdot(self, other):
    """The sum of the products of two vectors, the first one conjugated.

    >>> torch.vdot(torch.tensor([1 + 1j]), torch.tensor([1 + 1j]))
    tensor(2.+0.j)
    """
    return _scalar_product(np.conjugate(self) if self.dtype.kind == "c" else self, other)


vdot.vjp(self=lambda g, other: conj(g) * other, other=lambda g, self: g * self)


@op(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    deprecated=sum_orders("mat vec"),
    inplace=True,
    shape=lambda self, mat, vec, beta, alpha: _mv_shape(mat, vec),
    samples=lambda make: [(make(3), make(3, 4), make(4)), (make(1), make(3, 4), make(4), {"beta": 0.5, "alpha": 2})],
    batching=Batching.ADDED_PRODUCT,
    flops=lambda self, mat, *rest: int(2 * math.prod(mat)),
)
def addmv(self, mat, vec, beta, alpha):
    """`beta * input + alpha * mat @ vec`.

    >>> torch.addmv(torch.ones(2), torch.eye(2), torch.tensor([1.0, 2.0]))
    tensor([2., 3.])
    """
    _check_mv(mat, vec, self)
    # Of a product without elements torch does not look at alpha.
    return plus(self, product(mat, vec, "addmv_impl_cpu"), beta, alpha if mat.size else 1)


addmv.vjp(
    self=lambda g, beta: scaled(g, beta),
    mat=lambda g, vec, alpha: scaled(aten.ger(g, conj(vec)), alpha),
    vec=lambda g, mat, alpha: scaled(aten.mv(aten.t(conj(mat)), g), alpha),
)


def _widest(*arrays):
    """The dtype of several arrays, where one without dims counts as much as the others: it is expanded first."""
    return dt.result_type(*[(dt.from_numpy(array.dtype), dt.DIM_TENSOR) for array in arrays]).np


@op(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    checks_overlap=Overlap.PART,
    deprecated=sum_orders("vec1 vec2"),
    inplace=True,
    shape=lambda self, vec1, vec2, beta, alpha: (
        (*vec1._array.shape, *vec2._array.shape),
        _widest(self._array, vec1._array, vec2._array),
    ),
    layout=Layout.OPERANDS,
    samples=lambda make: [(make(3, 4), make(3), make(4)), (make(4), make(3), make(4), {"beta": 0.5, "alpha": 2})],
    batching=Batching.ADDED_PRODUCT,
    flops=per_element(2),
)
def addr(self, vec1, vec2, beta, alpha):
    """`beta * input` plus `alpha` times the outer product of two vectors.

    >>> torch.addr(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    if vec1.ndim != 1 or vec2.ndim != 1:
        which, array = ("vec1", vec1) if vec1.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"addr: Expected 1-D argument {which}, but got {array.ndim}-D")
    wanted = _widest(self, vec1, vec2)
    self, vec1, vec2 = (one if one.dtype is wanted else one.astype(wanted) for one in (self, vec1, vec2))
    if wanted.kind in "iub":
        check_factor("beta", beta, wanted.kind)
        check_factor("alpha", alpha, wanted.kind)
    return plus(self, np.multiply(vec1[:, None], vec2), beta, alpha)


addr.vjp(
    self=lambda g, beta: scaled(g, beta),
    vec1=lambda g, vec2, alpha: scaled(aten.mv(g, conj(vec2)), alpha),
    vec2=lambda g, vec1, alpha: scaled(aten.mv(aten.t(g), conj(vec1)), alpha),
)


@op(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    deprecated=sum_orders("batch1 batch2"),
    inplace=True,
    shape=lambda self, batch1, batch2, beta, alpha: (bmm_shape(batch1, batch2)[0][1:], self._array.dtype),
    samples=lambda make: [
        (make(3, 2), make(2, 3, 4), make(2, 4, 2)),
        (make(2), make(2, 3, 4), make(2, 4, 2), {"beta": 0.5, "alpha": 2}),
    ],
    autocast=Autocast.LOWER,
    batching=Batching.ADDED_PRODUCT,
    flops=lambda self, batch1, batch2, *rest: int(2 * math.prod(batch1) * batch2[-1]),
)
def addbmm(self, batch1, batch2, beta, alpha):
    """`beta * input` plus `alpha` times the sum of the products of two batches of matrices.

    >>> torch.addbmm(torch.zeros(1, 1), torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[6.]])
    """
    for batch in (batch2, batch1):
        if batch.dtype != self.dtype:
            raise RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(self)} and {scalar_name(batch)}")
    check_bmm(batch1, batch2)
    return plus(self, np.add.reduce(product(batch1, batch2, "addmm_impl_cpu_"), 0, self.dtype), beta, alpha)


def _spread(g, count):
    """The gradient of a sum over a batch, expanded to each of its members."""
    shape = g._array.shape
    return aten.expand(aten.unsqueeze(g, 0), (count, *shape))


def _addbmm_batch2_grad(g, batch1, alpha):
    turned = conj(batch1).transpose(1, 2)
    return scaled(aten.bmm(turned, _spread(g, batch1._array.shape[0])), alpha)


addbmm.vjp(
    self=lambda g, beta: scaled(g, beta),
    batch1=lambda g, batch2, alpha: scaled(aten.bmm(_spread(g, batch2._array.shape[0]), conj(batch2).transpose(1, 2)), alpha),
    batch2=_addbmm_batch2_grad,
)


def _check_vectors(self, vec2):
    if self._array.ndim != 1 or vec2._array.ndim != 1:
        which, t = ("self", self) if self._array.ndim != 1 else ("vec2", vec2)
        raise RuntimeError(f"outer: Expected 1-D argument {which}, but got {t._array.ndim}-D")


def _outer_into(self, vec2, out):
    _check_vectors(self, vec2)
    return aten.mul(aten.reshape(self, (self._array.shape[0], 1)), vec2, out=out)


@composite("outer(Tensor self, Tensor vec2) -> Tensor", samples=lambda make: [(make(3), make(4))], out_form=_outer_into)
def outer(self, vec2):
    """The products of every element of one vector with every element of another.

    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    _check_vectors(self, vec2)
    return aten.mul(aten.reshape(self, (self._array.shape[0], 1)), vec2)


composite(
    "ger(Tensor self, Tensor vec2) -> Tensor",
    lambda self, vec2: aten.outer(self, vec2),
    samples=lambda make: [(make(3), make(4))],
    out_form=lambda self, vec2, out: aten.outer(self, vec2, out=out),
    doc="""The outer product of two vectors, as `outer`.

    >>> torch.ger(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """,
)
