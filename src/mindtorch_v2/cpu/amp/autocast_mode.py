"""`torch.cpu.amp.autocast`, by its old name."""

from __future__ import annotations

import warnings

from ..._core import dtype as dt
from ...amp import autocast as _autocast

__all__ = ["autocast"]


class autocast(_autocast):
    """`torch.amp.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dt.dtype = dt.bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
