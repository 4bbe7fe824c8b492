"""Checks of recordings and files: tables, times, nesting, self times, memory, links."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.terminal import shown
from ..config import SAMPLED_STACKS
from ..store import tree
from ..store.store import EventStore
from ..views.event_list import EventList
from ._recovery import NOT_STRICT, Recovery
from ._source import Progress
from .detect import read_any

ERROR, NOTE = "error", "note"
# Spans that overlap in PyTorch, too: a range begins inside the Python function that begins it, and calls of a device's runtime
# are timed by its driver, some as spans of the work that they wait for.
_LOOSE = (observer.SCOPE, observer.STEP, observer.PYTHON, observer.MODULE, observer.RUNTIME)
_TABLE_OF = {
    "name": "names",
    "tid": "threads",
    "fwd_tid": "threads",
    "launch_tid": "threads",
    "mem_tid": "threads",
    "shapes": "input_infos",
    "stack": "stacks",
    "module": "modules",
    "op": "overloads",
    "details": "row_details",
}
_NEVER_MISSING = ("name", "tid", "mem_tid")


class Problem(NamedTuple):
    """A fault of a recording (severity "error"), or something worth knowing (severity "note")."""

    severity: str
    check: str
    detail: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.check}: {shown(self.detail)}"


def validate(recording: Any) -> list[Problem]:
    """The problems of a recording: a store, a loaded profile, a live one, or the path of a file."""
    if isinstance(recording, str | os.PathLike):
        return validate_file(recording)
    if isinstance(recording, EventStore):
        return validate_store(recording)
    store = recording.store if hasattr(recording, "store") else recording.profiler.store
    return validate_store(store)


def validate_file(path: str | os.PathLike[str], progress: Progress | None = None) -> list[Problem]:
    """The problems of a file and of the recording in it. TraceError: there is no recording in it."""
    store, recovery = read_any(path, progress)
    return [*_reading_problems(recovery), *validate_store(store)]


def validate_store(store: EventStore) -> list[Problem]:
    """The problems of a store, by all checks; if rows have indices without an entry, only these."""
    return list(_tables(store)) or [problem for check in _CHECKS for problem in check(store)]


def _reading_problems(recovery: Recovery) -> Iterator[Problem]:
    if not recovery.complete:
        yield Problem(ERROR, "complete", "the file is cut off before its end")
    if recovery.bytes_dropped:
        yield Problem(ERROR, "readable", f"{recovery.bytes_dropped} bytes could not be read")
    for reason, count in recovery.skipped.items():
        severity = NOTE if reason.startswith(("category ", "phase ")) else ERROR
        yield Problem(severity, "events", f"{count} left out: {reason}")
    for note in recovery.notes:
        yield Problem(ERROR if note == NOT_STRICT else NOTE, "file", note)


# ---------------------------------------------------------------------- checks: store -> problems


def _tables(store: EventStore) -> Iterator[Problem]:
    for column, table in _TABLE_OF.items():
        values, size = getattr(store, column), len(getattr(store, table))
        least = 0 if column in _NEVER_MISSING else -1
        wrong = int(((values < least) | (values >= size)).sum())
        if wrong:
            yield Problem(ERROR, "tables", f"{wrong} rows have a {column} that is not among the {size} {table}")


def _times(store: EventStore) -> Iterator[Problem]:
    backwards = int((store.end < store.start).sum())
    if backwards:
        yield Problem(ERROR, "times", f"{backwards} events end before they start")
    bounds = [first for first, _ in store.segments] + [len(store)]
    for first, last in itertools.pairwise(bounds):
        if (np.diff(store.start[first:last]) < 0).any():
            yield Problem(ERROR, "times", "rows are not in order of start")
    if (np.diff(store.mem_time) < 0).any():
        yield Problem(ERROR, "times", "allocations are not in order of time")
    if store.clock_end_ns < store.clock_start_ns:
        yield Problem(ERROR, "times", "the recording ends before it starts")
    if len(store.segments) == 1 and len(store):
        outside = int(((store.start < store.clock_start_ns) | (store.end > store.clock_end_ns)).sum())
        if outside:
            yield Problem(NOTE, "times", f"{outside} events begin before the recording or end after it")


def _nesting(store: EventStore) -> Iterator[Problem]:
    parent = store.parent
    inner = np.flatnonzero(parent >= 0)
    above = parent[inner]
    outside = (store.start[inner] < store.start[above]) | (store.nested_end[inner] > store.nested_end[above])
    if outside.any():
        yield Problem(ERROR, "nesting", f"{int(outside.sum())} events are not inside their parents")
    crossed = _overlapping(store)
    loose = np.isin(store.kind, _LOOSE)
    strict = crossed[~loose[crossed[:, 0]] & ~loose[crossed[:, 1]]]
    if len(strict):
        yield Problem(
            ERROR,
            "nesting",
            f"{len(strict)} events overlap others of their thread without being inside; "
            f"the first is {store.names[store.name[strict[0, 0]]]!r}",
        )
    if len(crossed) > len(strict):
        yield Problem(
            NOTE,
            "nesting",
            f"{len(crossed) - len(strict)} ranges, runtime calls and Python functions overlap partially, as "
            "PyTorch records them; self times around them count the overlap once for each",
        )


def _overlapping(store: EventStore) -> NDArray[np.intp]:
    """Pairs (row, earlier row) of the same parent and thread, where the row begins before the earlier one ends."""
    rows = np.flatnonzero((store.device_type == 0) & (store.kind != observer.MEMORY))
    if len(store.segments) > 1 or not len(rows):
        return np.empty((0, 2), np.intp)
    group = (store.parent[rows].astype(np.int64) + 1) * len(store.threads) + store.tid[rows]
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    # The latest end so far within a group. An offset per group lets one running maximum serve all groups.
    first = np.append(True, group[1:] != group[:-1])
    end = store.nested_end[rows] - int(store.start.min())
    offset = np.cumsum(first).astype(np.float64) * (float(end.max()) + 1)
    latest = np.maximum.accumulate(end + offset)
    latest_row = np.maximum.accumulate(np.where(end + offset >= latest, np.arange(len(rows)), 0))
    crosses = np.flatnonzero(~first[1:] & (store.start[rows[1:]] < store.nested_end[rows[latest_row[:-1]]])) + 1
    return np.column_stack([rows[crosses], rows[latest_row[crosses - 1]]])


def _self_times(store: EventStore) -> Iterator[Problem]:
    host = (store.device_type == 0) & ~store.is_async  # a communication takes no time of a thread
    if (store.self_ns < 0).any():
        yield Problem(ERROR, "self time", f"{int((store.self_ns < 0).sum())} events have a negative self time")
    crossed = set(np.unique(store.tid[_overlapping(store)[:, 0]]).tolist())
    for thread in np.unique(store.tid[host]).tolist() if len(store.segments) == 1 else ():
        rows = host & (store.tid == thread)
        alone = int(store.self_ns[rows].sum())
        roots = rows & (store.parent < 0)
        covered = int((store.nested_end[roots] - store.start[roots]).sum())
        if alone != covered and thread not in crossed:
            yield Problem(
                ERROR,
                "self time",
                f"self times of {store.threads[thread].name!r} add up to {alone} ns, but its events cover {covered} ns",
            )


def _queries(store: EventStore) -> Iterator[Problem]:
    events = EventList.from_store(store)
    first, second = (_averages(events) for _ in range(2))
    if first != second or first != _averages(EventList.from_store(store)):
        yield Problem(ERROR, "queries", "asking twice gives two answers")
    total = events.self_cpu_time_total
    over = [key for key, _, alone, _ in first if alone > total * (1 + 1e-9)]
    if over:
        yield Problem(ERROR, "percentages", f"{over[0]!r} has more than 100 % of the time")
    if sum(count for _, count, _, _ in first) != len(events):
        yield Problem(ERROR, "queries", "averages do not count every event")


def _averages(events: EventList) -> list[tuple[str, int, float, int]]:
    return [(row.key, row.count, row.self_cpu_time_total, row.cpu_memory_usage) for row in events.key_averages()]


def _memory(store: EventStore) -> Iterator[Problem]:
    devices = store.mem_device_type.astype(np.int64) << 32 | store.mem_device_index.astype(np.uint32)
    for device in np.unique(devices).tolist():
        rows = np.flatnonzero(devices == device)
        total, change = store.mem_total[rows], store.mem_bytes[rows]
        if len(store.segments) > 1 or not total.any():
            continue
        wrong = int((np.diff(total) != change[1:]).sum())
        if wrong:
            # Threads record allocations independently, so the order of two may be wrong. Ascend's profilers do not list
            # releases of blocks that were allocated before the recording.
            is_loose = len(np.unique(store.mem_tid[rows])) > 1 or "ascend_config" in store.metadata
            severity = NOTE if is_loose else ERROR
            yield Problem(severity, "memory", f"{wrong} of {len(rows)} totals do not follow from the one before")
        if int(total.min()) < 0:
            yield Problem(ERROR, "memory", "less than nothing is allocated")


def _links(store: EventStore) -> Iterator[Problem]:
    backward = (store.kind == observer.BACKWARD) & (store.seq >= 0)
    missing = int(backward.sum()) - len(store.links[1])
    if missing > 0:
        yield Problem(NOTE, "links", f"{missing} backward nodes have no forward op in the recording")
    launched = np.flatnonzero((store.device_type != 0) & (store.correlation >= 0))
    unknown = int((store.launch_ns[launched] < 0).sum())
    if unknown:
        yield Problem(NOTE, "links", f"{unknown} of {len(launched)} device events have no launch in the recording")
    above = tree.nearest_ancestor(store.parent, np.ones(len(store), np.bool_))
    if (above >= np.arange(len(store))).any():
        yield Problem(ERROR, "links", "an event is its own ancestor")


def _losses(store: EventStore) -> Iterator[Problem]:
    recovery = store.metadata.get("recovery")
    if isinstance(recovery, dict) and not recovery.get("complete", True):
        yield Problem(NOTE, "losses", "the recording was recovered from a file that was cut off")
    left_out = store.metadata.get("calls_in_imports")
    if isinstance(left_out, int):
        yield Problem(NOTE, "losses", f"{left_out} Python calls were left out, which modules made while they were imported")
    sampled = store.metadata.get(SAMPLED_STACKS)
    if isinstance(sampled, str):
        yield Problem(NOTE, "losses", sampled[:500])
    losses = store.metadata.get("losses")
    for loss in losses if isinstance(losses, list) else ():
        yield Problem(NOTE, "losses", str(loss)[:500])
    if store.dropped_events:
        yield Problem(NOTE, "losses", f"{store.dropped_events} events were dropped while recording")


_CHECKS: tuple[Callable[[EventStore], Iterator[Problem]], ...] = (
    _times,
    _nesting,
    _self_times,
    _queries,
    _memory,
    _links,
    _losses,
)
