"""Which kernels scaled_dot_product_attention may use."""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import Any

from ..._core.restoring import Actions, restoring
from ..._lazy_imports import lazy_exports as _lazy_exports
from ...backends import cuda

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """The kinds of attention kernels."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


# The switch of each kind, in the order in which kinds are tried.
_SWITCHES = {
    SDPBackend.CUDNN_ATTENTION: (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
    SDPBackend.FLASH_ATTENTION: (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
    SDPBackend.EFFICIENT_ATTENTION: (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
    SDPBackend.MATH: (cuda.math_sdp_enabled, cuda.enable_math_sdp),
}


def _cur_sdpa_kernel_backends() -> list[SDPBackend]:
    return [backend for backend, (enabled, _) in _SWITCHES.items() if enabled()]


def _allow(backends: list[Any]) -> None:
    for backend, (_, enable) in _SWITCHES.items():
        enable(backend in backends)


@restoring
def sdpa_kernel(undo: Actions, backends: Any, set_priority: bool = False) -> None:
    """Inside, attention uses one of the given kinds of kernels, or fails if none of them can do it."""
    if not isinstance(backends, list | SDPBackend):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    if set_priority and len(backends if isinstance(backends, list) else [backends]) > 1:
        raise NotImplementedError("sdpa_kernel(set_priority=True): kernels are tried in one fixed order")
    undo.append(partial(_allow, _cur_sdpa_kernel_backends()))
    _allow(backends if isinstance(backends, list) else [backends])


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
