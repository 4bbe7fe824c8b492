"""How long a recording would have taken, had some of its ops been faster; and its critical path.

The recording is a graph: moments of each thread and stream, and between them what must pass before the next may come. A moment
of a thread follows the one before it; work of a device follows its launch and the work before it in its stream; a host call
that waits for a device follows what it waited for; a thread that was set to work while another waited follows that one, and the
other follows its end. Each moment comes as soon as all that it follows allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.store import EventStore
from .steps import Steps, is_step, steps

Ints = NDArray[np.int64]

_WAITS = ("synchronize", "eventsynchronize", "streamsynchronize", "devicesynchronize")


@dataclass(frozen=True)
class Prediction:
    """What a change would do: nanoseconds of a step (or of the recording, if it has no steps) before and after."""

    factor: float
    before_ns: float
    after_ns: float

    @property
    def change(self) -> float:
        """How much of the time would be gone, from 0 to 1."""
        return 1 - self.after_ns / self.before_ns if self.before_ns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values, for JSON; the factor is null for ops that take no time at all."""
        factor = self.factor if np.isfinite(self.factor) else None
        return {"factor": factor, "before_ns": self.before_ns, "after_ns": self.after_ns, "change": self.change}


class OnPath(NamedTuple):
    """The time of one name on the critical path, all its time, and its calls."""

    name: str
    path_ns: int
    total_ns: int
    calls: int


