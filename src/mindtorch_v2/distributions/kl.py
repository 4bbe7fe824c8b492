"""kl_divergence: how far one distribution is from another."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import _surface as _torch
from .._autograd.backward import grad
from .continuous import Beta, Dirichlet, Exponential, Gamma, Laplace, Normal, Uniform
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, ExponentialFamily
from .multivariate import Independent, MultivariateNormal
from .transformed import TransformedDistribution
from .utils import _sum_rightmost

torch: Any = _torch

_KNOWN: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function for a pair of types; the most derived pair that fits is used."""
    for kind in (type_p, type_q):
        # Any class, as in torch: libraries register kinds of their own that only behave like distributions.
        if not isinstance(kind, type):
            raise TypeError(f"Expected {kind} to be a class")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _KNOWN[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """KL(p || q), one number for each distribution of the batch."""
    fitting = [pair for pair in _KNOWN if isinstance(p, pair[0]) and isinstance(q, pair[1])]
    if not fitting:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    places = {pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])) for pair in fitting}
    left = min(fitting, key=lambda pair: places[pair])
    right = min(fitting, key=lambda pair: places[pair][::-1])
    if _KNOWN[left] is not _KNOWN[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type(p).__name__}, {type(q).__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=2,
        )
    return _KNOWN[left](p, q)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    divergence = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), torch.full_like(divergence, math.inf), divergence)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * torch.exp(-distance / p.scale) - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    return (
        q.concentration * (p.rate / q.rate).log()
        + torch.lgamma(q.concentration)
        - torch.lgamma(p.concentration)
        + (p.concentration - q.concentration) * torch.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    log_norms = (
        torch.lgamma(total_p)
        - torch.lgamma(p.concentration).sum(-1)
        - (torch.lgamma(total_q) - torch.lgamma(q.concentration).sum(-1))
    )
    surprise = torch.digamma(p.concentration) - torch.digamma(total_p).unsqueeze(-1)
    return log_norms + ((p.concentration - q.concentration) * surprise).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    def term(first: Any, second: Any) -> Any:
        divergence = first * (first / second).log()
        divergence = torch.where(second == 0, torch.full_like(divergence, math.inf), divergence)
        return torch.where(first == 0, torch.zeros_like(divergence), divergence)

    return term(p.probs, q.probs) + term(1 - p.probs, 1 - q.probs)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    divergences = p.probs * (p.logits - q.logits)
    divergences = torch.where((q.probs == 0).expand(divergences.shape), torch.full_like(divergences, math.inf), divergences)
    return torch.where((p.probs == 0).expand(divergences.shape), torch.zeros_like(divergences), divergences).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    divergence = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return torch.where(
        (p.total_count > q.total_count).expand(divergence.shape), torch.full_like(divergence, math.inf), divergence
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    solved = torch.linalg_solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    shift = torch.linalg_solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False)
    return (
        q._log_determinant()
        - p._log_determinant()
        + 0.5 * (solved.pow(2).sum((-2, -1)) + shift.pow(2).sum((-2, -1)) - p.event_shape[0])
    )


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    """By the Bregman divergence of log-normalizers."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    natural = [parameter.detach().requires_grad_() for parameter in p._natural_params]
    own = p._log_normalizer(*natural)
    gradients = grad(own.sum(), natural, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - own
    for mine, other, gradient in zip(natural, q._natural_params, gradients, strict=True):
        result = result - _sum_rightmost((other - mine) * gradient, len(q.event_shape))
    return result
