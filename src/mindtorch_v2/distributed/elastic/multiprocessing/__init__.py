"""torch.distributed.elastic.multiprocessing: the processes of a job as its launcher sees them."""

from __future__ import annotations

from ....multiprocessing import start_processes
from ..._absent import absent_class, absent_function
from .._streams import Std
from . import errors
from .errors import ChildFailedError, ProcessFailure, SignalException, record

__all__ = [
    "ChildFailedError",
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "ProcessFailure",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "errors",
    "record",
    "start_processes",
    "to_map",
]
DefaultLogsSpecs = absent_class(__name__, "DefaultLogsSpecs")
LogsDest = absent_class(__name__, "LogsDest")
LogsSpecs = absent_class(__name__, "LogsSpecs")
MultiprocessContext = absent_class(__name__, "MultiprocessContext")
PContext = absent_class(__name__, "PContext")
RunProcsResult = absent_class(__name__, "RunProcsResult")
SubprocessContext = absent_class(__name__, "SubprocessContext")
to_map = absent_function(__name__, "to_map")
