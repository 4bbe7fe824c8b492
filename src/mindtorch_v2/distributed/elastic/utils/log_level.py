"""torch.distributed.elastic.utils.log_level: the level at which launchers log."""

from __future__ import annotations

__all__ = ["get_log_level"]


def get_log_level() -> str:
    """The level where LOGLEVEL sets none."""
    return "WARNING"
