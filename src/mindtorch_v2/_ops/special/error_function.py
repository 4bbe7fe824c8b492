"""The error function and what is made of it."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._dispatch.registry import aten, composite
from .._support import special_math
from .._support.erf import erf32
from .._support.erf_tails import erfc32, erfinv32
from .._support.flops import per_element
from ._declare import in_double, unary

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

_erf_in_double = in_double(special_math.erf)


def _erf(self):
    return erf32(self) if self.dtype is np.dtype(np.float32) else _erf_in_double(self)


_erfc_in_double, _erfinv_in_double = in_double(special_math.erfc), in_double(special_math.erfinv)


def _erfc(self):
    return erfc32(self) if self.dtype is np.dtype(np.float32) else _erfc_in_double(self)


def _erfinv(self):
    return erfinv32(self) if self.dtype is np.dtype(np.float32) else _erfinv_in_double(self)


def _gaussian(g, self, factor):
    bell = factor * (-self.pow(2)).exp()
    return bell * g


unary(
    "erf",
    _erf,
    lambda g, self: _gaussian(g, self, _TWO_OVER_ROOT_PI),
    flops=per_element(1),
    aliases=("special_erf",),
    doc="""The error function.

    >>> torch.erf(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
)
unary(
    "erfc",
    _erfc,
    lambda g, self: _gaussian(g, self, -_TWO_OVER_ROOT_PI),
    flops=per_element(1),
    aliases=("special_erfc",),
    doc="""One minus the error function, exact where that is small.

    >>> torch.erfc(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """,
)
unary(
    "erfinv",
    _erfinv,
    lambda g, self: (0.5 * math.sqrt(math.pi)) * self.erfinv().pow(2).exp() * g,
    flops=per_element(1),
    aliases=("special_erfinv",),
    doc="""The inverse of the error function.

    >>> torch.erfinv(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """,
)
unary(
    "special_erfcx",
    in_double(special_math.erfcx),
    lambda g, self, result: ((self * 2) * result - _TWO_OVER_ROOT_PI) * g,
    doc="""The scaled complementary error function, `exp(x**2) * erfc(x)`.

    >>> torch.special.erfcx(torch.tensor([0.0, 10.0]))
    tensor([1.0000, 0.0561])
    """,
)
unary(
    "special_ndtri",
    in_double(special_math.ndtri),
    lambda g, result: g * (math.sqrt(2 * math.pi) * (result.square() / 2).exp()),
    doc="""The inverse of the normal distribution's cumulative probability.

    >>> torch.special.ndtri(torch.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """,
)
unary(
    "special_log_ndtr",
    in_double(special_math.log_ndtr),
    lambda g, self, result: g * ((-(result + self.pow(2) / 2)).exp() / math.sqrt(2 * math.pi)),
    doc="""The logarithm of the normal distribution's cumulative probability, exact far out.

    >>> torch.special.log_ndtr(torch.tensor([0.0, -10.0]))
    tensor([ -0.6931, -53.2313])
    """,
)
composite(
    "special_ndtr(Tensor self) -> Tensor",
    lambda self: (aten.erf(self * math.sqrt(0.5)) + 1) * 0.5,
    out=True,
    doc="""The cumulative probability of the normal distribution.

    >>> torch.special.ndtr(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """,
)
