"""Modified Bessel functions, which have derivatives."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import numpy as np

from ..._dispatch.registry import aten
from .._support import special_math
from .._support.flops import per_element
from ._declare import in_double, unary


def _away_from_zero(self):
    """Where |x| is large enough to divide by x, and x with a harmless value elsewhere."""
    tiny = 2.220446049250313e-16 if self._array.dtype == np.float64 else 1.1920928955078125e-07
    large = self.abs() > tiny
    return large, aten.where(large, self, aten.scalar_tensor(tiny, dtype=self.dtype))


def _i1_grad(g, self, result):
    large, safe = _away_from_zero(self)
    slope = aten.i0(safe) - result * safe.reciprocal()
    return g * aten.where(large, slope, aten.scalar_tensor(0.5, dtype=self.dtype))


def _i1e_grad(g, self, result):
    large, safe = _away_from_zero(self)
    rate = safe.sgn() + safe.reciprocal()
    slope = aten.special_i0e(safe) - result * rate
    return g * aten.where(large, slope, aten.scalar_tensor(0.5, dtype=self.dtype))


unary(
    "i0",
    in_double(special_math.i0),
    lambda g, self: g * aten.special_i1(self),
    flops=per_element(1),
    aliases=("special_i0",),
    doc="""The modified Bessel function of the first kind and order 0.

    >>> torch.i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
)
unary(
    "special_i0e",
    in_double(special_math.i0e),
    lambda g, self, result: g * (aten.special_i1e(self) - self.sgn() * result),
    node="SpecialI0EBackward0",
    flops=per_element(1),
    doc="""The modified Bessel function of order 0, scaled by `exp(-|x|)`.

    >>> torch.special.i0e(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """,
)
unary(
    "special_i1",
    in_double(special_math.i1),
    _i1_grad,
    flops=per_element(1),
    doc="""The modified Bessel function of the first kind and order 1.

    >>> torch.special.i1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
)
unary(
    "special_i1e",
    in_double(special_math.i1e),
    _i1e_grad,
    node="SpecialI1EBackward0",
    flops=per_element(1),
    doc="""The modified Bessel function of order 1, scaled by `exp(-|x|)`.

    >>> torch.special.i1e(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """,
)
