"""torch.distributed.elastic.multiprocessing: the processes of a job as its launcher sees them."""

from __future__ import annotations

from ....multiprocessing import start_processes
from . import errors
from .errors import ChildFailedError, ProcessFailure, SignalException, record

__all__ = ["ChildFailedError", "ProcessFailure", "SignalException", "errors", "record", "start_processes"]
