"""torch.autograd.anomaly_mode: finding the forward call whose backward failed."""

from __future__ import annotations

from .._autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
