"""torch.quasirandom: points that fill a cube more evenly than random ones."""

from __future__ import annotations

from typing import Any

from . import _surface as _torch
from ._core.dtype import get_default_dtype
from ._core.rng import Generator
from ._core.tensor import Tensor
from ._ops.random.sobol import MAXBIT, MAXDIM

torch: Any = _torch

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws a Sobol sequence, in up to 21201 dims, optionally scrambled; the points are torch's to the bit.

    >>> torch.quasirandom.SobolEngine(dimension=2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])

    The same seed scrambles alike; without one the default generator is drawn from. A sequence has 2**30 points: drawing more
    raises RuntimeError. The direction numbers are those of Joe and Kuo (2008).
    """

    MAXBIT = MAXBIT
    MAXDIM = MAXDIM

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = torch.zeros(dimension, self.MAXBIT, dtype=torch.long)
        torch._sobol_engine_initialize_state_(self.sobolstate, dimension)
        if scramble:
            self._scramble()
        else:
            self.shift = torch.zeros(dimension, dtype=torch.long)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        """Shift all points by random bits, and multiply the bits of the state by random matrices."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits = torch.randint(2, (self.dimension, self.MAXBIT), generator=generator)
        self.shift = torch.mv(bits, torch.pow(2, torch.arange(0, self.MAXBIT)))
        matrices = torch.randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator).tril()
        torch._sobol_engine_scramble_(self.sobolstate, matrices, self.dimension)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next `n` points, of shape [n, dimension]; `out` is resized to them and keeps its dtype."""
        if dtype is None:
            dtype = get_default_dtype()
        if self.num_generated:
            result, self.quasi = torch._sobol_engine_draw(
                self.quasi, n, self.sobolstate, self.dimension, self.num_generated - 1, dtype=dtype
            )
        elif n == 1:
            result = self._first_point.to(dtype)
        else:
            result, self.quasi = torch._sobol_engine_draw(
                self.quasi, n - 1, self.sobolstate, self.dimension, self.num_generated, dtype=dtype
            )
            result = torch.cat((self._first_point.to(dtype), result), dim=-2)
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points. Raises ValueError where they would not make a power of 2 with those drawn before."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Start over with the first point; returns the engine itself."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over the next `n` points; returns the engine itself."""
        steps, before = (n - 1, 0) if self.num_generated == 0 else (n, self.num_generated - 1)
        torch._sobol_engine_ff_(self.quasi, steps, self.sobolstate, self.dimension, before)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"
