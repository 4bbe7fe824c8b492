"""TransformedDistribution: the distribution of a variable after invertible transforms."""

from __future__ import annotations

from typing import Any

from .._autograd.grad_mode import no_grad
from .._core.size import Size
from . import constraints
from .continuous import Normal
from .distribution import Distribution
from .multivariate import sum_rightmost
from .transforms import ExpTransform, Transform


class TransformedDistribution(Distribution):
    """TransformedDistribution(base, transforms): the distribution of `transforms(x)` for x drawn from the base."""

    arg_constraints: dict[str, Any] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list) and all(isinstance(t, Transform) for t in transforms):
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.base_dist = base_distribution
        shape = base_distribution.batch_shape + base_distribution.event_shape
        split = len(shape) - self._event_dims
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]

    @property
    def _event_dims(self) -> int:
        own = [max(t.domain.event_dim, t.codomain.event_dim) for t in self.transforms]
        return max(len(self.base_dist.event_shape), *own, 0)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        expanded = self.__class__.__new__(self.__class__)
        expanded.__dict__.update(self.__dict__)
        whole = Size(batch_shape) + self._event_shape
        expanded.base_dist = self.base_dist.expand(whole[: len(whole) - len(self.base_dist.event_shape)])
        expanded._batch_shape = Size(batch_shape)
        return expanded

    @property
    def support(self) -> Any:
        codomain = self.transforms[-1].codomain if self.transforms else self.base_dist.support
        missing = self._event_dims - codomain.event_dim
        return constraints.independent(codomain, missing) if missing else codomain

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        total: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            own = max(transform.domain.event_dim, transform.codomain.event_dim)
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y), self._event_dims - own)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), self._event_dims - len(self.base_dist.event_shape))

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform._inv_call(value)
        return self.base_dist.cdf(value)

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LogNormal(TransformedDistribution):
    """LogNormal(loc, scale): exp of a normal."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Any:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
