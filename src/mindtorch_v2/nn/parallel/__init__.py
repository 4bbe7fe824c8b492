"""Modules over several devices. Without any, DataParallel is the module itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._lazy_imports import lazy_exports as _lazy_exports
from .data_parallel import DataParallel, data_parallel

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

# Most programs run in one process: the rooms for several are loaded when they are asked for.
__getattr__, __dir__ = _lazy_exports(
    __name__,
    ("distributed", "scatter_gather"),
    {".distributed": ("DistributedDataParallel",), ".scatter_gather": ("gather", "scatter")},
)
