"""Distributions that are a simple one, transformed: the halves of symmetric ones, Gumbel's, Weibull's, Pareto's and others."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._core import dtype as dt
from . import constraints
from .continuous import Cauchy, Exponential, Gamma, Normal, Uniform
from .transformed import TransformedDistribution
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform, StickBreakingTransform
from .utils import broadcast_all

torch: Any = _torch
_EULER = 0.57721566490153286060


class _Half(TransformedDistribution):
    """The absolute value of a variable around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative  # type: ignore[assignment]
    has_rsample = True  # type: ignore[assignment]

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: torch.zeros_like(self.scale))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        density = self.base_dist.log_prob(value) + math.log(2)
        return torch.where(value >= 0, density, torch.full_like(density, -math.inf))

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Any:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """HalfNormal(scale): the absolute value of a normal around zero."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """HalfCauchy(scale): the absolute value of a Cauchy variable around zero."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    mean = variance = property(lambda self: torch.full_like(self.scale, math.inf))


class Gumbel(TransformedDistribution):
    """Gumbel(loc, scale): the largest of many."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = dt.finfo(self.loc.dtype)
        base = Uniform(
            torch.full_like(self.loc, limits.tiny), torch.full_like(self.loc, 1 - limits.eps), validate_args=validate_args
        )
        transforms = [
            ExpTransform().inv,
            AffineTransform(0, -torch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        expanded = super().expand(batch_shape)
        expanded.loc, expanded.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return expanded

    def __repr__(self) -> str:
        return super(TransformedDistribution, self).__repr__()

    mean = property(lambda self: self.loc + self.scale * _EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return torch.exp(-torch.exp((self.loc - value) / self.scale))

    def entropy(self) -> Any:
        return self.scale.log() + (1 + _EULER)


class _WithParameters(TransformedDistribution):
    """Keeps parameters of its own, by the names of its constraints, which expand with it."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        expanded = super().expand(batch_shape, _instance)
        for name in self.arg_constraints:
            if name in self.__dict__:
                setattr(expanded, name, self.__dict__[name].expand(batch_shape))
        return expanded

    def __repr__(self) -> str:
        return super(TransformedDistribution, self).__repr__()


class Weibull(_WithParameters):
    """Weibull(scale, concentration): lifetimes; an exponential for a concentration of one."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration.reciprocal()), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(
            self.scale.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=self._validate_args
        )

    mean = property(lambda self: self.scale * torch.exp(torch.lgamma(1 + self.concentration.reciprocal())))

    @property
    def mode(self) -> Any:
        order = self.concentration
        return self.scale * ((order - 1) / order) ** order.reciprocal()

    @property
    def variance(self) -> Any:
        inverse = self.concentration.reciprocal()
        return self.scale.pow(2) * (torch.exp(torch.lgamma(1 + 2 * inverse)) - torch.exp(2 * torch.lgamma(1 + inverse)))

    def entropy(self) -> Any:
        inverse = self.concentration.reciprocal()
        return _EULER * (1 - inverse) + torch.log(self.scale * inverse) + 1


class Pareto(_WithParameters):
    """Pareto(scale, alpha): values above `scale` whose tail falls with the power `alpha`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(self.scale.expand(batch_shape), self.alpha.expand(batch_shape), validate_args=self._validate_args)

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)  # infinite below
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    support = constraints.dependent_property(  # type: ignore[assignment]
        lambda self: constraints.greater_than_eq(self.scale), is_discrete=False, event_dim=0
    )

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class InverseGamma(TransformedDistribution):
    """InverseGamma(concentration, rate): the reciprocal of a gamma variable."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(exponent=-base.rate.new_ones(())), validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)

    @property
    def mean(self) -> Any:
        result = self.rate / (self.concentration - 1)
        return torch.where(self.concentration > 1, result, torch.full_like(result, math.inf))

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Any:
        result = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return torch.where(self.concentration > 2, result, torch.full_like(result, math.inf))

    def entropy(self) -> Any:
        order = self.concentration
        return order + self.rate.log() + order.lgamma() - (1 + order) * order.digamma()


class Kumaraswamy(_WithParameters):
    """Kumaraswamy(concentration1, concentration0): like a beta, with a simple cdf."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        like = self.concentration0
        base = Uniform(torch.full_like(like, 0), torch.full_like(like, 1), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(
            self.concentration1.expand(batch_shape),
            self.concentration0.expand(batch_shape),
            validate_args=self._validate_args,
        )

    def _moment(self, n: int) -> Any:
        a, b = self.concentration1, self.concentration0
        arg = 1 + n / a
        return torch.exp(torch.log(b) + torch.lgamma(arg) + torch.lgamma(b) - torch.lgamma(arg + b))

    mean = property(lambda self: self._moment(1))

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * (-b).log1p() - (-a * b).log1p()
        log_mode = torch.where((a < 1) | (b < 1), torch.full_like(log_mode, math.nan), log_mode)
        return log_mode.exp()

    variance = property(lambda self: self._moment(2) - torch.pow(self.mean, 2))

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        t1, t0 = 1 - a.reciprocal(), 1 - b.reciprocal()
        harmonic = torch.digamma(b + 1) + _EULER
        return t0 + t1 * harmonic - torch.log(a) - torch.log(b)


class LogisticNormal(TransformedDistribution):
    """LogisticNormal(loc, scale): normals of K - 1 numbers, made K probabilities by breaking a stick."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
