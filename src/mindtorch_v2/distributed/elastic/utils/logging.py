"""torch.distributed.elastic.utils.logging: loggers whose level LOGLEVEL sets."""

from __future__ import annotations

import logging
import os
import sys

from .log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of a name, by default of the caller's module, at the level of LOGLEVEL."""
    logger = logging.getLogger(name or sys._getframe(1).f_globals.get("__name__"))
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger
