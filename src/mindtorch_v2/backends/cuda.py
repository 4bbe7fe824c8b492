"""torch.backends.cuda: not there; its switches can be set and read back."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


def is_built() -> bool:
    """Whether the package was built with CUDA: never."""
    return False


matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True,
                         allow_bf16_reduced_precision_reduction=True)
cufft_plan_cache = SimpleNamespace(size=0, max_size=0)
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _switch(name: str) -> tuple[Any, Any]:
    def enabled() -> bool:
        return _sdp[name]

    def enable(on: bool) -> None:
        _sdp[name] = bool(on)

    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switch("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient")
math_sdp_enabled, enable_math_sdp = _switch("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn")


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Any:
    """Choose attention kernels on CUDA; on the CPU it changes nothing, as in torch."""
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _sdp.update(before)
