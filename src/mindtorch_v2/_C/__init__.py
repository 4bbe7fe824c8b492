"""Names that torch keeps in its compiled module and that scripts reach for there."""

from __future__ import annotations

from .._ops.nn.lstm_layer import get_mkldnn_enabled as _get_mkldnn_enabled
from .._ops.nn.lstm_layer import set_mkldnn_enabled as _set_mkldnn_enabled
from . import _profiler

__all__ = ["_profiler"]


def _log_api_usage_once(event: str) -> None:
    """Where torch counts the use of an API if it was built to: it was not."""
