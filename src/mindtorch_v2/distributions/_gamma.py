"""Samples of the standard gamma distribution, with gradients for its shape parameter."""

from __future__ import annotations

from typing import Any

from .. import _surface as _torch
from .._autograd.function import Function
from .._autograd.grad_mode import no_grad
from .._core import dtype as dt

torch: Any = _torch
_STEP = 1e-4


def _draw(alpha: Any) -> Any:
    """Marsaglia and Tsang: a cubed normal is accepted most of the time; shapes below one are lifted and corrected."""
    lifted = torch.where(alpha < 1, alpha + 1, alpha)
    d = lifted - 1.0 / 3.0
    c = torch.rsqrt(9.0 * d)
    made = torch.zeros_like(alpha)
    waiting = alpha == alpha
    while bool(waiting.any()):
        x = torch.randn_like(alpha)
        v = (1.0 + c * x) ** 3
        u = torch.rand_like(alpha)
        accepted = (v > 0) & (torch.log(u) < 0.5 * x * x + d - d * v + d * torch.log(v.clamp(min=1e-300)))
        made = torch.where(waiting & accepted, d * v, made)
        waiting = waiting & ~accepted
    correction = torch.rand_like(alpha).clamp(min=1e-300) ** (1.0 / alpha)
    return torch.where(alpha < 1, made * correction, made)


class _StandardGamma(Function):
    """By implicit differentiation, d sample / d alpha = - (dF/dalpha) / density, F being the distribution function."""

    @staticmethod
    def forward(ctx: Any, alpha: Any) -> Any:
        with no_grad():
            sample = _draw(alpha.to(dt.float64)).to(alpha.dtype)
        ctx.save_for_backward(alpha, sample)
        return sample

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        alpha, sample = ctx.saved_tensors
        a, z = alpha.detach().to(dt.float64), sample.detach().to(dt.float64).clamp(min=1e-300)
        step = _STEP * a
        slope = (torch.igamma(a + step, z) - torch.igamma(a - step, z)) / (2 * step)
        density = torch.exp((a - 1) * torch.log(z) - z - torch.lgamma(a))
        return grad * (-slope / density).to(grad.dtype)


def standard_gamma(alpha: Any) -> Any:
    """One draw of Gamma(alpha, 1) for each element."""
    return _StandardGamma.apply(alpha)
