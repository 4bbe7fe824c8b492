"""Why a device had nothing to do: computing, communication and free time by step, gaps with their causes, and what limits.

`step_overlap`, `idle_causes` and `limits` take a store, of a CUDA trace of PyTorch or of a recording on an NPU.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.intervals import Intervals
from ...store.store import EventStore
from ..steps import steps
from .summary import LOADER, WAITS, by_device, classes, union

_MOST_GAPS = 5_000  # the longest, of which causes are looked for
_BUSY = 0.9  # of the time: from there on the device is what limits
_HOST_LATE = 0.5  # of the idle time: from there on the host is what limits
DEVICE_SIDE = "on the device: launched in time, and waits for other work or its turn"
BETWEEN_OPS = "between ops: Python and calls that are not recorded"
SHORT = "gaps too short to be looked at"


class StepOverlap(NamedTuple):
    """A step on one device, as Ascend's step_trace_time has it; free is where it neither computes nor communicates."""

    device: str
    step: int
    duration_ns: int
    computing_ns: int
    communication_ns: int
    not_overlapped_ns: int  # communication while nothing was computed
    free_ns: int
    copying_ns: int  # of the free time


class IdleCause(NamedTuple):
    """Gaps in a device's work with one cause: what the host did until it launched the work that ended them."""

    device: str
    cause: str
    gaps: int
    total_ns: int
    longest_ns: int
    then: str | None  # the op that launched the work after most of that time


class Limit(NamedTuple):
    """What limits a program on a device: "device", "host", "communication" or "neither"."""

    device: str
    limit: str
    busy_share: float  # from the first to the last work
    idle_by_host_share: float  # of the idle time: the host had not launched the next work
    exposed_communication_share: float


def step_overlap(store: EventStore) -> list[StepOverlap]:
    """Each step on each device."""
    which = steps(store)
    found = []
    for device, rows in by_device(store):
        kernels, talks, copies = classes(store, rows)
        computing, talking, copying = union(store, kernels), union(store, talks), union(store, copies)
        start, end = which.start, which.end.copy()
        if len(end):  # the last step's work may end after it
            end[-1] = max(end[-1], int(store.end[rows[store.start[rows] < end[-1]]].max(initial=0)))
        both = computing | talking
        columns = [each.covered(start, end) for each in (computing, talking, both, both | copying)]
        for at, number in enumerate(which.number.tolist()):
            computed, talked, worked, busy = (int(column[at]) for column in columns)
            length = int(end[at] - start[at])
            found.append(
                StepOverlap(device, number, length, computed, talked, worked - computed, length - worked, busy - worked)
            )
    return found


def idle_causes(store: EventStore) -> list[IdleCause]:
    """The gaps in each device's work by their cause, most time first."""
    causes: list[IdleCause] = []
    host = _Host(store)
    for device, rows in by_device(store):
        begin, end, following = _gaps(store, rows)
        order = np.argsort(begin - end, kind="stable")
        groups: dict[str, list[tuple[int, str | None]]] = {}
        for at in order[:_MOST_GAPS].tolist():
            cause, then = host.cause(int(begin[at]), int(end[at]), int(following[at]))
            groups.setdefault(cause, []).append((int(end[at] - begin[at]), then))
        rest = order[_MOST_GAPS:]
        if len(rest):
            groups.setdefault(SHORT, []).extend((int(length), None) for length in (end - begin)[rest])
        for cause, gaps in groups.items():
            lengths = [length for length, _ in gaps]
            causes.append(IdleCause(device, cause, len(gaps), sum(lengths), max(lengths), _most(gaps)))
    return sorted(causes, key=lambda cause: -cause.total_ns)


