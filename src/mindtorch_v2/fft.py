"""torch.fft: discrete Fourier transforms."""

from __future__ import annotations

from . import _ops  # noqa: F401  declares the ops
from ._core.tensor import Tensor  # noqa: F401  torch has it here, too
from ._dispatch.registry import packets

_NAMES = (
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
)

__all__ = list(_NAMES)

globals().update({name: packets["fft_" + name].function for name in _NAMES})
