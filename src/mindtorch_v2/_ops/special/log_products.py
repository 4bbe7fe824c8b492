"""Products and quotients inside or beside a logarithm: xlogy, entr, logit."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import numpy as np

from ..._core.tensor import Tensor
from ..._dispatch.facts import Promotion
from ..._dispatch.registry import aten, op
from .._support.common import like_first, no_kernel
from .._support.flops import per_element
from .._support.numbers import number_of


def _times_log(name, log, pole):
    """self * log(other), 0 where self is 0 whatever the logarithm, nan where other is."""

    def kernel(self, other):
        if self.dtype.kind in "cW":
            raise no_kernel(f"{name}_cpu", self)
        if other.__class__ is not np.ndarray:
            other = np.array(other, self.dtype)
        if other.dtype.kind == "c":
            raise TypeError("complex numbers")
        value = np.multiply(self, log(other))
        product = np.where((self == 0) & ~np.isnan(other), np.zeros((), value.dtype), value)
        return product.astype(value.dtype, copy=False)

    def self_grad(name):
        def grad(g, self, other):
            moved = getattr(aten, name)(g, other)
            dead = other <= pole
            return moved.masked_fill(aten.bitwise_and(self == 0, dead), 0.0)

        return grad

    return kernel, self_grad


_xlogy, _xlogy_self_grad = _times_log("xlogy", np.log, 0)

xlogy = op(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    _xlogy,
    promote=Promotion.FLOAT,
    inplace=True,
    aliases=("special_xlogy",),
    flops=per_element(2),
    out_overload="OutTensor",
    doc="""`input * log(other)`, and 0 where the input is 0.

    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """,
)
xlogy.vjp(self=_xlogy_self_grad("xlogy"), other=lambda g, self, other: (g * self) / other)

xlogy_of_number = op(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    lambda self, other: _xlogy(np.array(self, other.dtype), other),
    promote=Promotion.FLOAT,
    promoted=("self", "other"),
    node="XlogyBackward1",
    tensors_only=True,
    samples=lambda make: [(0.5, make(3, 4))],
    aliases=("special_xlogy",),
    flops=per_element(2),
    out_overload="OutScalar_Self",
)
xlogy_of_number.vjp(other=lambda g, self, other: (g * self) / other)

_xlog1py, _xlog1py_self_grad = _times_log("xlog1py", np.log1p, -1)

xlog1py = op(
    "special_xlog1py(Tensor self, Tensor other) -> Tensor",
    _xlog1py,
    promote=Promotion.FLOAT,
    node="SpecialXlog1PyBackward0",
    flops=per_element(2),
    doc="""`input * log1p(other)`, and 0 where the input is 0.

    >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """,
)
xlog1py.vjp(self=_xlog1py_self_grad("special_xlog1py"), other=lambda g, self, other: (g * self) / (other + 1))

xlog1py_of_number = op(
    "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
    lambda self, other: _xlog1py(np.array(self, other.dtype), other),
    promote=Promotion.FLOAT,
    promoted=("self", "other"),
    node="SpecialXlog1PyBackward1",
    tensors_only=True,
    samples=lambda make: [(0.5, make(3, 4))],
    flops=per_element(2),
)
xlog1py_of_number.vjp(other=lambda g, self, other: (g * self) / (other + 1))


@op("special_entr(Tensor self) -> Tensor", promote=Promotion.FLOAT, flops=per_element(2))
def entr(self):
    """The entropy `-x log(x)` of each element; minus infinity for negative ones.

    >>> torch.special.entr(torch.tensor([0.0, 0.5, -1.0]))
    tensor([0.0000, 0.3466,   -inf])
    """
    entropy = np.where(self > 0, -self * np.log(np.where(self > 0, self, 1)), np.where(self == 0, 0, -np.inf))
    return np.where(np.isnan(self), self, entropy).astype(self.dtype, copy=False)


def _entr_grad(g, self):
    slope = -(self.log() + 1)
    return g * slope


entr.vjp(self=_entr_grad)


@op(
    "logit(Tensor self, float? eps=None) -> Tensor",
    promote=Promotion.FLOAT,
    inplace=True,
    samples=lambda make: [(make(3, 4),), (make(3, 4), 0.2)],
    aliases=("special_logit",),
    flops=per_element(3),
)
def logit(self, eps):
    """The inverse of the sigmoid, `log(x / (1 - x))`; `eps` keeps x away from 0 and 1.

    >>> torch.logit(torch.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    if self.dtype.kind == "c":
        raise TypeError("complex numbers")
    if eps is not None:
        if isinstance(eps, Tensor):
            eps = float(number_of(eps.item(), np.dtype(np.float64)))
        self = np.minimum(np.maximum(self, np.array(eps, self.dtype)), np.array(1 - eps, self.dtype))
    return np.log(np.divide(self, np.subtract(np.array(1, self.dtype), self)))


logit.vjp(self=lambda g, self, eps: aten.logit_backward(g, self, eps))


@op(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make(3, 4)), (make(3, 4), make(3, 4), 0.2)],
)
def logit_backward(grad_output, self, eps):
    low = 0.0 if eps is None else eps
    slope = np.divide(grad_output, np.multiply(self, np.subtract(np.array(1, self.dtype), self)))
    outside = np.array(np.nan if eps is None else 0.0, slope.dtype)
    return np.where((self >= low) & (self <= 1 - low), slope, outside)


def _logit_double(g, grad_output, self, eps):
    slope = (self * 2 - 1) / (self * (1 - self)).square()
    moved = g * grad_output * slope
    if eps is None:
        return moved
    return moved.masked_fill((self < eps).logical_or_(self > 1 - eps), 0.0)


logit_backward.vjp(grad_output=lambda g, self, eps: aten.logit_backward(g, self, eps), self=_logit_double)
