"""A history: recordings in the order of their versions, each with its figures and what changed since the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...store.store import EventStore
from ..memory.diff import memory_figures
from ..steps import step_of, training_steps
from .diff import FEWEST_STEPS, diff
from .evidence import typical
from .keys import work_keys


class Point(NamedTuple):
    """One recording. Times are of a step, in nanoseconds: the lower quartile, as diff() compares it, the median and p95."""

    label: str
    path: str
    when_ns: int  # since 1970; 0 if the file does not tell
    steps: int
    step_ns: float
    median_ns: float
    p95_ns: float
    ops: float  # in a step
    peak: int | None  # bytes; None if memory was not recorded
    ratio: float | None  # to the recording before; None for the first
    verdict: str  # "slower", "faster", "no evidence"; "too few steps", or "" for the first
    largest: str  # the op that changed most since the one before, "" if there is none

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return self._asdict()


def history(recordings: Iterable[tuple[str, str, EventStore]]) -> Iterator[Point]:
    """The points of recordings, given as label, path and store; each is compared with the one before."""
    before: EventStore | None = None
    for label, path, store in recordings:
        which = training_steps(store)
        durations = which.duration
        _, number = work_keys(store, shapes=False, modules=False)
        counted = (number >= 0) & (step_of(store, which) >= 0)
        peaks = [size for name, size in memory_figures(store).items() if name.startswith("peak")]
        ratio, verdict, largest = _change(before, store)
        yield Point(
            label,
            path,
            store.wall_start_ns,
            len(durations),
            float(typical(durations[None])[0]) if len(durations) else 0.0,
            float(np.median(durations)) if len(durations) else 0.0,
            float(np.quantile(durations, 0.95)) if len(durations) else 0.0,
            int(counted.sum()) / max(1, len(durations)),
            sum(peaks) if peaks else None,
            ratio,
            verdict,
            largest,
        )
        before = store


def _change(before: EventStore | None, now: EventStore) -> tuple[float | None, str, str]:
    if before is None:
        return None, "", ""
    if min(len(training_steps(store).start) for store in (before, now)) < FEWEST_STEPS:
        return None, "too few steps", ""
    change = diff(before, now)
    largest = str(change.found[0].key) if change.found else ""
    return change.step.ratio, change.step.verdict, largest
