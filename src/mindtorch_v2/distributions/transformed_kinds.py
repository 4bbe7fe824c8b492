"""Distributions that are a simple one, transformed: the halves of symmetric ones, and Gumbel's."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._core import dtype as dt
from . import constraints
from .continuous import Cauchy, Normal, Uniform
from .transformed import TransformedDistribution
from .transforms import AbsTransform, AffineTransform, ExpTransform
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