class WhatIf:
    """The graph of one recording. Building it takes a pass over the rows, and so does each question."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.steps: Steps = steps(store)
        self._innermost = _HostSegments(store)
        self._build()

    def matching(self, patterns: list[str]) -> NDArray[np.bool_]:
        """Rows whose name matches one of the patterns (* and ?), and all that they called and launched."""
        store = self.store
        named = [n for n, name in enumerate(store.names) if any(fnmatchcase(name, pattern) for pattern in patterns)]
        named_rows = np.isin(store.name, named)
        inside: NDArray[np.bool_] = named_rows | (tree.nearest_ancestor(store.parent, named_rows) >= 0)
        if store.has_device_rows:
            launched = store.launcher >= 0
            inside |= launched & np.append(inside, False)[store.launcher]
        return inside

    def faster(self, rows: NDArray[np.bool_], factor: float) -> Prediction:
        """What would become of a step if these rows took 1/factor of their time."""
        before, after = self._replayed(None, 1.0)[0], self._replayed(rows, 1 / factor)[0]
        return Prediction(factor, self._step_ns(before), self._step_ns(after))

    def critical_path(self) -> list[OnPath]:
        """What the critical path is made of by name, most time first. Python between ops has the name of its function."""
        store = self.store
        _, binding = self._replayed(None, 1.0)
        spent = np.zeros(len(store) + 1, np.int64)
        at = self._last
        while at >= 0 and (edge := binding[at]) >= 0:
            spent[self._edge_row[edge]] += self._weight[edge]
            at = int(self._from[edge])
        label = np.where(is_step(store), -1, store.label)
        path = tree.sums(label, spent[:-1], len(store.labels))
        total = tree.sums(label, np.where(store.is_work, store.duration, store.self_ns), len(store.labels))
        calls = np.bincount(label[label >= 0], minlength=len(store.labels))
        found = [
            OnPath(*row) for row in zip(store.labels, path.tolist(), total.tolist(), calls.tolist(), strict=True) if row[1]
        ]
        between = int(path.sum())
        rest = int(spent.sum()) - between
        if rest:
            found.append(OnPath("(between events)", rest, rest, 0))
        return sorted(found, key=lambda one: -one.path_ns)

    @property
    def has_steps(self) -> bool:
        """Whether the figures are those of a step, not of the whole recording."""
        return len(self.steps.start) > 1

    # ------------------------------------------------------------------ the graph

    def _build(self) -> None:
        """Number the moments in order of time, and list the edges by the moment that they lead to."""
        store, host = self.store, self._innermost
        device = np.flatnonzero(store.is_work)
        moments: dict[tuple[int, int], None] = {}

        def moment(lane: int, time: int) -> tuple[int, int]:
            moments[lane, time] = None
            return lane, time

        links: list[_Link] = []
        waits = self._waits(device)
        joins = self._joins()
        cuts: dict[int, set[int]] = {}
        launched = device[store.launch_ns[device] >= 0]
        for lane, time in zip(store.launch_tid[launched].tolist(), store.launch_ns[launched].tolist(), strict=True):
            cuts.setdefault(lane, set()).add(time)
        for lane, begin, end, other, first, last in joins:
            cuts.setdefault(lane, set()).update((begin, end))
            links.append((moment(lane, begin), moment(other, first), 0, -1))
            links.append((moment(other, last), moment(lane, end), 0, -1))
        if len(store):
            cuts.setdefault(self._main, set()).update([*self.steps.start.tolist(), *self.steps.end.tolist()])
        elastic = {(lane, begin): end for lane, begin, end, *_ in joins}
        for lane, times, rows in host.lanes(cuts):
            free_until = -1
            for left, right, row in zip(times[:-1], times[1:], rows, strict=True):
                free_until = max(free_until, elastic.get((lane, left), -1))
                weight = 0 if right <= free_until or row in waits else right - left
                links.append((moment(lane, left), moment(lane, right), weight, row))
        self._add_device(links, moment, device, waits)
        order = _ordered(moments, links)
        number = {key: at for at, key in enumerate(order)}
        self._time: Ints = np.array([time for _, time in order], np.int64)
        self._last = max(range(len(order)), key=lambda at: order[at][1], default=-1)
        links.sort(key=lambda link: number[link[1]])
        self._from: Ints = np.array([number[link[0]] for link in links], np.int64)
        self._to: Ints = np.array([number[link[1]] for link in links], np.int64)
        self._weight: Ints = np.array([link[2] for link in links], np.int64)
        self._edge_row: Ints = np.array([link[3] for link in links], np.int64)
        self._number = number

    @property
    def _main(self) -> int:
        """The thread of the steps, or the one with the first row."""
        rows = np.flatnonzero(is_step(self.store) & (self.store.device_type == 0))
        host = np.flatnonzero(self.store.device_type == 0)
        return int(self.store.tid[rows[0] if len(rows) else host[0]])

    def _add_device(self, links: Any, moment: Any, device: NDArray[np.intp], waits: dict[int, int]) -> None:
        """Work of devices: after its launch and after what is before it in its stream; and those that wait for it."""
        store = self.store
        last: dict[int, int] = {}
        latency = [int(store.start[r] - store.launch_ns[r]) for r in device.tolist() if store.launch_ns[r] >= 0]
        least = max(0, min(latency, default=0))
        for row in device[np.argsort(store.start[device], kind="stable")].tolist():
            lane, start, end = -2 - int(store.tid[row]), int(store.start[row]), int(store.end[row])
            before, launched = last.get(lane), int(store.launch_ns[row])
            queued = before is not None and before >= launched
            if before is not None:
                links.append((moment(lane, before), moment(lane, start), max(0, start - before) if queued else 0, -1))
            if launched >= 0:
                key = moment(int(store.launch_tid[row]), launched)
                links.append((key, moment(lane, start), min(least, start - launched) if queued else start - launched, -1))
            links.append((moment(lane, start), moment(lane, end), end - start, row))
            last[lane] = end
        for row, work in waits.items():
            lane, end = -2 - int(store.tid[work]), int(store.end[work])
            finished = int(store.end[row])
            links.append((moment(lane, end), moment(int(store.tid[row]), finished), max(0, finished - end), row))

    def _waits(self, device: NDArray[np.intp]) -> dict[int, int]:
        """Host calls that wait for a device, with the work that ended last in the time of each."""
        store = self.store
        if not len(device):
            return {}
        waiting = [
            n for n, name in enumerate(store.names) if name.lower().endswith(_WAITS) or name in ("cudaMemcpy", "aclrtMemcpy")
        ]
        rows = np.flatnonzero((store.kind == observer.RUNTIME) & np.isin(store.name, waiting))
        by_end = device[np.argsort(store.end[device], kind="stable")]
        at = np.searchsorted(store.end[by_end], store.end[rows], side="right") - 1
        found = zip(rows.tolist(), at.tolist(), strict=True)
        return {row: int(by_end[i]) for row, i in found if i >= 0 and store.end[by_end[i]] >= store.start[row]}

    def _joins(self) -> list[tuple[int, int, int, int, int, int]]:
        """Stretches in which one thread worked while the main thread waited for it.

        (main, from, to, other thread, its first and last moment). The main thread waits where it is in Python or between
        events, and no op of its begins until the other is done.
        """
        host, main = self._innermost, self._main if len(self.store) else 0
        found = []
        for other in host.threads:
            if other == main:
                continue
            for first, last in host.bursts(other):
                idle = host.idle_around(main, first, last)
                if idle:
                    found.append((main, first, last, other, first, last))
        return found

    def _replayed(self, rows: NDArray[np.bool_] | None, scale: float) -> tuple[NDArray[np.float64], Ints]:
        """The time of each moment, and the edge that it had to wait for (-1 for the first of a lane)."""
        weight = self._weight.astype(np.float64)
        if rows is not None:
            weight[np.append(rows, False)[self._edge_row]] *= scale
        origin = int(self._time.min()) if len(self._time) else 0
        values = (self._time - origin).astype(np.float64).tolist()  # a moment that follows none stays where it was
        bound, reached = [-1] * len(values), [False] * len(values)
        edges = zip(self._from.tolist(), self._to.tolist(), weight.tolist(), strict=True)
        for number, (begin, end, length) in enumerate(edges):
            comes = values[begin] + length
            if not reached[end] or comes > values[end]:
                values[end], bound[end], reached[end] = comes, number, True
        return np.array(values), np.array(bound, np.int64)

    def _step_ns(self, times: NDArray[Any]) -> float:
        """The mean time of a step, or of the whole recording."""
        if not self.has_steps:
            return float(times.max() - times.min()) if len(times) else 0.0
        spans = []
        for start, end in zip(self.steps.start.tolist(), self.steps.end.tolist(), strict=True):
            a, b = self._number.get((self._main, start)), self._number.get((self._main, end))
            if a is not None and b is not None:
                spans.append(times[b] - times[a])
        return float(np.mean(spans)) if spans else float(times.max() - times.min())


Moment = tuple[int, int]  # lane (a thread, or -2 - a stream) and time
_Link = tuple[Moment, Moment, int, int]  # from, to, what passes between them, and the row that it is of, -1 for none


def _ordered(moments: Iterable[Moment], links: list[_Link]) -> list[Moment]:
    """The moments, each after all that it follows; of one time there may be several on different lanes."""
    follows: dict[Moment, list[Moment]] = {}
    waiting: dict[Moment, int] = dict.fromkeys(moments, 0)
    for begin, end, *_ in links:
        follows.setdefault(begin, []).append(end)
        waiting[end] += 1
    ready = [one for one, count in waiting.items() if not count]
    for one in ready:
        for after in follows.get(one, ()):
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    if len(ready) < len(waiting):  # times that contradict each other, as of a damaged file
        raise ValueError("the events of this recording follow one another in a circle")
    return ready


class _HostSegments:
    """Each thread's time cut where the innermost event changes."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        host = np.flatnonzero((store.device_type == 0) & (store.kind != observer.MEMORY))
        self._rows = {int(tid): host[store.tid[host] == tid] for tid in np.unique(store.tid[host])}
        self._cut = {tid: self._segments(rows) for tid, rows in self._rows.items()}

    @property
    def threads(self) -> list[int]:
        return list(self._rows)

    def _segments(self, rows: NDArray[np.intp]) -> tuple[list[int], list[int]]:
        """Moments in order, and the innermost row from each moment to the next (-1 for none)."""
        store = self.store
        times: list[int] = []
        inner: list[int] = []
        open_rows: list[int] = []

        def cut(time: int) -> None:
            if times and time <= times[-1]:
                inner[-1] = open_rows[-1] if open_rows else -1
                return
            times.append(time)
            inner.append(open_rows[-1] if open_rows else -1)

        ends = store.nested_end
        for row in rows.tolist():
            start = int(store.start[row])
            while open_rows and int(ends[open_rows[-1]]) <= start:
                done = open_rows.pop()
                cut(int(ends[done]))
            open_rows.append(row)
            cut(start)
        while open_rows:
            done = open_rows.pop()
            cut(int(ends[done]))
        return times, inner[:-1]

    def lanes(self, cuts: dict[int, set[int]]) -> list[tuple[int, list[int], list[int]]]:
        """(thread, moments, innermost rows between them), cut at further moments, too."""
        found = []
        for tid, (times, inner) in self._cut.items():
            extra = sorted(time for time in cuts.get(tid, ()) if times and times[0] < time < times[-1])
            if extra:
                whole = np.unique(np.array([*times, *extra], np.int64))
                at = np.searchsorted(np.array(times, np.int64), whole[:-1], side="right") - 1
                found.append((tid, whole.tolist(), [inner[i] for i in at.tolist()]))
            else:
                found.append((tid, times, inner))
        return found

    def bursts(self, tid: int) -> list[tuple[int, int]]:
        """Stretches in which a thread has an event open."""
        times, inner = self._cut[tid]
        found: list[tuple[int, int]] = []
        for left, right, row in zip(times[:-1], times[1:], inner, strict=True):
            if row < 0:
                continue
            if found and found[-1][1] == left:
                found[-1] = (found[-1][0], right)
            else:
                found.append((left, right))
        return found

    def idle_around(self, tid: int, first: int, last: int) -> bool:
        """Whether a thread has no event of its own in a stretch but Python, a range or a step that is open all the time."""
        times, inner = self._cut[tid]
        moments = np.array(times, np.int64)
        low, high = np.searchsorted(moments, first, side="right") - 1, np.searchsorted(moments, last, side="left")
        if low < 0 or high >= len(times) or high - low != 1:
            return False
        row = inner[low]
        kinds = (observer.PYTHON, observer.MODULE, observer.SCOPE, observer.STEP)
        return row < 0 or int(self.store.kind[row]) in kinds
