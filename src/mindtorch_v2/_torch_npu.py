"""torch_npu, as `mindtorch_v2.as_torch` offers it: torch.npu and its profiler. Fused operators of its own are not here."""

from __future__ import annotations

from typing import Any

from . import npu
from .npu import profiler
from .version import __version__

__all__ = ["__version__", "npu", "profiler"]
__path__: list[str] = []  # a package to the import system, which asks as_torch for what is below


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torch_npu' has no attribute {name!r}: here it has npu and profiler; ops of torch run on the device without it"
    )
