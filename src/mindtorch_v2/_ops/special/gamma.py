"""The gamma function, its logarithm, derivatives and incomplete forms, and the zeta function."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._dispatch.facts import Layout, Promotion
from ..._dispatch.registry import aten, composite, op
from .._support import special_math
from .._support.common import home_of, no_derivative, no_kernel
from .._support.elementwise import need_real
from .._support.flops import per_element
from .._support.gamma32 import digamma32, lgamma32
from ._declare import in_double, unary

_lgamma_in_double, _digamma_in_double = in_double(special_math.lgamma), in_double(special_math.digamma)


def _lgamma(self):
    return lgamma32(self) if self.dtype is np.dtype(np.float32) else _lgamma_in_double(self)


def _digamma(self):
    return digamma32(self) if self.dtype is np.dtype(np.float32) else _digamma_in_double(self)


unary(
    "lgamma",
    _lgamma,
    lambda g, self: g * self.digamma(),
    flops=per_element(1),
    aliases=("special_gammaln",),
    doc="""The logarithm of the absolute value of the gamma function.

    >>> torch.lgamma(torch.tensor([3.0, 0.5]))
    tensor([0.6931, 0.5724])
    """,
)
unary(
    "digamma",
    _digamma,
    lambda g, self: g * aten.polygamma(1, self),
    flops=per_element(1),
    aliases=("special_digamma", "special_psi"),
    doc="""The logarithmic derivative of the gamma function.

    >>> torch.digamma(torch.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """,
)


@op(
    "polygamma(int n, Tensor self) -> Tensor",
    promote=Promotion.FLOAT,
    samples=lambda make: [(1, make(3, 4) + 1)],
    aliases=("special_polygamma",),
    flops=per_element(1),
)
def polygamma(n, self):
    """The n-th derivative of the digamma function.

    >>> torch.polygamma(1, torch.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return in_double(lambda x: special_math.polygamma(n, x))(self)


polygamma.vjp(self=lambda g, n, self: g * aten.polygamma(n + 1, self))

polygamma_ = composite(
    "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
    lambda self, n: aten.polygamma(n, self, out=self),
    node="PolygammaBackward1",
    samples=lambda make: [(make(3, 4) + 1, 1)],
    flops=per_element(1),
)
polygamma_.vjp(self=lambda g, n, self: g * aten.polygamma(n + 1, self))


@op(
    "mvlgamma(Tensor self, int p) -> Tensor",
    layout=Layout.ROW_MAJOR,
    promote=Promotion.FLOAT,
    inplace=True,
    samples=lambda make: [(make(3, 4) + 2, 2)],
    aliases=("special_multigammaln",),
)
def mvlgamma(self, p):
    """The logarithm of the multivariate gamma function of dimension `p`.

    >>> torch.mvlgamma(torch.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    need_real("mvlgamma", self)
    x = self.astype(np.float64)[..., None] + (1 - np.arange(1, p + 1)) / 2
    total = special_math.lgamma(x).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
    return np.asarray(total).astype(self.dtype, copy=False)


def _mvlgamma_grad(g, self, p):
    halves = aten.arange(-p / 2 + 0.5, 0.5, 0.5, dtype=self.dtype, device=home_of(self))
    return g * (self.unsqueeze(-1) + halves).digamma_().sum(-1)


mvlgamma.vjp(self=_mvlgamma_grad)


def _pair_in_double(function, name):
    def kernel(self, other):
        wanted = self.dtype if isinstance(self, np.ndarray) else other.dtype
        need_real(name, np.empty(0, wanted))
        result = function(np.asarray(self, np.float64), np.asarray(other, np.float64))
        return np.asarray(result).astype(wanted, copy=False)

    return kernel


def _zeta(self, other):
    array = self if isinstance(self, np.ndarray) else other
    if array.dtype.name not in ("float32", "float64"):
        raise no_kernel("zeta_cpu", array)
    return _zeta_in_double(self, other)


_zeta_in_double = _pair_in_double(special_math.zeta, "zeta_cpu")

zeta = op(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    _zeta,
    promote=Promotion.FLOAT,
    samples=lambda make: [(make(3, 4).detach() + 2, make(3, 4))],
    flops=per_element(1),
    doc="""The Hurwitz zeta function.

    >>> torch.special.zeta(torch.tensor([2.0]), torch.tensor([1.0]))
    tensor([1.6449])
    """,
)
zeta.vjp(self=no_derivative("zeta"), other=lambda g, self, other: g * -(self * aten.special_zeta(self + 1, other)))

zeta_of_number = op(
    "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
    _zeta,
    promote=Promotion.FLOAT,
    promoted=("self", "other"),
    node="SpecialZetaBackward1",
    tensors_only=True,
    samples=lambda make: [(3.0, make(3, 4))],
    flops=per_element(1),
)
zeta_of_number.vjp(other=lambda g, self, other: g * (aten.special_zeta(self + 1.0, other) * -self))


def _incomplete_grad(sign):
    return lambda g, self, other: g * (sign * ((self - 1) * other.log() - other - self.lgamma()).exp())


def _second_only(make):
    return [(make(3, 4).detach() + 0.5, make(3, 4) + 0.5)]


igamma = op(
    "igamma(Tensor self, Tensor other) -> Tensor",
    _pair_in_double(special_math.gammainc, "igamma_cpu"),
    promote=Promotion.FLOAT,
    tensors_only=True,
    inplace=True,
    samples=_second_only,
    aliases=("special_gammainc",),
    flops=per_element(1),
    doc="""The regularized lower incomplete gamma function of order `input` at `other`.

    >>> torch.igamma(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor([0.6321, 0.5940])
    """,
)
igamma.vjp(self=no_derivative("igamma: input"), other=_incomplete_grad(1))
igammac = op(
    "igammac(Tensor self, Tensor other) -> Tensor",
    _pair_in_double(special_math.gammaincc, "igammac_cpu"),
    promote=Promotion.FLOAT,
    tensors_only=True,
    inplace=True,
    samples=_second_only,
    aliases=("special_gammaincc",),
    flops=per_element(1),
    doc="""The regularized upper incomplete gamma function of order `input` at `other`.

    >>> torch.igammac(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor([0.3679, 0.4060])
    """,
)
igammac.vjp(self=no_derivative("igammac: input"), other=_incomplete_grad(-1))

# The order comes first in the op and second in the method.
METHODS = {"polygamma": lambda self, n: aten.polygamma(n, self)}
