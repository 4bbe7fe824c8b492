"""KL divergences between distributions of different families, and of the rarer ones; those of one family are in `kl`."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .continuous import Beta, Cauchy, Exponential, Gamma, Laplace, Normal, Uniform
from .continuous_bernoulli import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Poisson
from .kl import _normal, register_kl
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _batch_lowrank_logdet, _batch_lowrank_mahalanobis
from .multivariate import MultivariateNormal
from .transformed_kinds import Gumbel, HalfNormal, Pareto
from .utils import euler_constant as _EULER

torch: Any = _torch


def _infinite_where(result: Any, condition: Any) -> Any:
    return torch.where(condition, torch.full_like(result, math.inf), result)


def _x_log_x(value: Any) -> Any:
    return torch.where(
        value == 0, torch.zeros_like(value), value * torch.where(value == 0, torch.ones_like(value), value).log()
    )


# ---------------------------------------------------------------- one family


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_where(result, p.scale < q.scale)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, own, other = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    return -ratio.log() - other + own + ratio * _EULER + torch.exp(other + (1 + ratio).lgamma() - own) - (1 + _EULER)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    mine = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    other = -q._cont_bern_log_norm() - torch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + mine + other


def _need_same_events(p: Any, q: Any, what: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {what} with                       different event shapes cannot be computed"
        )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    _need_same_events(p, q, "Low Rank Multivariate Normals")
    return _to_low_rank(
        p,
        q,
        _batch_lowrank_logdet(p._unbroadcasted_cov_diag, p._capacitance_tril),
        lambda: (p._unbroadcasted_cov_diag, p._unbroadcasted_cov_factor),
    )


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal_low_rank(p: Any, q: Any) -> Any:
    _need_same_events(p, q, "(Low Rank) Multivariate Normals")
    factor = p._unbroadcasted_scale_tril
    return _to_low_rank(p, q, 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1), lambda: (None, factor))


def _to_low_rank(p: Any, q: Any, log_det: Any, parts: Any) -> Any:
    """The divergence to a low-rank normal: of its inverse covariance only small matrices are made."""
    other = q._unbroadcasted_cov_diag
    difference = _batch_lowrank_logdet(other, q._capacitance_tril) - log_det
    distance = _batch_lowrank_mahalanobis(q._unbroadcasted_cov_factor, other, q.loc - p.loc, q._capacitance_tril)
    scaled = q._unbroadcasted_cov_factor.mT / other.unsqueeze(-2)
    solved = torch.linalg_solve_triangular(q._capacitance_tril, scaled, upper=False)
    diagonal, factor = parts()
    trace = (factor * other.rsqrt().unsqueeze(-1)).pow(2).sum((-2, -1)) - solved.matmul(factor).pow(2).sum((-2, -1))
    if diagonal is not None:
        trace = trace + (diagonal / other).sum(-1) - (solved * diagonal.sqrt().unsqueeze(-2)).pow(2).sum((-2, -1))
    return 0.5 * (difference + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_multivariate_normal(p: Any, q: Any) -> Any:
    _need_same_events(p, q, "(Low Rank) Multivariate Normals")
    factor = q._unbroadcasted_scale_tril
    difference = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - _batch_lowrank_logdet(
        p._unbroadcasted_cov_diag, p._capacitance_tril
    )
    shift = torch.linalg_solve_triangular(factor, (q.loc - p.loc).unsqueeze(-1), upper=False).squeeze(-1)
    n = p.event_shape[0]
    batch = torch.broadcast_shapes(factor.shape[:-2], p._unbroadcasted_cov_factor.shape[:-2])
    wide = factor.expand((*batch, n, n))
    own = p._unbroadcasted_cov_factor.expand((*batch, n, p.cov_factor.size(-1)))
    diagonal = torch.diag_embed(p._unbroadcasted_cov_diag.sqrt()).expand((*batch, n, n))
    trace = sum(torch.linalg_solve_triangular(wide, part, upper=False).pow(2).sum((-2, -1)) for part in (own, diagonal))
    return 0.5 * (difference + trace + shift.pow(2).sum(-1) - n)


# ---------------------------------------------------------------- two families


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * (p.concentration1 / (p.concentration1 + p.concentration0))


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    surprise = (q.concentration - 1) * (p.concentration1.digamma() - total.digamma())
    return -p.entropy() + norm - surprise + q.rate * p.concentration1 / total


@register_kl(Beta, Normal)
def _beta_normal(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    mean, variance = p.concentration1 / total, q.scale.pow(2)
    second = (mean * (1 - mean) / (total + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + (second - q.loc * mean + q.loc.pow(2) * 0.5) / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    return _infinite_where(-p.entropy() + (q.high - q.low).log(), (q.low > 0) | (q.high < 1))


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    norm = 0.5 * (math.log(2.0 * math.pi) + torch.square(q.loc / q.scale)) + torch.log(q.scale)
    return -p.entropy() + norm + (p.variance + torch.square(p.mean) - 2.0 * q.loc * p.mean) / (2.0 * torch.square(q.scale))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return _infinite_where(result, torch.ge(q.low, 0.0) & torch.ne(q.low, 0.0) | torch.lt(q.high, 1.0))


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -q.concentration * ratio.log() + ratio + q.concentration.lgamma() + q.concentration * _EULER - (1 + _EULER)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    product, ratio = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - ratio + torch.exp(ratio) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Any:
    variance, rate = q.scale.pow(2), p.rate.pow(2)
    moments = rate.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * torch.log(rate * variance * 2 * math.pi) - 1 + moments / variance


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    product, ratio, order = p.rate * q.scale, q.loc / q.scale, p.concentration
    own = (order - 1) * order.digamma() - order.lgamma() - order
    tail = torch.exp(ratio) * (1 + product.reciprocal()).pow(-order) - ratio
    return own + product.log() + order / product + tail


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> Any:
    variance, rate, order = q.scale.pow(2), p.rate.pow(2), p.concentration
    own = 0.5 * torch.log(rate * variance * 2 * math.pi) - order - order.lgamma()
    moments = 0.5 * (order.pow(2) + order) / rate - q.loc * order / p.rate + 0.5 * q.loc.pow(2)
    return own + (order - 1) * order.digamma() + moments / variance


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    shift = ((p.loc + p.scale * _EULER - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + spread + shift - (_EULER + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    shift = (0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)) / variance
    return -0.5 * torch.log(2 * ratio / math.pi) + ratio + shift - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    mean, spread, place = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    tail = torch.exp(-mean + 0.5 * spread + place)
    return -spread.log() * 0.5 + mean - place + tail - (0.5 * (1 + math.log(2 * math.pi)))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    shift = p.loc - q.loc
    scaled = shift / p.scale
    even = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * scaled.pow(2))
    odd = shift * torch.erf(math.sqrt(0.5) * scaled)
    return -torch.log(p.scale / q.scale) + (even + odd) / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return _infinite_where(result, p.alpha <= 1)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    common = p.scale.log() + p.alpha.reciprocal()
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    tail = q.rate * p.alpha * p.scale / (p.alpha - 1)
    return _infinite_where(p.alpha.log() - common + norm + (1 - q.concentration) * common + tail - 1, p.alpha <= 1)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    variance, common = 2 * q.scale.pow(2), p.scale / (p.alpha - 1)
    norm = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    moments = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    return _infinite_where(norm - p.alpha.reciprocal() + moments / variance - 1, p.alpha <= 2)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    first = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    second = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    norm = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    return _infinite_where(second + norm - torch.log(width) - first, (p.high > 1) | (p.low < 0))


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()
    return _infinite_where(result, (p.high > 1) | (p.low < 0))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    return _infinite_where(q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log(), p.low < 0)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    width = p.high - p.low
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    middle = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return _infinite_where(-width.log() + norm + middle + q.rate * (p.high + p.low) / 2, p.low < 0)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * (torch.exp(-high) - torch.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    moments = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * moments / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    middle = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return _infinite_where(middle * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log(), p.low < q.scale)


def _never(parameter: str) -> Any:
    """The divergence where the first puts values outside of the second's support."""
    return lambda p, q: torch.full_like(getattr(p, parameter), math.inf)


for _p, _parameter, _others in (
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, "concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gumbel, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Normal, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
):
    for _q in _others:
        register_kl(_p, _q)(_never(_parameter))
