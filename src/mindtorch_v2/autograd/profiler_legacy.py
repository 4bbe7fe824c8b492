"""torch.autograd.profiler_legacy: the interface from before Kineto, whose events have `is_legacy`."""

from __future__ import annotations

from types import TracebackType

from .._core.cpython import without_signals_at_entry
from ..profiler.config import ActiveProfilerType
from ..profiler.session.autograd_profile import profile as _profile
from ..profiler.views.event_list import EventList

__all__ = ["profile"]


class profile(_profile):
    """As autograd.profiler.profile, but its events have `is_legacy`, and there are none before the end of the block."""

    active_type = ActiveProfilerType.LEGACY

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ) -> None:
        super().__init__(
            enabled,
            use_cuda=use_cuda,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _profile.__exit__(self, kind, value, trace)  # not by super(), after whose call a signal would be handled
        if self.enabled:
            for event in super().function_events:
                event.is_legacy = True

    @property
    def function_events(self) -> EventList:
        """The events; RuntimeError before the recording has finished."""
        if not self._finished:
            raise RuntimeError("Profiler didn't finish running")
        return super().function_events

    def __repr__(self) -> str:
        return super().__repr__() if self._finished else "<unfinished profiler_legacy.profile>"

    def __str__(self) -> str:
        return super().__str__() if self._finished else "<unfinished profiler_legacy.profile>"
