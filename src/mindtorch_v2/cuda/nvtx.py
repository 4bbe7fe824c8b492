"""torch.cuda.nvtx: marks for NVIDIA's profiler, which a build without CUDA does not have."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _missing(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


mark = range = range_end = range_pop = range_push = range_start = _missing
