"""torch.distributed.optim: names that training libraries test optimizers against; none can be made without processes."""

from __future__ import annotations

from typing import Any

from ..optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is spread over processes."""

    def __init__(self, params: Any, optimizer_class: type[Optimizer], **options: Any) -> None:
        raise NotImplementedError("torch.distributed.optim.ZeroRedundancyOptimizer: there are no process groups")
