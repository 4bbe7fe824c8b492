"""torch.cpu.amp: mixed precision with the device type filled in; `torch.amp` is the place to use."""

from __future__ import annotations

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
