"""DistributedDataParallel: a name to import; there are no process groups."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Needs a process group, which this runtime does not have."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        raise NotImplementedError("DistributedDataParallel: there are no process groups")
