"""torch.utils.tensorboard: event files that TensorBoard reads."""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
