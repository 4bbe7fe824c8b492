"""torch.backends.cuda: not there; its switches can be set and read back."""

from __future__ import annotations

import warnings
from functools import partial
from types import SimpleNamespace
from typing import Any

from .._core.restoring import Actions, restoring
from .._lazy_imports import lazy_exports as _lazy_exports
from .._ops.nn.attention import ALLOWED as _ATTENTION


def is_built() -> bool:
    """Whether the package was built with CUDA: never."""
    return False


matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
)
cufft_plan_cache = SimpleNamespace(size=0, max_size=0)


def _switch(name: str) -> tuple[Any, Any]:
    def enabled() -> bool:
        return _ATTENTION[name]

    def enable(on: bool) -> None:
        _ATTENTION[name] = bool(on)

    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


@restoring
def sdp_kernel(
    undo: Actions,
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> None:
    """`torch.nn.attention.sdpa_kernel` by its old name: attention uses one of the given kinds of kernels, or fails."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. "
        "Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=3,
    )
    undo.append(partial(_ATTENTION.update, dict(_ATTENTION)))
    _ATTENTION.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
