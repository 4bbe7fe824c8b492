"""What making a profile itself cost: torch's `_stats`, and the numbers of events, which are unique in a process."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass
class _ProfilerStats:
    """Durations of a profile's own calls. Those of reading the recording are 0 until it is read."""

    profiling_window_duration_sec: float = 0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0
    function_events_build_tree_call_duration_us: int = 0


class _EventNumbers:
    """Numbers of events, of which no two recordings of a process have the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.used = 0

    def take(self, count: int) -> int:
        """How many numbers were taken before; `count` are taken now."""
        with self._lock:
            before = self.used
            self.used += count
            return before


event_numbers = _EventNumbers()
