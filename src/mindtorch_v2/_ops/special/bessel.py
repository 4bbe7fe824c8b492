"""Bessel's and Airy's functions, which have no derivative in torch; declared when `mindtorch_v2.special` is imported."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._dispatch.facts import Promotion
from ..._dispatch.registry import op
from .._support.elementwise import need_single_or_double
from .._support.special_math import i0, i1
from . import _bessel_math as math


def _declare(
    name: str, function: Callable[[np.ndarray], np.ndarray], argument: str = "self", *, doc: str | None = None
) -> None:
    kernel_name = f"{name}_cpu"

    def kernel(x: np.ndarray) -> np.ndarray:
        need_single_or_double(kernel_name, x)
        return function(x.astype(np.float64, copy=False)).astype(x.dtype, copy=False)

    op(f"special_{name}(Tensor {argument}) -> Tensor", kernel, promote=Promotion.FLOAT, nondiff=True, doc=doc)


def _nan_at_infinities(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.where(np.isinf(x), np.nan, function(x))


_declare(
    "airy_ai",
    math.airy_ai,
    "x",
    doc="""Airy's function Ai.

    >>> torch.special.airy_ai(torch.tensor([0.0, 1.0]))
    tensor([0.3550, 0.1353])
    """,
)
_declare(
    "bessel_j0",
    math.j0,
    doc="""The Bessel function of the first kind and order 0.

    >>> torch.special.bessel_j0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652])
    """,
)
_declare(
    "bessel_j1",
    math.j1,
    doc="""The Bessel function of the first kind and order 1.

    >>> torch.special.bessel_j1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.4401])
    """,
)
_declare(
    "bessel_y0",
    math.y0,
    doc="""The Bessel function of the second kind and order 0.

    >>> torch.special.bessel_y0(torch.tensor([0.5, 1.0]))
    tensor([-0.4445,  0.0883])
    """,
)
_declare(
    "bessel_y1",
    math.y1,
    doc="""The Bessel function of the second kind and order 1.

    >>> torch.special.bessel_y1(torch.tensor([0.5, 1.0]))
    tensor([-1.4715, -0.7812])
    """,
)
_declare(
    "modified_bessel_i0",
    _nan_at_infinities(i0),
    doc="""The modified Bessel function of the first kind and order 0.

    >>> torch.special.modified_bessel_i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
)
_declare(
    "modified_bessel_i1",
    _nan_at_infinities(i1),
    doc="""The modified Bessel function of the first kind and order 1.

    >>> torch.special.modified_bessel_i1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
)
_declare(
    "modified_bessel_k0",
    math.k0,
    doc="""The modified Bessel function of the second kind and order 0.

    >>> torch.special.modified_bessel_k0(torch.tensor([0.5, 1.0]))
    tensor([0.9244, 0.4210])
    """,
)
_declare(
    "modified_bessel_k1",
    math.k1,
    doc="""The modified Bessel function of the second kind and order 1.

    >>> torch.special.modified_bessel_k1(torch.tensor([0.5, 1.0]))
    tensor([1.6564, 0.6019])
    """,
)
_declare(
    "scaled_modified_bessel_k0",
    math.k0e,
    "x",
    doc="""The modified Bessel function of the second kind and order 0, times `exp(x)`.

    >>> torch.special.scaled_modified_bessel_k0(torch.tensor([0.5, 1.0]))
    tensor([1.5241, 1.1445])
    """,
)
_declare(
    "scaled_modified_bessel_k1",
    math.k1e,
    "x",
    doc="""The modified Bessel function of the second kind and order 1, times `exp(x)`.

    >>> torch.special.scaled_modified_bessel_k1(torch.tensor([0.5, 1.0]))
    tensor([2.7310, 1.6362])
    """,
)
_declare(
    "spherical_bessel_j0",
    math.spherical_j0,
    "x",
    doc="""The spherical Bessel function of the first kind and order 0, `sin(x) / x`.

    >>> torch.special.spherical_bessel_j0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """,
)
