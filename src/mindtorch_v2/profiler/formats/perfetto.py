"""Perfetto's native trace: tracks for threads and streams, slices with interned names, flows, memory counters."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from ..._dispatch import observer
from .._io.files import write_file
from ..store.categories import FIRST_USE
from ..store.store import EventStore
from ._nested import Lane, beginnings_and_ends, lanes
from ._protobuf import fixed64, message, number, text

# Fields of perfetto.protos: Trace, TracePacket, TrackDescriptor and its parts, InternedData, TrackEvent.
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED_DATA, _SEQUENCE_FLAGS, _TRACK_DESCRIPTOR = 8, 10, 11, 12, 13, 60
_UUID, _TRACK_NAME, _PROCESS, _THREAD, _PARENT_UUID, _COUNTER = 1, 2, 3, 4, 5, 8
_PID, _TID, _THREAD_NAME, _PROCESS_NAME = 1, 2, 5, 6
_COUNTER_UNIT, _BYTES_UNIT = 3, 3
_EVENT_CATEGORIES, _EVENT_NAMES = 1, 2
_IID, _NAME = 1, 2
_CATEGORY_IIDS, _TYPE, _NAME_IID, _TRACK_UUID, _COUNTER_VALUE, _FLOW_IDS, _LAST_FLOW_IDS = 3, 9, 10, 11, 30, 47, 48
_ANNOTATION, _ANNOTATION_NAME, _ANNOTATION_JSON, _ANNOTATION_INT = 4, 10, 9, 4
CUT = "cut off (ns)"  # slices of a track nest: how much later one ended that another, which is not inside of it, cuts
_BEGIN, _END, _COUNTS = 1, 2, 4
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_CATEGORIES = (
    "cpu_op",
    "cpu_op",
    "cpu_op",
    "user_annotation",
    "user_annotation",
    "python_function",
    "python_function",
    "memory",
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "privateuse1_runtime",
    FIRST_USE,
)
_SEQUENCE_ID = 1
_PROCESS_UUID = 1
_FIRST_LANE_UUID = 1 << 8
_FIRST_COUNTER_UUID = 1 << 40
_MOST_TID = (1 << 31) - 1
_BLOCK = 1 << 12
_ENDS = number(_TYPE, _END)


def export(store: EventStore, path: str | os.PathLike[str]) -> None:
    """Write a recording for https://ui.perfetto.dev and trace_processor, usually as .pftrace."""
    write_file(path, _TraceWriter(store).blocks())


