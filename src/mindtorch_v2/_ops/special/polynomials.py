"""Orthogonal polynomials, which have no derivative in torch; declared when `mindtorch_v2.special` is imported.

An order is a number or a tensor, truncated to an integer; the polynomial of a negative order is 0. The dtype of the result is
that of the computation, as in torch, so that the same orders overflow. As in torch, the time grows with the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.registry import op
from .._support.elementwise import need_single_or_double

# p(k + 1) from k, p(k), p(k - 1) and x
Step = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Polynomial = Callable[[np.ndarray, np.ndarray], np.ndarray]
_CLOSED_FROM = 7  # orders from which Chebyshev polynomials inside (-1, 1) are computed by their angle


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
    k = 1
    while index.size:
        done = (orders == k) | np.isnan(now)
        if done.any():
            flat[index[done]] = now[done]
            index, orders, x, now, before = (vector[~done] for vector in (index, orders, x, now, before))
        before, now = now, step(k, now, before, x)
        k += 1
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


def _declare(name: str, polynomial: Polynomial) -> None:
    kernel_name = f"{name}_cpu"

    def kernel(x: Any, n: Any) -> np.ndarray:
        dtype = x.dtype if isinstance(x, np.ndarray) else n.dtype
        x, n = np.broadcast_arrays(np.asarray(x, dtype), np.asarray(n, dtype))
        need_single_or_double(kernel_name, x)
        return polynomial(x, _orders(n))

    op(
        f"special_{name}(Tensor x, Tensor n) -> Tensor",
        kernel,
        promote="float",
        nondiff=True,
        tags=("tensors",),
        samples=lambda make: [(make(3, 4), make.ints(5, 3, 4)), (make(3, 1), make.ints(12, 4))],
    )
    op(
        f"special_{name}.x_scalar(Scalar x, Tensor n) -> Tensor",
        kernel,
        promote="float",
        promoted=("x", "n"),
        nondiff=True,
        tags=("tensors",),
        samples=lambda make: [(0.5, make.ints(5, 3, 4))],
    )
    op(
        f"special_{name}.n_scalar(Tensor x, Scalar n) -> Tensor",
        kernel,
        promote="float",
        promoted=("x", "n"),
        nondiff=True,
        tags=("tensors",),
        samples=lambda make: [(make(3, 4), 3)],
    )


for _kind in _KINDS:
    _declare(f"chebyshev_polynomial_{_kind}", _chebyshev(_kind, shifted=False))
    _declare(f"shifted_chebyshev_polynomial_{_kind}", _chebyshev(_kind, shifted=True))
_declare("hermite_polynomial_h", _hermite(physicists=True))
_declare("hermite_polynomial_he", _hermite(physicists=False))
_declare("laguerre_polynomial_l", _laguerre)
_declare("legendre_polynomial_p", _legendre)
