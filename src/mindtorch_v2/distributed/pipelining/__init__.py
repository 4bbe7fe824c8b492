"""torch.distributed.pipelining: names that libraries import; a model is not cut into stages."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import absent_class, absent_function

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]


class _Absent:
    """NotImplementedError for all that is made of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"torch.distributed.pipelining.{type(self).__name__}")


class Pipe(_Absent):
    """A model in stages."""


class PipelineStage(_Absent):
    """One stage."""


class ScheduleGPipe(_Absent):
    """All forward passes first."""


class Schedule1F1B(_Absent):
    """Forward and backward passes in turn."""


class ScheduleInterleaved1F1B(_Absent):
    """The same with several stages a process."""


class SplitPoint:
    """Where a model is cut."""

    BEGINNING, END = 1, 2


def pipeline(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError."""
    raise NotImplementedError("torch.distributed.pipelining.pipeline")


def pipe_split() -> NoReturn:
    """NotImplementedError."""
    raise NotImplementedError("torch.distributed.pipelining.pipe_split")


ScheduleDualPipeV = absent_class(__name__, "ScheduleDualPipeV")
ScheduleInterleavedZeroBubble = absent_class(__name__, "ScheduleInterleavedZeroBubble")
ScheduleLoopedBFS = absent_class(__name__, "ScheduleLoopedBFS")
ScheduleZBVZeroBubble = absent_class(__name__, "ScheduleZBVZeroBubble")
build_stage = absent_function(__name__, "build_stage")
