"""VonMises: angles around a direction."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._autograd.grad_mode import no_grad
from .._core import dtype as dt
from .._core.size import Size
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

torch: Any = _torch

_MOST_ROUNDS = 10_000

# Abramowitz and Stegun 9.8.1 to 9.8.4: coefficients of I0 and I1, for small and for large arguments.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (
        0.39894228,
        0.1328592e-1,
        0.225319e-2,
        -0.157565e-2,
        0.916281e-2,
        -0.2057706e-1,
        0.2635537e-1,
        -0.1647633e-1,
        0.392377e-2,
    ),
    (
        0.39894228,
        -0.3988024e-1,
        -0.362018e-2,
        0.163801e-2,
        -0.1031555e-1,
        0.2282967e-1,
        -0.2895312e-1,
        0.1787654e-1,
        -0.420059e-2,
    ),
)


def _polynomial(y: Any, coefficients: tuple[float, ...]) -> Any:
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + y * result
    return result


def _log_modified_bessel_fn(x: Any, order: int = 0) -> Any:
    """log I(order, x) for positive x."""
    y = (x / 3.75) * (x / 3.75)
    small = _polynomial(y, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    y = 3.75 / x
    large = x - 0.5 * x.log() + _polynomial(y, _LARGE[order]).log()
    return torch.where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """VonMises(loc, concentration): angles in [-pi, pi) around `loc`; `concentration` is like the inverse of a variance."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return type(self)(self.loc.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=False)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        log_prob = self.concentration * torch.cos(value - self.loc)
        return log_prob - math.log(2 * math.pi) - _log_modified_bessel_fn(self.concentration, order=0)

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.to(dt.float64)

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.to(dt.float64)

    @lazy_property
    def _proposal_r(self) -> Any:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        exact = (1 + rho**2) / (2 * rho)
        taylor = 1 / kappa + kappa  # where the exact form loses its digits
        return torch.where(kappa < 1e-5, taylor, exact)

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw by rejection from a wrapped Cauchy, in double precision: Best and Fisher, 1979."""
        shape = self._extended_shape(sample_shape)
        x = torch.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
        with no_grad():
            concentration, r = self._concentration, self._proposal_r
            done = torch.zeros(x.shape, dtype=dt.bool_, device=x.device)
            for _ in range(_MOST_ROUNDS):
                if bool(done.all()):
                    break
                u1, u2, u3 = torch.rand((3, *x.shape), dtype=x.dtype, device=x.device).unbind()
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = concentration * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                if bool(accept.any()):
                    x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                    done = done | accept
            else:
                raise RuntimeError(f"VonMises: no sample was accepted in {_MOST_ROUNDS} tries")
            return ((x + math.pi + self._loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        """The circular variance, from 0 to 1."""
        order1, order0 = (_log_modified_bessel_fn(self.concentration, order=order) for order in (1, 0))
        return 1 - (order1 - order0).exp()
