"""TransformedDistribution: the distribution of a variable after invertible transforms."""

from __future__ import annotations

from typing import Any

from .._autograd.grad_mode import no_grad
from .._core.size import Size
from . import constraints
from .continuous import Normal
from .distribution import Distribution
from .multivariate import Independent
from .transforms import ComposeTransform, ExpTransform, Transform
from .utils import _sum_rightmost


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
        shape, cut = self._attach(base_distribution)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _attach(self, base: Distribution) -> tuple[Size, int]:
        """Expand the base to what the transforms make of it; the shape of a draw, and where events begin in it."""
        whole = ComposeTransform(self.transforms)
        base_shape = base.batch_shape + base.event_shape
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{whole.domain.event_dim}, but got {Size(base_shape)}."
            )
        shape = whole.forward_shape(base_shape)
        expanded = whole.inverse_shape(shape)
        if tuple(base_shape) != tuple(expanded):
            base = base.expand(expanded[: len(expanded) - len(base.event_shape)])
        missing = whole.domain.event_dim - len(base.event_shape)
        if missing > 0:
            base = Independent(base, missing)
        self.base_dist = base
        change = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, len(base.event_shape) + change)
        return Size(shape), len(shape) - event_dim

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        expanded = self._get_checked_instance(TransformedDistribution, _instance)
        if type(self) is not TransformedDistribution and _instance is None:
            expanded.__dict__.update(self.__dict__)
        expanded.transforms = self.transforms
        shape = Size(batch_shape) + self._event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        base = self.base_dist
        expanded.base_dist = base.expand(shape[: len(shape) - len(base.event_shape)])
        expanded._batch_shape, expanded._event_shape = Size(batch_shape), self._event_shape
        expanded._validate_args = self._validate_args
        return expanded

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        missing = len(self._event_shape) - codomain.event_dim
        return constraints.independent(codomain, missing) if missing > 0 else codomain

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
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self._event_shape)
        total: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Any) -> Any:
        """Probabilities the other way round where the transforms fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))

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
