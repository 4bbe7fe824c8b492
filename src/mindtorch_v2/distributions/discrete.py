"""Distributions over integers and categories."""

from __future__ import annotations

from typing import Any

from .. import _surface as _torch
from .._autograd.grad_mode import no_grad
from .._core import dtype as dt
from .._core.size import Size
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

torch: Any = _torch


def _exactly_one(name: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def _clamp_by_zero(x: Any) -> Any:
    """max(x, 0), with the gradient one half at zero."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class _Binary(ExponentialFamily):
    """Distributions with a probability of success, given as such or as log odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _take(self, probs: Any, logits: Any) -> Any:
        _exactly_one(type(self).__name__, probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            return self.probs
        (self.logits,) = broadcast_all(logits)
        return self.logits

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Any:
        return self.probs if "probs" in self.__dict__ else self.logits


class Bernoulli(_Binary):
    """Bernoulli(probs) or Bernoulli(logits=...): zero or one."""

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = float("nan")
        return mode

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = torch.arange(2, dtype=self._param.dtype).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    _mean_carrier_measure = 0
    _natural_params = property(lambda self: (self.logits,))  # type: ignore[assignment]

    def _log_normalizer(self, x: Any) -> Any:
        return torch.log1p(torch.exp(x))


class Geometric(_Binary):
    """Geometric(probs): failures before the first success."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take(probs, logits).shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{value}"
            )

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: torch.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            drawn = torch.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype)
            drawn = drawn.clamp(min=dt.finfo(self.probs.dtype).tiny)
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        return torch.where((probs == 1) & (value == 0), torch.zeros_like(probs), value * (-probs).log1p()) + probs.log()

    def entropy(self) -> Any:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Binomial(Distribution):
    """Binomial(total_count, probs): successes among `total_count`."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _exactly_one("Binomial", probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.type_as(self.probs if probs is not None else self.logits)
        super().__init__(self.total_count.shape, validate_args=validate_args)

    logits, probs = _Binary.logits, _Binary.probs
    support = constraints.dependent_property(  # type: ignore[assignment]
        lambda self: constraints.integer_interval(0, self.total_count), is_discrete=True, event_dim=0
    )
    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count.to(self.logits.dtype)
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        logits = self.logits
        return ways + value * logits - n * (_clamp_by_zero(logits) + torch.log1p(torch.exp(-torch.abs(logits))))

    def entropy(self) -> Any:
        chances = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(chances) * chances).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        most = int(self.total_count.max())
        if not bool((self.total_count == most).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + most, dtype=self.probs.dtype).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class Poisson(ExponentialFamily):
    """Poisson(rate): events in a stretch of time."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.poisson(self.rate.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return torch.xlogy(value, rate) - rate - torch.lgamma(value + 1)

    _natural_params = property(lambda self: (torch.log(self.rate),))  # type: ignore[assignment]

    def _log_normalizer(self, x: Any) -> Any:
        return torch.exp(x)


class Categorical(Distribution):
    """Categorical(probs) or Categorical(logits=...): an index, the categories along the last dim."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _exactly_one("Categorical", probs, logits)
        parameter = probs if probs is not None else logits
        if parameter.ndim < 1:
            raise ValueError(f"`{'probs' if probs is not None else 'logits'}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = parameter.shape[-1]
        super().__init__(parameter.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Any:
        return self.probs if "probs" in self.__dict__ else self.logits

    support = constraints.dependent_property(  # type: ignore[assignment]
        lambda self: constraints.integer_interval(0, self._num_events - 1), is_discrete=True, event_dim=0
    )
    param_shape = property(lambda self: self._param.shape)
    mean = variance = property(lambda self: torch.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype))
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = Size(sample_shape)
        with no_grad():
            drawn = torch.multinomial(self.probs.reshape(-1, self._num_events), shape.numel(), True).t()
        return drawn.reshape(self._extended_shape(shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = torch.broadcast_tensors([value, self.logits])
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=dt.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = torch.arange(self._num_events).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """OneHotCategorical(probs): a category as a vector with a single one."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: torch.one_hot(self.probs.argmax(-1), self.probs.shape[-1]).to(self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample(sample_shape)
        return torch.one_hot(drawn, self._categorical._num_events).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self.probs.dtype).view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Draws are one-hot, and their gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn, probs = self.sample(sample_shape), self.probs
        return drawn + (probs - probs.detach())


class Multinomial(Distribution):
    """Multinomial(total_count, probs): how often each category was drawn."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    support = constraints.dependent_property(  # type: ignore[assignment]
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    )

    def entropy(self) -> Any:
        n = torch.tensor(self.total_count)
        own = self._categorical.entropy()
        ways = n * own - torch.lgamma(n + 1)
        binomial = Binomial(self.total_count, self.probs)
        counts = binomial.enumerate_support(expand=False)[1:]
        weights = torch.exp(binomial.log_prob(counts))
        return ways + (weights * torch.lgamma(counts + 1)).sum((0, -1))

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        return torch.one_hot(drawn, self._categorical._num_events).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return (
            torch.lgamma(value.sum(-1) + 1)
            - torch.lgamma(value + 1).sum(-1)
            + torch.where((value == 0) & (logits == float("-inf")), torch.zeros_like(logits), logits * value).sum(-1)
        )

    def __repr__(self) -> str:
        return "Multinomial()"
