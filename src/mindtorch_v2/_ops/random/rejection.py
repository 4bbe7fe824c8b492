"""Distributions sampled by rejection: poisson, binomial, gamma, dirichlet.

How many uniform numbers an element takes depends on their values, so elements are sampled one after another. Parameters for
which no try would ever be accepted (nan, infinities) are answered before the first, and a search ends after `_MOST_TRIES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._core.rng import Generator
from ..._dispatch.facts import Batching
from ..._dispatch.registry import aten, op
from .._support.common import like_first
from .._support.factory import like
from .uniform_normal import float_only, source_of

# At least every third try of these methods is accepted; this many in a row are refused once in 10**1700 times.
_MOST_TRIES = 10_000
_HUGE = 1e300  # from here on the spread is far below the last digit, and a logarithm of a factorial would overflow


def _never(name: str) -> RuntimeError:
    return RuntimeError(f"{name}: no sample was accepted in {_MOST_TRIES} tries")


def _each(sample: Callable[..., float], source: Generator, *operands: np.ndarray) -> np.ndarray:
    """A sample for each element of the operands, which are broadcast to one shape."""
    operands = np.broadcast_arrays(*operands)
    numbers = zip(*[o.astype(np.float64).reshape(-1).tolist() for o in operands], strict=True)
    draws = like(operands[0], operands[0].dtype)
    draws[...] = np.array([sample(source, *each) for each in numbers], np.float64).reshape(draws.shape)
    return draws


# ---------------------------------------------------------------- poisson


def _poisson(source: Generator, rate: float) -> float:
    if rate >= _HUGE:
        return rate
    if rate >= 10:
        return _poisson_large(source, rate)
    if rate == 0:
        return 0.0
    # Count how many uniform numbers can be multiplied until the product falls below exp(-rate).
    limit, product = math.exp(-rate), 1.0
    for count in range(_MOST_TRIES):
        product *= source.uniform()
        if product <= limit:
            return float(count)
    raise _never("poisson")


def _poisson_large(source: Generator, rate: float) -> float:
    """Poisson for large rates: Hoermann's transformed rejection (PTRS)."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    bound = 0.9277 - 3.6224 / (b - 2)
    for _ in range(_MOST_TRIES):
        u = source.uniform() - 0.5
        v = source.uniform()
        edge = 0.5 - abs(u)
        k = math.floor((2 * a / edge + b) * u + rate + 0.43)
        if edge >= 0.07 and v <= bound:
            return float(k)
        if k < 0 or (edge < 0.013 and v > edge):
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (edge * edge) + b) <= -rate + k * math.log(rate) - math.lgamma(
            k + 1
        ):
            return float(k)
    raise _never("poisson")


@op(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    shape=like_first,
    samples=lambda make: [],
    batching=Batching.RANDOM,
)
def poisson(self, generator):
    """Poisson random numbers with the elements as rates.

    >>> torch.poisson(torch.tensor([0.0]))
    tensor([0.])
    """
    float_only(self.dtype, "poisson_cpu")
    if not (self >= 0).all():  # also where one is nan
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return _each(_poisson, source_of(generator), self)


poisson.vjp(self=lambda g: aten.zeros_like(g))


# ---------------------------------------------------------------- binomial

_TAIL = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)


def _stirling_tail(k: float) -> float:
    """What Stirling's formula leaves out of log(k!)."""
    if k <= 9:
        return _TAIL[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _binomial(source: Generator, count: float, chance: float) -> float:
    if count <= 0 or chance <= 0:
        return 0.0
    if chance >= 1:
        return count
    if math.isnan(chance) or math.isnan(count):
        return math.nan
    if count >= _HUGE:
        return count * chance
    low = min(chance, 1 - chance)
    sample = _binomial_rejection if count * low >= 10 else _binomial_gaps
    successes = sample(source, count, low)
    return successes if chance <= 0.5 else count - successes


def _binomial_gaps(source: Generator, count: float, chance: float) -> float:
    """Add up gaps between successes, which are geometric, until they pass the end."""
    scale, passed = math.log1p(-chance), 0.0
    for successes in range(_MOST_TRIES):
        u = source.uniform()
        gap = math.log(u) / scale if u > 0 else math.inf
        passed += math.ceil(gap) if gap < _HUGE else gap
        if passed > count:
            return float(successes)
    raise _never("binomial")


def _binomial_rejection(source: Generator, count: float, chance: float) -> float:
    """Hoermann's transformed rejection with squeeze (BTRS)."""
    deviation = math.sqrt(count * chance * (1 - chance))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    center = count * chance + 0.5
    bound = 0.92 - 4.2 / b
    odds = chance / (1 - chance)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((count + 1) * chance)
    for _ in range(_MOST_TRIES):
        u = source.uniform() - 0.5
        v = source.uniform()
        edge = 0.5 - abs(u)
        k = math.floor((2 * a / edge + b) * u + center)
        if edge >= 0.07 and v <= bound:
            return float(k)
        if k < 0 or k > count:
            continue
        height = math.log(v * alpha / (a / (edge * edge) + b))
        limit = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(count - mode)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if height <= limit:
            return float(k)
    raise _never("binomial")


@op(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    shape=lambda count, prob, generator: (np.broadcast_shapes(count._array.shape, prob._array.shape), count._array.dtype),
    batching=Batching.RANDOM,
)
def binomial(count, prob, generator):
    """The number of successes in `count` tries, each with probability `prob`.

    >>> torch.binomial(torch.tensor([10.0]), torch.tensor([1.0]))
    tensor([10.])
    """
    float_only(count.dtype, "binomial_cpu")
    float_only(prob.dtype, "binomial_cpu")
    return _each(_binomial, source_of(generator), count, prob)


# ---------------------------------------------------------------- gamma and dirichlet


_THIRD = float(np.float32(1 / 3))  # with the digits that torch uses


def _gamma(source: Generator, alpha: float) -> float:
    """The standard gamma distribution by Marsaglia and Tsang's method; `alpha` below 1 is boosted by 1 first."""
    if not 0 <= alpha < _HUGE:
        return alpha if alpha > 0 else math.nan
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale *= (1 - source.uniform()) ** (1 / alpha)
        alpha += 1
    d = alpha - _THIRD
    c = 1 / math.sqrt(9 * d)
    for _ in range(_MOST_TRIES):
        x = source.normal()
        y = 1 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1 - source.uniform()
        square = x * x
        if u < 1 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v
    raise _never("gamma")


@op(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    shape=like_first,
    samples=lambda make: [],
    batching=Batching.RANDOM,
)
def standard_gamma(self, generator):
    float_only(self.dtype, "gamma")
    draws = _each(_gamma, source_of(generator), self)
    return np.maximum(draws, np.finfo(draws.dtype).tiny, out=draws)


@op(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    shape=like_first,
    samples=lambda make: [],
    batching=Batching.RANDOM_BY_SAMPLE,
)
def sample_dirichlet(self, generator):
    float_only(self.dtype, "dirichlet")
    draws = _each(_gamma, source_of(generator), self.astype(np.float64))
    draws /= draws.sum(axis=-1, keepdims=True)
    return np.maximum(draws, np.finfo(self.dtype).tiny).astype(self.dtype)
