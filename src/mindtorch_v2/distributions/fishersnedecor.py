"""FisherSnedecor: the ratio of two chi-squared variables over their degrees of freedom."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._core import dtype as dt
from .._core.size import Size
from . import constraints
from .continuous import Gamma
from .distribution import Distribution
from .utils import broadcast_all

torch: Any = _torch


class FisherSnedecor(Distribution):
    """FisherSnedecor(df1, df2): the F distribution."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        plain = isinstance(df1, int | float) and isinstance(df2, int | float)
        super().__init__(Size() if plain else self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        df2 = self.df2.clone()
        df2[df2 <= 2] = math.nan
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = math.nan
        return mode

    @property
    def variance(self) -> Any:
        df2 = self.df2.clone()
        df2[df2 <= 4] = math.nan
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        first = self._gamma1.rsample(sample_shape).view(shape)
        second = self._gamma2.rsample(sample_shape).view(shape)
        tiny = dt.finfo(second.dtype).tiny
        second = second.clamp(min=tiny)
        return (first / second).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        half1, half2 = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        norm = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * torch.log(value)
        return norm + power - (half1 + half2) * torch.log1p(ratio * value)
