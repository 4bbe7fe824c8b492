"""Smooth one-hot vectors: the Gumbel softmax."""

from __future__ import annotations

from typing import Any

from .. import _surface as _torch
from . import constraints
from .discrete import Categorical
from .distribution import Distribution
from .transformed import TransformedDistribution
from .transforms import ExpTransform
from .utils import clamp_probs

torch: Any = _torch


class ExpRelaxedCategorical(Distribution):
    """ExpRelaxedCategorical(temperature, probs): the logarithm of a smooth one-hot vector."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # type: ignore[assignment]
    has_rsample = True
    _shared_parameters = ("temperature",)

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    param_shape = property(lambda self: self._categorical.param_shape)
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = clamp_probs(torch.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype))
        scores = (self.logits - (-drawn.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self._categorical._num_events
        logits, value = torch.broadcast_tensors([self.logits, value])
        scale = torch.full_like(self.temperature, float(n)).lgamma() - self.temperature.log().mul(-(n - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale

    def __repr__(self) -> str:
        return "ExpRelaxedCategorical()"


class RelaxedOneHotCategorical(TransformedDistribution):
    """RelaxedOneHotCategorical(temperature, probs): the Gumbel softmax, a smooth one-hot vector."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex  # type: ignore[assignment]
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)
