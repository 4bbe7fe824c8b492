"""Samples of distributions (bernoulli, multinomial, exponential, cauchy, geometric, log-normal): torch's numbers."""

from __future__ import annotations

import math

import numpy as np

from ..._core.dtype import int64
from ..._dispatch.facts import Batching
from ..._dispatch.out_dtypes import castable, unchecked
from ..._dispatch.registry import aten, op
from .._support.common import like_first, no_kernel, scalar_name
from .._support.factory import like, memory_order
from .._support.out_rules import exact_dtype
from .uniform_normal import float_only, scaled, source_of, store

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


def _zero_grad(g):
    return aten.zeros_like(g)


# ---------------------------------------------------------------- bernoulli


def _check_chance(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def _draw_with(self, chances, source):
    """Fill with ones, each with its own chance."""
    if chances.dtype.kind not in "fV":
        raise no_kernel("bernoulli_tensor_cpu_p_", chances)
    if chances.size and not (chances.min() >= 0 and chances.max() <= 1):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    chances = np.broadcast_to(chances, self.shape)
    if not self.flags.c_contiguous:
        chances = chances.transpose(memory_order(self))
    drawn = source.uniforms64(self.size) if chances.dtype == _F64 else source.uniforms(self.size)
    store(self, drawn < chances.reshape(-1))


@op(
    "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    node="BernoulliBackward1",
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def bernoulli_tensor_(self, p, generator):
    _draw_with(self, p, source_of(generator))


bernoulli_tensor_.vjp(self=_zero_grad, p=lambda g, p_shape: g.new_zeros(p_shape))


@op(
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    node="BernoulliBackward2",
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def bernoulli_(self, p, generator):
    _check_chance(p)
    store(self, source_of(generator).uniforms64(self.size) < p)


bernoulli_.vjp(self=_zero_grad)


@op(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    out_dtype=castable,
    nondiff=True,
    shape=like_first,
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
    out_overload="float_out",
)
def bernoulli_p(self, p, generator):
    """0 or 1 for each element, with the element as the probability of 1.

    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    draws = like(self, self.dtype)
    bernoulli_.kernel(draws, p, generator)
    return draws


@op(
    "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
    out_dtype=unchecked,
    nondiff=True,
    shape=like_first,
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def bernoulli_tensor(self, p, generator):
    draws = like(self, self.dtype)
    _draw_with(draws, p, source_of(generator))
    return draws


@op(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    out_dtype=unchecked,
    shape=like_first,
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def bernoulli(self, generator):
    draws = like(self, self.dtype)
    _draw_with(draws, self, source_of(generator))
    return draws


bernoulli.vjp(self=_zero_grad)


# ---------------------------------------------------------------- multinomial


def _multinomial_shape(self, num_samples, replacement, generator):
    return (*self._array.shape[:-1], num_samples), np.dtype(np.int64)


def _check_multinomial(weights, count, replacement):
    if weights.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if weights.dtype.kind not in "fV":
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: " + scalar_name(weights))
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if weights.shape[-1] > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")


@op(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    nondiff=True,
    shape=_multinomial_shape,
    samples=lambda make: [],
    batching=Batching.RANDOM_BY_SAMPLE,
    host_made=True,
    out_rule=exact_dtype(
        lambda args: int64, lambda want, have: f"multinomial expects Long tensor out, got: {have.scalar_name}"
    ),
)
def multinomial(self, num_samples, replacement, generator):
    """Positions drawn with the elements of a row as weights.

    >>> torch.multinomial(torch.tensor([0.0, 1.0]), 1)
    tensor([1])
    """
    _check_multinomial(self, num_samples, replacement)
    source = source_of(generator)
    if not self.size:
        return np.empty((*self.shape[:-1], num_samples), np.int64)
    rows = self.reshape(-1, self.shape[-1])
    positions = (
        _with_replacement(rows, num_samples, source) if replacement and num_samples > 1 else _race(rows, num_samples, source)
    )
    return positions.reshape(*self.shape[:-1], num_samples)


def _race(weights, count, source):
    """Each category finishes after an exponential time; the first ones are the sample."""
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not weights.sum(axis=1, dtype=np.float64).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    times = _exponential(weights.size, 1.0, source).astype(weights.dtype).reshape(weights.shape)
    with np.errstate(all="ignore"):
        speed = weights / times
    if count == 1:
        return speed.argmax(axis=1, keepdims=True)
    return np.ascontiguousarray(np.argsort(-speed.astype(np.float64), axis=1, kind="stable")[:, :count])


def _with_replacement(weights, count, source):
    """Places of uniform numbers in the cumulated weights."""
    work = weights if weights.dtype in (_F32, _F64) else weights.astype(_F32)
    fine = (work >= 0) & (work < np.inf)
    if not fine.all():
        # The first that is wrong is named; NaN counts as one that is not positive.
        wrong = "= infinity or NaN" if work[~fine][0] == np.inf else "< 0"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {wrong})")
    total = np.add.accumulate(work, axis=1)
    if not (total[:, -1] > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    total = (total / total[:, -1:]).astype(_F64)
    drawn = source.uniforms64(len(work) * count).reshape(len(work), count)
    return np.stack([np.searchsorted(steps, uniform, "left") for steps, uniform in zip(total, drawn, strict=True)])


# ---------------------------------------------------------------- continuous and counting distributions


def _exponential(count, rate, source):
    return np.log1p(-source.uniforms64(count)) * (-1.0 / rate)


@op(
    "exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def exponential_(self, lambd, generator):
    if self.dtype.kind not in "fV":
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {scalar_name(self)}"
        )
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    store(self, _exponential(self.size, lambd, source_of(generator)))


exponential_.vjp(self=_zero_grad)


@op(
    "cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor(a!)",
    samples=lambda make: [],
    batching=Batching.RANDOM,
)
def cauchy_(self, median, sigma, generator):
    if self.dtype.kind not in "fV":
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating "
            f"point but you specified {scalar_name(self)}"
        )
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    angle = np.pi * (source_of(generator).uniforms64(self.size) - 0.5)
    draws = np.tan(angle)
    # What is rounded once has no answer where one of its terms is infinite.
    finite = math.isfinite(median) and math.isfinite(sigma)
    store(self, scaled(draws, float(sigma), float(median)) if finite else draws * sigma + median)


cauchy_.vjp(self=_zero_grad)


@op(
    "log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor(a!)",
    samples=lambda make: [],
    batching=Batching.RANDOM,
)
def log_normal_(self, mean, std, generator):
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    float_only(self.dtype, "log_normal_cpu")
    store(self, np.exp(scaled(source_of(generator).normal_pairs(self.size), float(std), float(mean))))


log_normal_.vjp(self=_zero_grad)


@op(
    "geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
    samples=lambda make: [],
    batching=Batching.RANDOM,
)
def geometric_(self, p, generator):
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    drawn = source_of(generator).uniforms64(self.size)
    with np.errstate(divide="ignore"):
        store(self, np.ceil(np.log(drawn) / math.log1p(-p)))


geometric_.vjp(self=_zero_grad)
