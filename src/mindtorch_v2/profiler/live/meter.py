"""Meter: statistics of a process while it runs, by op and in constant memory."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any

from ..._core.cpython import without_signals_at_entry
from ..config import _ExperimentalConfig
from ..on_demand import call_after_steps
from ..profiler import profile
from ..retention.stats import AggregateRow, AggregateStats

MEMORY_MB = 32.0
REST = "<all others>"


class Meter:
    """Records every thread with mode="aggregate" between start() and stop(); a step is one step() of an optimizer."""

    def __init__(self, memory_mb: float = MEMORY_MB) -> None:
        config = _ExperimentalConfig(profile_all_threads=True)
        self._profile = profile(experimental_config=config, max_memory_mb=memory_mb, mode="aggregate")
        self._began = 0.0

    def start(self) -> None:
        """Begin to count."""
        self._profile.start()
        self._steps = call_after_steps(self._profile.step)
        self._began = time.monotonic()

    def stop(self) -> None:
        """End; what was counted stays."""
        self._steps.remove()
        self._profile.stop()

    def __enter__(self) -> Meter:
        self.start()
        return self

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def seconds(self) -> float:
        """How long it has counted."""
        return time.monotonic() - self._began

    @property
    def steps(self) -> int:
        """How many steps have ended."""
        return self._profile.step_num

    def stats(self) -> AggregateStats:
        """What was counted so far."""
        stats = self._profile.aggregate()
        stats.steps = self.steps
        return stats

    def figures(self, limit: int) -> dict[str, Any]:
        """What was counted so far as plain values: the `limit` ops with the most self time."""
        stats = self.stats()
        rows = largest(stats, limit)
        return {
            **process(),
            "seconds": self.seconds,
            "steps": self.steps,
            "self_ns": stats.self_ns,
            "count": stats.count,
            "ops": [op_figures(row) for row in rows],
            "ops_in_all": len(stats.by_name()),
        }


def process() -> dict[str, Any]:
    """Which process this is."""
    return {"pid": os.getpid(), "command": " ".join(getattr(sys, "orig_argv", sys.argv))}


def largest(stats: AggregateStats, limit: int) -> list[AggregateRow]:
    """Rows by name, the most self time first; those beyond the limit are one row named REST."""
    rows = sorted(stats.by_name().values(), key=lambda row: -row.self_ns)
    if 0 <= limit < len(rows):
        rest = rows[limit]
        for row in rows[limit + 1 :]:
            rest = rest.merged(row)
        rest.name = REST
        rows = [*rows[:limit], rest]
    return rows


def op_figures(row: AggregateRow) -> dict[str, Any]:
    """The figures of one op as plain values; times in nanoseconds."""
    return {
        "name": row.name,
        "calls": row.count,
        "self_ns": row.self_ns,
        "total_ns": row.sum_ns,
        "p50_ns": row.quantile(0.5),
        "p99_ns": row.quantile(0.99),
        "max_ns": row.max_ns,
        "flops": row.flops,
    }
