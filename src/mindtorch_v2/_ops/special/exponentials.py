"""Exponentials and logarithms."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._dispatch.facts import Promotion
from ..._dispatch.registry import aten, op
from .._support.common import no_kernel
from .._support.elementwise import log_add_exp
from .._support.flops import per_element
from ..pointwise._large_pairs import SOME, fill_logaddexp, large_pair
from ..pointwise.arithmetic import conj, count
from ._declare import unary

unary(
    "exp",
    np.exp,
    lambda g, result: g * conj(result),
    flops=count,
    shared_from=1 << 19,
    doc="""The exponential of each element.

    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
)
unary(
    "exp2",
    np.exp2,
    lambda g, result: (g * conj(result)) * math.log(2),
    flops=count,
    aliases=("special_exp2",),
    doc="""Two to the power of each element.

    >>> torch.exp2(torch.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """,
)
unary(
    "expm1",
    np.expm1,
    lambda g, result: g * (conj(result) + 1),
    flops=count,
    aliases=("special_expm1",),
    doc="""`exp(x) - 1`, exact for small x.

    >>> torch.expm1(torch.tensor([0.0, 1e-6]))
    tensor([0.0000e+00, 1.0000e-06])
    """,
)
unary(
    "log",
    np.log,
    lambda g, self: g / conj(self),
    flops=count,
    doc="""The natural logarithm of each element.

    >>> torch.log(torch.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """,
)
unary(
    "log2",
    np.log2,
    lambda g, self: g / (conj(self) * math.log(2)),
    flops=count,
    doc="""The logarithm to base 2.

    >>> torch.log2(torch.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """,
)
unary(
    "log10",
    np.log10,
    lambda g, self: g / (conj(self) * math.log(10)),
    flops=count,
    doc="""The logarithm to base 10.

    >>> torch.log10(torch.tensor([2.0, 5.0]))
    tensor([0.3010, 0.6990])
    """,
)
unary(
    "log1p",
    np.log1p,
    lambda g, self: g / conj(self + 1),
    flops=count,
    aliases=("special_log1p",),
    doc="""`log(1 + x)`, exact for small x.

    >>> torch.log1p(torch.tensor([0.0, 1e-6]))
    tensor([0.0000e+00, 1.0000e-06])
    """,
)


def _log_sum(name, ufunc, exponential, *, fill=None, doc=None):
    def kernel(self, other):
        if self.dtype.kind in "iub":
            raise no_kernel(f"{name}_cpu", self)
        if fill is not None and self.size >= SOME and (result := large_pair(fill, self, other, None)) is not None:
            return result
        return ufunc(self, other)

    made = op(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        kernel,
        promote=Promotion.SAME,
        tensors_only=True,
        flops=per_element(3),
        doc=doc,
    )
    made.vjp(
        self=lambda g, self, other: g / conj(exponential(other - self) + 1),
        other=lambda g, self, other: g / conj(exponential(self - other) + 1),
    )


_log_sum(
    "logaddexp",
    log_add_exp,
    lambda t: t.exp(),
    fill=fill_logaddexp,
    doc="""`log(exp(input) + exp(other))` without overflow.

    >>> torch.logaddexp(torch.tensor([0.0, 100.0]), torch.tensor([0.0, 1.0]))
    tensor([  0.6931, 100.0000])
    """,
)
_log_sum(
    "logaddexp2",
    np.logaddexp2,
    lambda t: aten.pow(2.0, t),
    doc="""`log2(2**input + 2**other)` without overflow.

    >>> torch.logaddexp2(torch.tensor([3.0]), torch.tensor([3.0]))
    tensor([4.])
    """,
)
