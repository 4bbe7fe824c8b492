"""torch.backends: switches of vendor libraries. None of them is used here, so flags are kept and change nothing."""

from __future__ import annotations

from .._lazy_imports import lazy_exports as _lazy_exports
from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized"]

# How matrices in float32 are multiplied, as programs set it: "none", "ieee", "tf32" or "bf16". Here always as IEEE says.
fp32_precision = "none"

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
