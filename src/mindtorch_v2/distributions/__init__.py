"""torch.distributions: probability distributions with samples, densities and gradients."""

from __future__ import annotations

from . import _homes, constraints, kl, transforms, utils
from .continuous import Beta, Cauchy, Chi2, Dirichlet, Exponential, Gamma, Laplace, Normal, StudentT, Uniform
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
from .kl import kl_divergence, register_kl
from .lkj_cholesky import LKJCholesky
from .multivariate import Independent, MixtureSameFamily, MultivariateNormal
from .negative_binomial import NegativeBinomial
from .relaxed_categorical import RelaxedOneHotCategorical
from .transformed import LogNormal, TransformedDistribution
from .transformed_kinds import Gumbel, HalfCauchy, HalfNormal
from .transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

_homes.install(
    __name__,
    {name: held for name, held in list(globals().items()) if isinstance(held, type) and issubclass(held, Distribution)},
)
