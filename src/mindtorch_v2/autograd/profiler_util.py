"""torch.autograd.profiler_util: the events that a profile consists of."""

from __future__ import annotations

from ..profiler.averages import FunctionEventAvg
from ..profiler.event_list import EventList
from ..profiler.event_metadata import EventMetadata
from ..profiler.events import (
    FormattedTimesMixin,
    FunctionEvent,
    Interval,
    Kernel,
    MemRecordsAcc,
    StringTable,
)

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
