"""torch.signal.windows: weights that fade towards the ends of a stretch of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from .._core import dtype as dt
from .._core.memory_format import strided
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .._ops.creation.from_data import tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

Window = Callable[..., Tensor]


class _Grid:
    """Where a window is sampled: its length, whether it is symmetric, and what its tensors are like."""

    def __init__(self, M: int, sym: bool, dtype: Any, device: Any, requires_grad: bool) -> None:
        self.M, self.sym = M, sym
        self.options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}

    @property
    def steps(self) -> int:
        """How many steps a window has from end to end; a periodic one leaves its last point out."""
        return self.M - 1 if self.sym else self.M

    @property
    def extent(self) -> int:
        """The same for windows that a single point has in common with a symmetric one."""
        return self.M if not self.sym and self.M > 1 else self.M - 1

    def line(self, start: float, step: float) -> Any:
        return aten.linspace(start, start + (self.M - 1) * step, self.M, **self.options)

    def ones(self) -> Tensor:
        ones: Tensor = aten.ones((1,), **self.options)
        return ones


def _window(function: Callable[..., Tensor]) -> Window:
    """A window of a grid as torch's function of (M, *, ..., sym, dtype, layout, device, requires_grad)."""
    name = function.__name__

    @wraps(function)
    def call(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = strided,
        device: Any = None,
        requires_grad: bool = False,
        **settings: Any,
    ) -> Tensor:
        kind = dt.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if kind not in (dt.float32, dt.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
        grid = _Grid(M, sym, kind, device, requires_grad)
        window = function(grid, **settings)
        return aten.empty((0,), **grid.options) if M == 0 else window

    return call


@_window
def exponential(grid: _Grid, *, center: float | None = None, tau: float = 1.0) -> Tensor:
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if grid.sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = grid.extent / 2 if center is None else center
    return aten.exp(-aten.abs(grid.line(-middle / tau, 1 / tau)))


@_window
def cosine(grid: _Grid) -> Tensor:
    """Half a period of a sine."""
    step = math.pi / max(grid.extent + 1, 1)
    return aten.sin(grid.line(0.5 * step, step))


@_window
def gaussian(grid: _Grid, *, std: float = 1.0) -> Tensor:
    """A bell of that standard deviation."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    step = 1 / (std * math.sqrt(2))
    return aten.exp(-(grid.line(-grid.extent / 2 * step, step) ** 2))


@_window
def kaiser(grid: _Grid, *, beta: float = 12.0) -> Tensor:
    """The Bessel function I0 over a half circle."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if grid.M <= 1:
        return grid.ones()
    at = grid.line(-beta, 2 * beta / grid.steps)
    # Rounding may put the last point a little outside of the circle.
    inside = aten.clamp(beta * beta - at**2, min=0)
    return aten.i0(aten.sqrt(inside)) / aten.i0(tensor(float(beta), dtype=at.dtype))


@_window
def bartlett(grid: _Grid) -> Tensor:
    """A triangle that is 0 at both ends."""
    return grid.ones() if grid.M <= 1 else 1 - aten.abs(grid.line(-1, 2 / grid.steps))


@_window
def general_cosine(grid: _Grid, *, a: Sequence[float]) -> Tensor:
    """A sum of cosines with those weights, the signs alternating."""
    if not isinstance(a, Sequence) or isinstance(a, str):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _cosines(grid, a)


def _cosines(grid: _Grid, a: Sequence[float]) -> Tensor:
    if grid.M <= 1:
        return grid.ones()
    at = grid.line(0, 2 * math.pi / grid.steps)
    weights = tensor([(-1) ** i * weight for i, weight in enumerate(a)], dtype=at.dtype)
    waves = aten.cos(aten.arange(len(a), dtype=at.dtype).unsqueeze(-1) * at)
    return (weights.unsqueeze(-1) * waves).sum(0)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos."""
    return general_cosine(M, a=[alpha, 1 - alpha], **options)


def hamming(M: int, **options: Any) -> Tensor:
    """general_hamming with alpha = 0.54."""
    return general_hamming(M, **options)


def hann(M: int, **options: Any) -> Tensor:
    """general_hamming with alpha = 0.5."""
    return general_hamming(M, alpha=0.5, **options)


@_window
def blackman(grid: _Grid) -> Tensor:
    """A sum of three cosines, whose side lobes are low."""
    return _cosines(grid, [0.42, 0.5, 0.08])


def nuttall(M: int, **options: Any) -> Tensor:
    """A sum of four cosines, whose side lobes are lower than those of `blackman`."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **options)
