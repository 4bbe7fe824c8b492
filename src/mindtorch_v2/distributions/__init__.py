"""torch.distributions: probability distributions with samples, densities and gradients."""

from __future__ import annotations

from . import _cross_kl, _homes, constraint_registry, constraints, kl, transforms, utils
from .constraint_registry import biject_to, transform_to
from .continuous import Beta, Cauchy, Chi2, Dirichlet, Exponential, Gamma, Laplace, Normal, StudentT, Uniform
from .continuous_bernoulli import ContinuousBernoulli
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from .distribution import Distribution, ExponentialFamily
from .fishersnedecor import FisherSnedecor
from .generalized_pareto import GeneralizedPareto
from .kl import kl_divergence, register_kl
from .lkj_cholesky import LKJCholesky
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate import Independent, MixtureSameFamily, MultivariateNormal
from .negative_binomial import NegativeBinomial
from .relaxed_bernoulli import RelaxedBernoulli
from .relaxed_categorical import RelaxedOneHotCategorical
from .transformed import LogNormal, TransformedDistribution
from .transformed_kinds import Gumbel, HalfCauchy, HalfNormal, InverseGamma, Kumaraswamy, LogisticNormal, Pareto, Weibull
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms
from .von_mises import VonMises
from .wishart import Wishart

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraint_registry",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
    "utils",
    *_transforms,
]

_homes.install(
    __name__,
    {
        name: held
        for module in (
            globals(),
            vars(_homes.module_of(__name__, "relaxed_bernoulli")),
            vars(_homes.module_of(__name__, "relaxed_categorical")),
        )
        for name, held in list(module.items())
        if isinstance(held, type) and issubclass(held, Distribution)
    },
)
del _cross_kl