class _TraceWriter:
    """Encodes a store as the packets of a trace."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._sequence = number(_SEQUENCE, _SEQUENCE_ID) + number(_SEQUENCE_FLAGS, _NEEDS_STATE)
        self._starting, self._ending = _flows(store)
        self._labels = (store.name.astype(np.int64) * len(_CATEGORIES) + store.kind).tolist()
        self._details = store.details.tolist()
        self._ends = store.end.tolist()
        self._beginnings: dict[int, bytes] = {}  # by name and kind: the encoded part of a slice's beginning

    def blocks(self) -> Iterator[bytes]:
        """The whole file in blocks of some thousand packets."""
        store = self._store
        yield self._head()
        for lane in lanes(store):
            yield self._lane(lane)
            packets: list[bytes] = []
            for begins, row, time in beginnings_and_ends(store, lane.rows):
                packets.append(self._slice(lane, begins, row, time))
                if len(packets) == _BLOCK:
                    yield b"".join(packets)
                    packets.clear()
            yield b"".join(packets)
        yield from self._memory()

    def _head(self) -> bytes:
        """The packets of the process, and of every name and category with the number that slices refer to it by."""
        store = self._store
        process = number(_PID, store.pid) + text(_PROCESS_NAME, "python")
        track = number(_UUID, _PROCESS_UUID) + message(_PROCESS, process)
        interned = b"".join(
            message(field, number(_IID, iid) + text(_NAME, name))
            for field, names in ((_EVENT_CATEGORIES, _CATEGORIES), (_EVENT_NAMES, store.names))
            for iid, name in enumerate(names, 1)
        )
        state = number(_SEQUENCE, _SEQUENCE_ID) + number(_SEQUENCE_FLAGS, _STATE_CLEARED | _NEEDS_STATE)
        return _packet(message(_TRACK_DESCRIPTOR, track)) + _packet(state + message(_INTERNED_DATA, interned))

    def _lane(self, lane: Lane) -> bytes:
        track = number(_UUID, _FIRST_LANE_UUID + lane.number)
        thread = self._store.threads[lane.number]
        if lane.device_type or not 0 <= thread.ident <= _MOST_TID:
            track += number(_PARENT_UUID, _PROCESS_UUID) + text(_TRACK_NAME, lane.name)
        else:
            own = number(_PID, self._store.pid) + number(_TID, thread.ident) + text(_THREAD_NAME, thread.name)
            track += message(_THREAD, own)
        return _packet(message(_TRACK_DESCRIPTOR, track))

    def _slice(self, lane: Lane, begins: bool, row: int, time: int) -> bytes:
        event = self._beginning(self._labels[row]) if begins else _ENDS
        event += number(_TRACK_UUID, _FIRST_LANE_UUID + lane.number)
        if begins:
            if self._details[row] >= 0:
                arguments = self._store.row_details[self._details[row]].arguments
                event += message(_ANNOTATION, text(_ANNOTATION_NAME, "args") + text(_ANNOTATION_JSON, arguments))
            for flow in self._starting.get(row, ()):
                event += fixed64(_FLOW_IDS, flow)
            for flow in self._ending.get(row, ()):
                event += fixed64(_LAST_FLOW_IDS, flow)
        elif time < self._ends[row]:
            cut = text(_ANNOTATION_NAME, CUT) + number(_ANNOTATION_INT, self._ends[row] - time)
            event += message(_ANNOTATION, cut)
        return _packet(number(_TIMESTAMP, time) + message(_TRACK_EVENT, event) + self._sequence)

    def _beginning(self, label: int) -> bytes:
        encoded = self._beginnings.get(label)
        if encoded is None:
            name, kind = divmod(label, len(_CATEGORIES))
            encoded = number(_TYPE, _BEGIN) + number(_NAME_IID, name + 1) + number(_CATEGORY_IIDS, kind + 1)
            self._beginnings[label] = encoded
        return encoded

    def _memory(self) -> Iterator[bytes]:
        """Bytes in use over time, one counter per device."""
        store = self._store
        devices = store.mem_device_type.astype(np.int64) << 32 | store.mem_device_index.astype(np.uint32)
        for counter, device in enumerate(np.unique(devices).tolist()):
            rows = np.flatnonzero(devices == device)
            first = int(rows[0])
            uuid = _FIRST_COUNTER_UUID + counter
            kind = "device" if store.mem_device_type[first] else "CPU"
            name = f"{kind} {int(store.mem_device_index[first])} memory" if kind == "device" else "CPU memory"
            track = (
                number(_UUID, uuid)
                + number(_PARENT_UUID, _PROCESS_UUID)
                + text(_TRACK_NAME, name)
                + message(_COUNTER, number(_COUNTER_UNIT, _BYTES_UNIT))
            )
            yield _packet(message(_TRACK_DESCRIPTOR, track))
            head = number(_TYPE, _COUNTS) + number(_TRACK_UUID, uuid)
            yield b"".join(
                _packet(number(_TIMESTAMP, time) + message(_TRACK_EVENT, head + number(_COUNTER_VALUE, total)) + self._sequence)
                for time, total in zip(store.mem_time[rows].tolist(), store.mem_total[rows].tolist(), strict=True)
            )


def _packet(body: bytes) -> bytes:
    return message(_PACKET, body)


def _flows(store: EventStore) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """By row, the numbers of the flows that start there and that end there: forward to backward, launch to kernel."""
    starting: dict[int, list[int]] = {}
    ending: dict[int, list[int]] = {}
    forward, backward = store.links
    pairs = list(zip(forward.tolist(), backward.tolist(), strict=True))
    calls = {
        int(store.correlation[row]): int(row)
        for row in np.flatnonzero((store.kind == observer.RUNTIME) & (store.correlation >= 0))
    }
    for row in np.flatnonzero((store.device_type != 0) & (store.correlation >= 0)).tolist():
        call = calls.get(int(store.correlation[row]))
        if call is not None:
            pairs.append((call, row))
    for row, launcher in zip(np.flatnonzero(store.is_work).tolist(), store.launcher[store.is_work].tolist(), strict=True):
        call = calls.get(int(store.correlation[row]))
        if launcher >= 0 and (call is None or store.tid[call] != store.tid[launcher]):
            pairs.append((launcher, row))  # handed to another thread, which called the runtime
    for flow, (source, target) in enumerate(pairs, 1):
        starting.setdefault(source, []).append(flow)
        ending.setdefault(target, []).append(flow)
    return starting, ending
