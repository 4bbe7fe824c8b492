"""torch.cuda.amp: mixed precision with the device type filled in; `torch.amp` is the place to use."""

from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd
from .common import amp_definitely_not_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
