"""Conjugates, which are noted until they are needed, and the angle of complex numbers."""

from __future__ import annotations

import math

import numpy as np

from ..._core.keys import CONJUGATED, NEGATED
from ..._dispatch.facts import Batching, OutGrad, Promotion
from ..._dispatch.lazy_values import turned
from ..._dispatch.registry import aten, composite, op
from .._support.flops import per_element
from .arithmetic import conj, zero_grad


@op("conj_physical(Tensor self) -> Tensor", promote=Promotion.SAME, inplace=True, out_grad=OutGrad.WRITTEN)
def conj_physical(self, out=None):
    """The conjugate of each complex number, in memory of its own.

    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if self.dtype.kind in "cW":
        return np.conjugate(self, out)
    return self.copy() if out is None else out


conj_physical.vjp(self=lambda g: aten.conj_physical(g))

lazy_conj = composite(
    "_conj(Tensor(a) self) -> Tensor(a)",
    lambda self: turned(self, CONJUGATED),
    node="ConjBackward0",
    batching=Batching.POINTWISE,
    samples=lambda make: [],
)
lazy_conj.kernel_for("lazy")(lazy_conj.kernel)
lazy_conj.vjp(self=lambda g: aten._conj(g))

neg_view = composite(
    "_neg_view(Tensor(a) self) -> Tensor(a)",
    lambda self: turned(self, NEGATED),
    batching=Batching.POINTWISE,
    samples=lambda make: [],
)
neg_view.kernel_for("lazy")(neg_view.kernel)
neg_view.vjp(self=lambda g: aten.neg(g))

composite(
    "conj(Tensor(a) self) -> Tensor(a)",
    lambda self: conj(self),
    doc="""The conjugate of each complex number; real tensors are returned as they are.

    >>> torch.conj(torch.tensor([1 + 2j])).resolve_conj()
    tensor([1.-2.j])
    """,
)
composite(
    "resolve_conj(Tensor(a) self) -> Tensor(a)",
    lambda self: aten.clone(self) if self._keys & CONJUGATED else self,
    doc="""The tensor itself, or a copy with conjugated values where conjugation was only noted.

    >>> torch.resolve_conj(torch.tensor([1 + 2j]))
    tensor([1.+2.j])
    """,
)
composite(
    "resolve_neg(Tensor(a) self) -> Tensor(a)",
    lambda self: aten.clone(self) if self._keys & NEGATED else self,
    doc="""The tensor itself, or a copy with negated values where negation was only noted.

    >>> torch.resolve_neg(torch.tensor([1.0]))
    tensor([1.])
    """,
)


@op(
    "angle(Tensor self) -> Tensor",
    promote=Promotion.FLOAT,
    shape=lambda self: (self._array.shape, np.angle(np.empty(0, self._array.dtype)).dtype),
    flops=per_element(1),
)
def angle(self):
    """The angle of each complex number in radians; of real numbers 0 or pi.

    >>> torch.angle(torch.tensor([1 + 1j, -1 + 0j]))
    tensor([0.7854, 3.1416])
    """
    if self.dtype.kind == "c":
        return np.arctan2(self.imag, self.real)
    angles = np.where(self < 0, np.array(math.pi, self.dtype), np.array(0, self.dtype))
    return np.where(np.isnan(self), self, angles)


def _angle_grad(g, self):
    if self._array.dtype.kind != "c":
        return zero_grad(g)
    modulus = self.abs()
    square = modulus.pow(2)
    turned = g * ((self * 1j) / square)
    return aten.where(modulus == 0, aten.zeros((), dtype=turned.dtype), turned)


angle.vjp(self=_angle_grad)
