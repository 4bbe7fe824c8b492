"""The device part of a Kineto trace: a process for each device, a lane for each stream, flows from launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.strict_json import dumps
from ..store.categories import categories
from ..store.distinct import distinct_values
from ..store.store import EventStore
from ._lines import Piece, interleaved, lines, number, picked, text, thousandths
from .row_details import DetailTexts

# Viewers sort by this: devices come after the processes of the host, whose sort index is their pid.
_AFTER_ALL_PIDS = 5_000_000
_LABELS = {1: "GPU", 6: "HPU", 12: "XPU", 19: "MTIA"}  # by torch's number of the device's type
_OWN_ARGUMENTS = frozenset({"External id", "correlation"})  # written from columns

ToTraceTime = Callable[[NDArray[np.int64]], NDArray[np.int64]]


class DeviceLanes:
    """Formats device rows, and the runtime calls on the host that launched them, as lines of a trace."""

    def __init__(self, store: EventStore, names: list[bytes], trace_time: ToTraceTime, left_out: frozenset[str]) -> None:
        self.store, self._names, self._trace_time = store, names, trace_time
        self.on_device = store.device_type != 0
        self.all_rows = np.flatnonzero(self.on_device | (store.kind == observer.RUNTIME))
        self.rows = self.all_rows
        if left_out:
            host, device = (np.array([name in left_out for name in kinds]) for kinds in categories(store))
            excluded = np.where(self.on_device, device[store.kind], host[store.kind])
            self.rows = self.all_rows[~excluded[self.all_rows]]
        self._in_trace = np.zeros(len(store), np.bool_)
        self._in_trace[self.rows] = True
        self._idents = np.array([thread.ident for thread in store.threads], np.int64)
        # A device without a recorded number is the first.
        self.device = np.maximum(store.device_index, 0)
        self.indices: list[int] = distinct_values(self.device[self.on_device]).tolist()
        self.lanes = distinct_values(store.tid[self.on_device])
        self._kinds = (*categories(store)[0], *categories(store)[1])  # of the host, then of devices
        self._details = DetailTexts(store.row_details, len(self._kinds), _OWN_ARGUMENTS)

    def metadata(self) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
        """(name, pid, tid, args) of the lines that name devices and streams."""
        store = self.store
        for device in self.indices:
            rows = self.on_device & (self.device == device)
            kind = _LABELS.get(int(store.device_type[np.flatnonzero(rows)[0]]), "NPU")
            yield "process_name", device, 0, {"name": "python"}
            yield "process_labels", device, 0, {"labels": f"{kind} {device}"}
            yield "process_sort_index", device, 0, {"sort_index": _AFTER_ALL_PIDS + device}
            for stream in sorted(store.threads[tid] for tid in distinct_values(store.tid[rows]).tolist()):
                yield "thread_name", device, stream.ident, {"name": stream.name}
                yield "thread_sort_index", device, stream.ident, {"sort_index": stream.ident}

    def spans(self, rows: NDArray[np.intp]) -> bytes:
        """Lines of kernels, copies, fills, labels and calls of the runtime."""
        store, count = self.store, len(rows)
        start = store.start[rows]
        times: list[Piece] = [thousandths(self._trace_time(start)), b', "dur": ', thousandths(store.end[rows] - start)]
        return interleaved(self._prefixes(rows), lines(times, count), self._arguments(rows))

    def _prefixes(self, rows: NDArray[np.intp]) -> list[bytes]:
        """The start of each line, up to its time; formatted once per category, name and lane."""
        store = self.store
        table = []
        lane = (store.tid[rows], self.on_device[rows], self.device[rows])
        by_kind = store.kind[rows] + self.on_device[rows] * (len(self._kinds) // 2)
        names = (*self._kinds, *self._details.categories)
        distinct, which = _numbered(store.name[rows], self._details.category(store.details[rows], by_kind), *lane)
        for name, category, tid, on_device, index in distinct:
            pid = index if on_device else store.pid
            table.append(
                b'{"ph": "X", "cat": %s, "name": %s, "pid": %d, "tid": %d, "ts": '
                % (dumps(names[category] or "").encode(), self._names[name], pid, store.threads[tid].ident)
            )
        return picked(table, which)

    def _arguments(self, rows: NDArray[np.intp]) -> list[bytes]:
        """The end of each line, after its times: the op, device and stream, correlation number and what else there is.

        Ranges on a device have no stream: readers take what has one for work of that stream.
        """
        store = self.store
        told = store.details[rows] >= 0
        has = (store.linked[rows] >= 0, store.is_work[rows] & ~told, store.correlation[rows] >= 0, told)
        endings = np.empty(len(rows), object)
        distinct, which = _numbered(*has)
        for at, (op, on_device, correlation, more) in enumerate(distinct):
            some = rows[which == at]
            pieces: list[Piece] = []
            if op:
                pieces += [b', "External id": ', number(store.ids[store.linked[some]])]
            if on_device:
                pieces += [b', "device": ', number(self.device[some]), b', "stream": ', number(self._idents[store.tid[some]])]
            if correlation:
                pieces += [b', "correlation": ', number(store.correlation[some])]
            first = lines(pieces, len(some)) if pieces else [b""] * len(some)
            rest = self._details.texts(store.details[some]) if more else [b""] * len(some)
            endings[which == at] = [
                b', "args": {%s}},\n' % (one + other).removeprefix(b", ") for one, other in zip(first, rest, strict=True)
            ]
        texts: list[bytes] = endings.tolist()
        return texts

    def flows(self) -> bytes:
        """Flows from each launch to the device's work. A flow has one start and one end."""
        store, work, calls = self.store, self._reached, self._calls
        started = calls >= 0
        tids = np.where(started, store.tid[calls], store.launch_tid[work])
        times = np.where(started, store.start[calls], store.launch_ns[work])
        begins = self._ends(b"s", self._flow_ids, np.full(len(work), store.pid), tids, times)
        return begins + self._ends(b"f", self._flow_ids, self.device[work], store.tid[work], store.start[work])

    @cached_property
    def _reached(self) -> NDArray[np.intp]:
        """Work whose launch is known, by the call or by its time, in order of time."""
        store = self.store
        work = np.flatnonzero(store.is_work & self._in_trace)
        work = work[np.argsort(store.start[work], kind="stable")]
        known = np.isin(store.correlation[work], store.correlation[self._launching]) & (store.correlation[work] >= 0)
        # Without a call of the runtime, a flow starts inside the op, at the time of the launch.
        return work[known | ((store.launch_ns[work] >= 0) & (store.launch_tid[work] >= 0))]

    @cached_property
    def _launching(self) -> NDArray[np.intp]:
        """The calls of the runtime with a correlation number, in order of it."""
        store = self.store
        calls = np.flatnonzero((store.kind == observer.RUNTIME) & (store.correlation >= 0) & self._in_trace)
        return calls[np.argsort(store.correlation[calls], kind="stable")]

    @cached_property
    def _calls(self) -> NDArray[np.intp]:
        """The call that launched each piece of work that is reached, or -1."""
        wanted, numbers = self.store.correlation[self._reached], self.store.correlation[self._launching]
        if not len(numbers):
            return np.full(len(wanted), -1, np.intp)
        place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        return np.where((wanted >= 0) & (numbers[place] == wanted), self._launching[place], -1)

    @cached_property
    def _flow_ids(self) -> NDArray[np.int64]:
        """The number of each flow: the correlation number, and for a call's further kernels a number that is free."""
        numbers = self.store.correlation[self._reached].astype(np.int64)
        own = np.zeros(len(numbers), np.bool_)
        own[np.unique(numbers, return_index=True)[1]] = True
        others = ~(own & (numbers >= 0))
        numbers[others] = int(self.store.correlation.max(initial=0)) + 1 + np.arange(int(others.sum()))
        return numbers

    @property
    def last_flow(self) -> int:
        """The largest number of a flow."""
        return int(self._flow_ids.max(initial=0))

    def _ends(self, phase: bytes, ids: NDArray[Any], pids: NDArray[Any], tids: NDArray[Any], times: NDArray[np.int64]) -> bytes:
        count = len(ids)
        pieces: list[Piece] = [
            b'{"ph": "%s", "id": ' % phase,
            number(ids),
            b', "pid": ',
            number(pids),
            b', "tid": ',
            number(self._idents[tids]),
            b', "ts": ',
            thousandths(self._trace_time(times)),
            b', "cat": "ac2g", "name": "ac2g"%s},\n' % (b', "bp": "e"' if phase == b"f" else b""),
        ]
        return text(pieces, count)


def _numbered(*columns: NDArray[Any]) -> tuple[list[tuple[int, ...]], NDArray[np.intp]]:
    """The distinct combinations of some columns, and for each row which it has."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), which
