"""NegativeBinomial: successes before a number of failures."""

from __future__ import annotations

from typing import Any

from .. import _surface as _torch
from .._autograd.grad_mode import no_grad
from . import constraints
from .continuous import Gamma
from .discrete import Binomial
from .distribution import Distribution
from .utils import broadcast_all

torch: Any = _torch


class NegativeBinomial(Distribution):
    """NegativeBinomial(total_count, probs): successes, each with `probs`, before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.nonnegative,
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.to((self.logits if probs is None else self.probs).dtype)
        super().__init__(self.total_count.shape, validate_args=validate_args)

    logits, probs = Binomial.logits, Binomial.probs
    mean = property(lambda self: self.total_count * torch.exp(self.logits))
    variance = property(lambda self: self.mean / torch.sigmoid(-self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw: Poisson events at a rate that is itself drawn from a Gamma distribution."""
        with no_grad():
            return torch.poisson(Gamma(self.total_count, torch.exp(-self.logits), validate_args=False).sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        chance = self.total_count * torch.log_sigmoid(-self.logits) + value * torch.log_sigmoid(self.logits)
        ways = torch.lgamma(self.total_count + value) - torch.lgamma(1.0 + value) - torch.lgamma(self.total_count)
        return chance + ways.masked_fill(self.total_count + value == 0.0, 0.0)
