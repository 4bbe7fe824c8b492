"""Draws of the gamma and Dirichlet distributions, with gradients for their parameters.

By implicit differentiation, d sample / d a = - (dF/da) / density, where F is the distribution function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _surface as _torch
from .._autograd.function import Function
from .._autograd.grad_mode import is_grad_enabled
from .._core import dtype as dt
from .._core.tensor import make_tensor
from .._ops._support.special_math import converge, lgamma

torch: Any = _torch
_STEP = 1e-4


class _StandardGamma(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        sample = torch._standard_gamma(concentration)
        ctx.save_for_backward(concentration, sample)
        return sample

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        alpha, sample = ctx.saved_tensors
        a, z = alpha.detach().to(dt.float64), sample.detach().to(dt.float64).clamp(min=1e-300)
        step = _STEP * a
        slope = (torch.igamma(a + step, z) - torch.igamma(a - step, z)) / (2 * step)
        density = torch.exp((a - 1) * torch.log(z) - z - torch.lgamma(a))
        return grad * (-slope / density).to(grad.dtype)


def standard_gamma(concentration: Any) -> Any:
    """One draw of Gamma(concentration, 1) for each element."""
    if is_grad_enabled() and concentration.requires_grad:
        return _StandardGamma.apply(concentration)
    return torch._standard_gamma(concentration)


class _Dirichlet(Function):
    """The class has torch's name because profiles show it."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        sample = torch._sample_dirichlet(concentration)
        ctx.save_for_backward(sample, concentration)
        return sample

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        sample, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        # Each share by itself has a beta distribution; the others are scaled in proportion.
        x, a, whole = (t.detach().cpu()._array.astype(np.float64) for t in (sample, concentration, total))
        x = np.clip(x, np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg)
        slope = make_tensor(_beta_slope(x, a, whole - a) / (1 - x)).to(grad)
        return slope * (grad - (sample * grad).sum(-1, True))


def dirichlet(concentration: Any) -> Any:
    """One draw for each row of concentrations."""
    return _Dirichlet.apply(concentration)


def _beta_slope(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The derivative by a of a draw x of Beta(a, b), strictly between 0 and 1."""
    log_density = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    step = _STEP * a
    # From the nearer end, where the continued fraction converges; the complement has the opposite sign.
    low = x < (a + 1) / (a + b + 2)

    def scaled_cdf(moved: np.ndarray) -> np.ndarray:
        first, second, at = np.where(low, moved, b), np.where(low, b, moved), np.where(low, x, 1 - x)
        return np.exp(_log_incomplete_beta(at, first, second) - log_density)

    slope = (scaled_cdf(a + step) - scaled_cdf(a - step)) / (2 * step)
    return np.where(low, -slope, slope)


def _log_incomplete_beta(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The logarithm of the regularized incomplete beta function, by Lentz's evaluation of its continued fraction."""

    def step(
        m: int, total: np.ndarray, c: np.ndarray, d: np.ndarray, x: np.ndarray, a: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 / (1 + numerator * d)
            c = 1 + numerator / c
            total = total * c * d
        return np.abs(c * d - 1) < 1e-15, total, c, d, x, a, b

    x, a, b = np.broadcast_arrays(x, a, b)
    first = 1 / (1 - (a + b) * x / (a + 1))
    state = (first, np.ones_like(x), first, x, a, b)
    fraction = converge(step, *(vector.reshape(-1) for vector in state)).reshape(x.shape)
    return a * np.log(x) + b * np.log1p(-x) - np.log(a) + lgamma(a + b) - lgamma(a) - lgamma(b) + np.log(fraction)
