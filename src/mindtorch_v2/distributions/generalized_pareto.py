"""GeneralizedPareto: what lies above a threshold."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._core.size import Size
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

torch: Any = _torch


class GeneralizedPareto(Distribution):
    """GeneralizedPareto(loc, scale, concentration): an exponential tail for a concentration of zero, else a power."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        plain = all(isinstance(value, int | float) for value in (loc, scale, concentration))
        super().__init__(Size() if plain else self.loc.size(), validate_args=validate_args)

    def _is_exponential(self) -> Any:
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = torch.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(drawn)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = self._z(value)
        is_exponential = self._is_exponential()
        safe = torch.where(is_exponential, torch.ones_like(self.concentration), self.concentration)
        power = 1 / safe + torch.ones_like(z)
        return -self.scale.log() + torch.where(is_exponential, -z, -power * torch.log1p(self.concentration * z))

    def log_survival_function(self, value: Any) -> Any:
        """log P(X > value)."""
        self._validate_sample(value)
        z = self._z(value)
        is_exponential = self._is_exponential()
        safe = torch.where(is_exponential, torch.ones_like(self.concentration), self.concentration)
        return torch.where(is_exponential, -z, -torch.log1p(self.concentration * z) / safe)

    def log_cdf(self, value: Any) -> Any:
        """log P(X <= value)."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        is_exponential = self._is_exponential()
        safe = torch.where(is_exponential, torch.ones_like(self.concentration), self.concentration)
        log_left = torch.log1p(-value)
        power = self.loc + self.scale * torch.expm1(-safe * log_left) / safe
        return torch.where(is_exponential, self.loc - self.scale * log_left, power)

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        is_finite = self.concentration < 1
        safe = torch.where(is_finite, self.concentration, torch.full_like(self.concentration, 0.5))
        return torch.where(is_finite, self.loc + self.scale / (1 - safe), torch.full_like(self.loc, math.inf))

    @property
    def variance(self) -> Any:
        is_finite = self.concentration < 0.5
        safe = torch.where(is_finite, self.concentration, torch.full_like(self.concentration, 0.25))
        value = self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe))
        return torch.where(is_finite, value, torch.full_like(self.loc, math.inf))

    def entropy(self) -> Any:
        return torch.broadcast_tensors([torch.log(self.scale) + self.concentration + 1, self.loc])[0]

    mode = property(lambda self: self.loc)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = torch.where(
            self.concentration < 0,
            self.loc
            - self.scale / torch.where(self.concentration < 0, self.concentration, -torch.ones_like(self.concentration)),
            torch.full_like(self.loc, math.inf),
        )
        return constraints.interval(self.loc, upper)
