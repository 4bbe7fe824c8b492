"""LKJCholesky: factors of random correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as _torch
from .._core import dtype as dt
from .._core.size import Size
from . import constraints
from .continuous import Beta
from .distribution import Distribution
from .utils import broadcast_all

torch: Any = _torch


class LKJCholesky(Distribution):
    """LKJCholesky(dim, concentration): lower Cholesky factors L of correlation matrices, p(L L^T) ~ det^(concentration - 1).

    A concentration of one is uniform over correlation matrices; larger ones draw them towards the identity.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of each row below the diagonal, with the shapes that torch's onion method gives it.
        before = torch.cat((torch.zeros(1), torch.arange(dim - 1).to(torch.float32))).to(self.concentration.dtype)
        self._beta = Beta(before + 0.5, (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * before)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = Size(batch_shape)
        expanded = type(self)(self.dim, self.concentration.expand(shape), validate_args=False)
        expanded._validate_args = self._validate_args
        return expanded

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw by the onion method: row by row, a direction on the sphere times the root of a Beta variable."""
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        direction = torch.randn(self._extended_shape(sample_shape), dtype=self.concentration.dtype).tril(-1)
        direction = direction / direction.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)
        rows = squared.sqrt() * direction
        tiny = dt.finfo(self.concentration.dtype).tiny
        diagonal = torch.clamp(1 - (rows**2).sum(-1), min=tiny).sqrt()
        return rows + torch.diag_embed(diagonal)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - torch.arange(2, self.dim + 1)
        free = self.dim - 1
        alpha = self.concentration + 0.5 * free
        constant = 0.5 * free * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, p=free) - torch.lgamma(alpha) * free
        return (power * diagonal.log()).sum(-1) - constant
