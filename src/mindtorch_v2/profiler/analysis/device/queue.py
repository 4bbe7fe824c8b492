"""How far the host runs ahead of a device: kernels that wait at any moment, and the events during which the device idles.

In: a profile with `kineto_results`, of which the events and the tree are read. Out: BasicEvaluation, torch's name of it, with
the metrics of every event of the tree.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...views.events import DeviceType

_LAUNCH = "cudaLaunchKernel"
_DEEP = 4  # waiting kernels; from there on the device was well fed
_SELF_TIME_WEIGHT = 0.6  # of an event's own time beside the idle part of it, when events are ranked


@dataclass
class Interval:
    """A stretch of time in nanoseconds, and how many kernels waited in it."""

    start: int
    end: int
    queue_depth: int = 0


@dataclass
class EventMetrics:
    """What is known of one event."""

    duration_time_ns: int = 0
    self_time_ns: int = 0
    idle_time_ns: int = 0
    queue_depth: int = 0

    @property
    def fraction_idle_time(self) -> float:
        """The part of the event in which the device had nothing to do."""
        return self.idle_time_ns / self.duration_time_ns if self.duration_time_ns else 0.0


class EventKey:
    """An event as a key of a dictionary; events are told apart by their id."""

    def __init__(self, event: Any) -> None:
        self.event = event

    def __hash__(self) -> int:
        return hash(self.event.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventKey) and bool(self.event.id == other.event.id)

    def __repr__(self) -> str:
        return f"{self.event.name}"

    def intervals_overlap(self, intervals: Iterable[Interval]) -> int:
        """Nanoseconds of the event that lie in any of the intervals."""
        total, reached = 0, self.event.start_time_ns
        for interval in sorted(intervals, key=lambda each: each.start):
            start = max(interval.start, reached)
            end = min(interval.end, self.event.end_time_ns)
            total += max(end - start, 0)
            reached = max(reached, end)
        return total


class BasicEvaluation:
    """The metrics of every event of a profile's tree, by EventKey.

    `event_keys` and `events` are in order of start, `cuda_events` are launches and kernels, and `queue_depth_list` has an
    Interval for each of those.
    """

    def __init__(self, prof: Any) -> None:
        self.profile = prof
        self.metrics: dict[EventKey, EventMetrics] = {}
        self.compute_self_time()
        self.event_keys = sorted(self.metrics, key=lambda key: key.event.start_time_ns)
        self.events = [key.event for key in self.event_keys]
        self.cuda_events: list[Any] = []
        self.queue_depth_list = self.compute_queue_depth()
        self.compute_idle_time()

    def compute_self_time(self) -> None:
        """Fill duration_time_ns and self_time_ns."""
        if self.profile.kineto_results is None:
            raise AssertionError("the profile has recorded nothing")
        pending = list(self.profile.kineto_results.experimental_event_tree())
        while pending:
            event = pending.pop()
            below = sum(child.duration_time_ns for child in event.children)
            self.metrics[EventKey(event)] = EventMetrics(event.duration_time_ns, event.duration_time_ns - below)
            pending.extend(event.children)

    def compute_queue_depth(self) -> list[Interval]:
        """Fill queue_depth; returns an Interval for each launch and kernel, none where nothing ran on a device."""
        if self.profile.kineto_results is None:
            raise AssertionError("the profile has recorded nothing")
        every = self.profile.kineto_results.events()
        launches = sorted((event for event in every if _name(event) == _LAUNCH), key=_start)
        kernels = sorted((event for event in every if _is_kernel(event)), key=_start)
        self.cuda_events = sorted([*launches, *kernels], key=_start)
        starts = [_start(kernel) for kernel in kernels]
        place = {kernel.linked_correlation_id(): at for at, kernel in enumerate(kernels)}
        # After each launch: how many kernels, in the order in which they ran, are launched.
        launched, moments, ahead = 0, [], []
        for launch in launches:
            at = place.get(launch.linked_correlation_id())
            launched = launched if at is None else at + 1
            moments.append(_start(launch))
            ahead.append(launched)

        def depth(moment: int) -> int:
            known = bisect_right(moments, moment)
            return max((ahead[known - 1] if known else 0) - bisect_right(starts, moment), 0)

        if self.cuda_events:
            for key, metrics in self.metrics.items():
                metrics.queue_depth = depth(key.event.start_time_ns)
        return [
            Interval(_start(event), _start(event) + event.duration_ns(), depth(_start(event))) for event in self.cuda_events
        ]

    def compute_idle_time(self) -> None:
        """Fill idle_time_ns: the time of each event in which no kernel ran or waited."""
        idle = list(self._idle_intervals())
        for key, metrics in self.metrics.items():
            metrics.idle_time_ns = key.intervals_overlap(idle)

    def _idle_intervals(self) -> Iterator[Interval]:
        queue = self.queue_depth_list
        if not queue or not self.events:
            return
        yield Interval(self.events[0].start_time_ns, queue[0].start)
        yield Interval(queue[-1].end, self.events[-1].end_time_ns)
        empty_since: int | None = None
        for point in queue:
            if point.queue_depth == 0:
                empty_since = point.end if empty_since is None else empty_since
            elif empty_since is not None:
                yield Interval(empty_since, point.start)
                empty_since = None

    def rank_events(self, length: int) -> list[EventKey]:
        """The events during which the queue ran empty, those first that are long themselves and mostly idle."""
        falling = list(_falling(self.queue_depth_list))
        chosen = [key for key in self.metrics if key.intervals_overlap(falling)]
        if not chosen:
            return []
        idle = _standardized([self.metrics[key].fraction_idle_time for key in chosen])
        own = _standardized([self.metrics[key].self_time_ns for key in chosen])
        score = dict(zip(chosen, (i + _SELF_TIME_WEIGHT * o for i, o in zip(idle, own, strict=True)), strict=True))
        return sorted(chosen, key=lambda key: score[key], reverse=True)[:length]

    def get_optimizable_events(self, length: int = 1, print_enable: bool = True) -> list[EventKey]:
        """rank_events(), printed if asked."""
        events = self.rank_events(length)
        if print_enable:
            rule = "-" * 80
            lines = [
                f"{rule}\nEvent:                {key.event}\nSource code location: {_location(key.event)}\n"
                f"Percentage idle time: {self.metrics[key].fraction_idle_time * 100:.2f}%\n{rule}"
                for key in events
            ]
            print("Optimizable events:", *(lines or ["No events to optimize"]), sep="\n")
        return events


def _location(event: Any) -> str:
    """The name of the innermost Python function around an event."""
    while event is not None and ".py(" not in event.name:
        event = event.parent
    return "No source code location found" if event is None else str(event.name)


def _name(event: Any) -> str:
    return str(event.name() if callable(event.name) else event.name)


def _start(event: Any) -> int:
    return int(event.start_ns())


def _is_kernel(event: Any) -> bool:
    return event.device_type() != DeviceType.CPU and "mem" not in _name(event).lower()


def _falling(queue: Sequence[Interval]) -> Iterator[Interval]:
    """From each deepest point of the queue to where it is next empty, if it was deep."""
    peak: Interval | None = None
    for point in queue:
        if point.queue_depth > 0:
            if peak is None or point.queue_depth >= peak.queue_depth:
                peak = point
        elif peak is not None:
            if peak.queue_depth >= _DEEP:
                yield Interval(peak.start, point.start)
            peak = None


def _standardized(values: Sequence[float]) -> list[float]:
    """Distances from the mean in standard deviations; 0 where all values are equal."""
    mean = statistics.fmean(values)
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return [(value - mean) / deviation if deviation else 0.0 for value in values]