def limits(store: EventStore) -> list[Limit]:
    """What limits the program, for each device."""
    found = []
    causes = idle_causes(store)
    for device, rows in by_device(store):
        kernels, talks, _ = classes(store, rows)
        span = max(int(store.end[rows].max() - store.start[rows].min()), 1)
        computing = union(store, kernels)
        exposed = ((computing | union(store, talks)).total - computing.total) / span
        busy = union(store, rows).total / span
        idle = sum(cause.total_ns for cause in causes if cause.device == device)
        late = sum(cause.total_ns for cause in causes if cause.device == device and cause.cause not in (DEVICE_SIDE, SHORT))
        by_host = late / idle if idle else 0.0
        if exposed > 1 - _BUSY and exposed > 1 - busy:
            limit = "communication"
        elif busy >= _BUSY:
            limit = "device"
        else:
            limit = "host" if by_host >= _HOST_LATE else "neither"
        found.append(Limit(device, limit, busy, by_host, exposed))
    return found


def _gaps(store: EventStore, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]:
    """Begin and end of each stretch without work between the first work and the last, and the row that ends it."""
    order = rows[np.argsort(store.start[rows], kind="stable")]
    reached = np.maximum.accumulate(store.end[order])
    after = np.flatnonzero(store.start[order][1:] > reached[:-1])
    return reached[:-1][after], store.start[order][1:][after], order[1:][after]


def _most(gaps: list[tuple[int, str | None]]) -> str | None:
    spent: dict[str, int] = {}
    for length, then in gaps:
        if then is not None:
            spent[then] = spent.get(then, 0) + length
    return max(spent, key=spent.__getitem__, default=None)


class _Host:
    """What each thread of the host did: the outermost ops, loaders, and calls that wait for the device."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        waits = np.array([WAITS.search(name) is not None for name in store.names] + [False])[store.name]
        loads = np.array([name.startswith(LOADER) for name in store.names] + [False])[store.name]
        ops = np.isin(store.kind, (observer.OP, observer.BACKWARD))
        chosen = (store.device_type == 0) & (ops | loads | (waits & (store.kind == observer.RUNTIME)))
        self._by_thread: dict[int, NDArray[np.intp]] = {}
        for tid in np.unique(store.tid[chosen]).tolist():
            rows = np.flatnonzero(chosen & (store.tid == tid))
            rows = rows[np.lexsort((-store.end[rows], store.start[rows]))]
            outer = np.ones(len(rows), np.bool_)
            outer[1:] = store.start[rows][1:] >= np.maximum.accumulate(store.end[rows])[:-1]
            # With the waits inside of them, which say why an op took its time.
            self._by_thread[tid] = rows[outer | waits[rows]]
        self._waits = waits

    def cause(self, begin: int, end: int, work: int) -> tuple[str, str | None]:
        """What kept the work that ends a gap from coming sooner, and the op that launched it."""
        store = self._store
        launcher = int(store.launcher[work])
        then = store.names[store.name[launcher]] if launcher >= 0 else None
        launched, tid = int(store.launch_ns[work]), int(store.launch_tid[work])
        if launched < 0 or tid < 0:
            return "unknown: the launch is not in the recording", then
        if launched <= begin:
            return DEVICE_SIDE, then
        rows = self._by_thread.get(tid, np.empty(0, np.intp))
        first = max(int(np.searchsorted(store.start[rows], begin)) - 2, 0)
        last = int(np.searchsorted(store.start[rows], launched))
        near = rows[first:last]
        until = min(launched, end)
        overlap = np.minimum(store.end[near], until) - np.maximum(store.start[near], begin)
        if not len(near) or int(overlap.max()) <= 0:
            return BETWEEN_OPS, then
        # The host's time without an op counts against the longest op in it.
        without = (until - begin) - Intervals(store.start[near], store.end[near]).covered(np.array([begin]), np.array([until]))[
            0
        ]
        if without > int(overlap.max()):
            return BETWEEN_OPS, then
        row = int(near[np.argmax(overlap)])
        name = store.names[store.name[row]]
        waiting = np.where(self._waits[near] & (near != row), overlap, 0)
        if 2 * int(waiting.max()) > int(overlap.max()):
            name += f" ({store.names[store.name[near[np.argmax(waiting)]]]})"
        return name, then
