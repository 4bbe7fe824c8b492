"""torch.autograd.profiler_util: events, their lists and averages, and how a table formats times and sizes."""

from __future__ import annotations

from ..profiler.exporters.table import format_memory as _format_memory  # noqa: F401
from ..profiler.exporters.table import format_time as _format_time  # noqa: F401
from ..profiler.exporters.table import format_time_share as _format_time_share  # noqa: F401
from ..profiler.store.store import MEMORY_EVENT_NAME as MEMORY_EVENT_NAME
from ..profiler.views.averages import FunctionEventAvg
from ..profiler.views.event_list import EventList
from ..profiler.views.event_metadata import EventMetadata
from ..profiler.views.events import DeviceType as DeviceType
from ..profiler.views.events import FormattedTimesMixin, FunctionEvent, Interval, Kernel, MemRecordsAcc, StringTable

__all__ = [
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]

OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"
