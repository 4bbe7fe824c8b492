"""Orthogonal polynomials, which have no derivative in torch; declared when `mindtorch_v2.special` is imported.

An order is a number or a tensor, truncated to an integer; the polynomial of a negative order is 0. The dtype of the result is
that of the computation, as in torch, so that the same orders overflow. As in torch, the time grows with the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.facts import Promotion
from ..._dispatch.registry import op
from .._support.elementwise import need_single_or_double

# p(k + 1) from k, p(k), p(k - 1) and x
Step = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Polynomial = Callable[[np.ndarray, np.ndarray], np.ndarray]
_CLOSED_FROM = 7  # orders from which Chebyshev polynomials inside (-1, 1) are computed by their angle


_DOCS = {
    "special_chebyshev_polynomial_t": """The Chebyshev polynomial of the first kind of degree `n`.

    >>> torch.special.chebyshev_polynomial_t(torch.tensor([0.5]), torch.tensor([3]))
    tensor([-1.])
    """,
    "special_shifted_chebyshev_polynomial_t": """The Chebyshev polynomial of the first kind, shifted to [0, 1].

    >>> torch.special.shifted_chebyshev_polynomial_t(torch.tensor([0.25]), torch.tensor([2]))
    tensor([-0.5000])
    """,
    "special_chebyshev_polynomial_u": """The Chebyshev polynomial of the second kind of degree `n`.

    >>> torch.special.chebyshev_polynomial_u(torch.tensor([0.5]), torch.tensor([3]))
    tensor([-1.])
    """,
    "special_shifted_chebyshev_polynomial_u": """The Chebyshev polynomial of the second kind, shifted to [0, 1].

    >>> torch.special.shifted_chebyshev_polynomial_u(torch.tensor([0.25]), torch.tensor([2]))
    tensor([0.])
    """,
    "special_chebyshev_polynomial_v": """The Chebyshev polynomial of the third kind of degree `n`.

    >>> torch.special.chebyshev_polynomial_v(torch.tensor([0.5]), torch.tensor([3]))
    tensor([-1.])
    """,
    "special_shifted_chebyshev_polynomial_v": """The Chebyshev polynomial of the third kind, shifted to [0, 1].

    >>> torch.special.shifted_chebyshev_polynomial_v(torch.tensor([0.25]), torch.tensor([2]))
    tensor([1.])
    """,
    "special_chebyshev_polynomial_w": """The Chebyshev polynomial of the fourth kind of degree `n`.

    >>> torch.special.chebyshev_polynomial_w(torch.tensor([0.5]), torch.tensor([3]))
    tensor([-1.])
    """,
    "special_shifted_chebyshev_polynomial_w": """The Chebyshev polynomial of the fourth kind, shifted to [0, 1].

    >>> torch.special.shifted_chebyshev_polynomial_w(torch.tensor([0.25]), torch.tensor([2]))
    tensor([-1.])
    """,
}


_MOST_ORDER = 1 << 17  # a step takes some microseconds, whatever the number of elements


def _by_recurrence(n: np.ndarray, x: np.ndarray, first: np.ndarray, step: Step) -> np.ndarray:
    """Polynomials of orders n that start with 1 and `first`.

    An element leaves the recurrence at its own order, or as soon as it is nan, which all later orders are then too.
    """
    result = np.empty(n.shape, first.dtype)
    result[...] = n >= 0
    flat = result.reshape(-1)
    index = np.flatnonzero(n > 0)
    orders, x, now = n.reshape(-1)[index], x.reshape(-1)[index], first.reshape(-1)[index]
    before = np.ones_like(now)
    for k in range(1, _MOST_ORDER + 1):
        if not index.size:
            return result
        done = (orders == k) | np.isnan(now)
        if done.any():
            flat[index[done]] = now[done]
            index, orders, x, now, before = (vector[~done] for vector in (index, orders, x, now, before))
        before, now = now, step(k, now, before, x)
    if index.size:
        raise RuntimeError(f"polynomials of orders above {_MOST_ORDER} are not computed: the recurrence would take too long")
    return result


def _hermite(physicists: bool) -> Polynomial:
    def polynomial(x: np.ndarray, n: np.ndarray) -> np.ndarray:
        scaled = x + x if physicists else x
        factor = 2 if physicists else 1
        return _by_recurrence(n, scaled, scaled, lambda k, now, before, x: x * now - factor * k * before)

    return polynomial


def _laguerre(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return _by_recurrence(n, x, 1 - x, lambda k, now, before, x: ((2 * k + 1 - x) * now - k * before) / (k + 1))


def _legendre(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return _by_recurrence(n, x, x, lambda k, now, before, x: ((2 * k + 1) * x * now - k * before) / (k + 1))


# ---------------------------------------------------------------- Chebyshev polynomials of four kinds

# Four functions of each kind: the polynomial of order 1; the value inside (-1, 1) from order and angle; the value at 1; the
# absolute value at -1, where odd orders are negative.
_KINDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "t": (lambda x: x, lambda n, angle: np.cos(n * angle), np.ones_like, np.ones_like),
    "u": (lambda x: x + x, lambda n, angle: np.sin((n + 1) * angle) / np.sin(angle), lambda n: n + 1, lambda n: n + 1),
    "v": (
        lambda x: x + x - 1,
        lambda n, angle: np.cos((n + 0.5) * angle) / np.cos(angle * 0.5),
        np.ones_like,
        lambda n: n + n + 1,
    ),
    "w": (
        lambda x: x + x + 1,
        lambda n, angle: np.sin((n + 0.5) * angle) / np.sin(angle * 0.5),
        lambda n: n + n + 1,
        np.ones_like,
    ),
}


def _chebyshev(kind: str, shifted: bool) -> Polynomial:
    first, inside, at_one, at_minus_one = _KINDS[kind]

    def polynomial(x: np.ndarray, n: np.ndarray) -> np.ndarray:
        y = x + x - 1 if shifted else x
        end = (np.abs(y) == 1) & (n >= 0)
        closed = (np.abs(y) < 1) & (n >= _CLOSED_FROM)
        orders = np.where(end | closed, 0, n)
        result = _by_recurrence(orders, y + y, first(y), lambda k, now, before, twice: twice * now - before)
        if closed.any():
            result[closed] = inside(n[closed].astype(y.dtype), np.arccos(y[closed]))
        if end.any():
            order, sign = n[end].astype(y.dtype), 1 - 2 * (n[end] & 1)
            result[end] = np.where(y[end] > 0, at_one(order), sign * at_minus_one(order))
        return result

    return polynomial


# ---------------------------------------------------------------- declarations


def _orders(n: np.ndarray) -> np.ndarray:
    """Orders as integers; nan, infinities and numbers beyond the range of int64 count as negative."""
    return np.where(np.abs(n) < 2.0**63, n, -1).astype(np.int64)


def _declare(name: str, polynomial: Polynomial, *, doc: str | None = None) -> None:
    kernel_name = f"{name}_cpu"

    def kernel(x: Any, n: Any) -> np.ndarray:
        dtype = x.dtype if isinstance(x, np.ndarray) else n.dtype
        x, n = np.broadcast_arrays(np.asarray(x, dtype), np.asarray(n, dtype))
        need_single_or_double(kernel_name, x)
        return polynomial(x, _orders(n))

    op(
        f"special_{name}(Tensor x, Tensor n) -> Tensor",
        kernel,
        promote=Promotion.FLOAT,
        nondiff=True,
        tensors_only=True,
        samples=lambda make: [(make(3, 4), make.ints(5, 3, 4)), (make(3, 1), make.ints(12, 4))],
        doc=doc,
    )
    op(
        f"special_{name}.x_scalar(Scalar x, Tensor n) -> Tensor",
        kernel,
        promote=Promotion.FLOAT,
        promoted=("x", "n"),
        nondiff=True,
        tensors_only=True,
        samples=lambda make: [(0.5, make.ints(5, 3, 4))],
    )
    op(
        f"special_{name}.n_scalar(Tensor x, Scalar n) -> Tensor",
        kernel,
        promote=Promotion.FLOAT,
        promoted=("x", "n"),
        nondiff=True,
        tensors_only=True,
        samples=lambda make: [(make(3, 4), 3)],
    )


for _kind in _KINDS:
    _declare(
        f"chebyshev_polynomial_{_kind}",
        _chebyshev(_kind, shifted=False),
        doc=_DOCS[f"special_chebyshev_polynomial_{_kind}"],
    )
    _declare(
        f"shifted_chebyshev_polynomial_{_kind}",
        _chebyshev(_kind, shifted=True),
        doc=_DOCS[f"special_shifted_chebyshev_polynomial_{_kind}"],
    )
_declare(
    "hermite_polynomial_h",
    _hermite(physicists=True),
    doc="""The physicists' Hermite polynomial of degree `n`.

    >>> torch.special.hermite_polynomial_h(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-1.])
    """,
)
_declare(
    "hermite_polynomial_he",
    _hermite(physicists=False),
    doc="""The probabilists' Hermite polynomial of degree `n`.

    >>> torch.special.hermite_polynomial_he(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-0.7500])
    """,
)
_declare(
    "laguerre_polynomial_l",
    _laguerre,
    doc="""The Laguerre polynomial of degree `n`.

    >>> torch.special.laguerre_polynomial_l(torch.tensor([0.5]), torch.tensor([2]))
    tensor([0.1250])
    """,
)
_declare(
    "legendre_polynomial_p",
    _legendre,
    doc="""The Legendre polynomial of degree `n`.

    >>> torch.special.legendre_polynomial_p(torch.tensor([0.5]), torch.tensor([2]))
    tensor([-0.1250])
    """,
)
