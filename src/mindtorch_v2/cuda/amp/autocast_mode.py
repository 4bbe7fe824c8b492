"""`torch.cuda.amp.autocast` and the decorators of custom functions, by their old names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..._core import dtype as dt
from ...amp import autocast as _autocast
from ...amp import custom_bwd as _custom_bwd
from ...amp import custom_fwd as _custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def _deprecated(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning, stacklevel=3
    )


class autocast(_autocast):
    """`torch.amp.autocast("cuda", ...)`: without CUDA it warns and changes nothing."""

    def __init__(self, enabled: bool = True, dtype: dt.dtype = dt.float16, cache_enabled: bool = True) -> None:
        _deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: dt.dtype | None = None) -> Callable[..., Any]:
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    _deprecated("custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return _custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    _deprecated("custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _custom_bwd(bwd, device_type="cuda")
