"""Reads Perfetto's native traces: the slices of tracks, as `perfetto` writes them and as other programs' track events are."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from ..store.store import EventStore
from . import kineto
from ._protobuf import Truncated, fields
from ._recovery import Recovery, TraceError
from ._source import Progress, blocks
from .perfetto import CUT

_JSON = re.compile(rb'\s*(\{\s*(["}]|$)|\[\s*([{\]]|$))')
_DEVICE_LANE = re.compile(r"device (\d+) (.*)")
_ON_DEVICE = {
    "kernel": "kernel",
    "gpu_memcpy": "gpu_memcpy",
    "gpu_memset": "gpu_memset",
    "user_annotation": "gpu_user_annotation",
}
_BATCH = 4096
_BEGIN, _END, _INSTANT = 1, 2, 3

Event = dict[str, Any]


def is_trace(start: bytes) -> bool:
    """Whether a file that starts so may be a trace: a message whose first field is a packet, and no JSON."""
    return start[:1] == b"\n" and not _JSON.match(start)


def read(
    path: str | os.PathLike[str], progress: Progress | None = None, max_bytes: int | None = None
) -> tuple[EventStore, Recovery]:
    """Read a trace, gzipped or not: slices of tracks, not what else it may have, such as counters. TraceError: it has none."""
    recovery = Recovery("perfetto")
    trace = _Trace(recovery)
    trace.add(b"".join(blocks(path, recovery, progress, max_bytes)))
    events = trace.events()
    if not events:
        raise TraceError(f"{os.fspath(path)!r} has no slices of tracks")
    store = kineto.from_events((events[at : at + _BATCH] for at in range(0, len(events), _BATCH)), recovery)
    return store, recovery


class _Slice(NamedTuple):
    track: int
    name: str
    category: str
    start: int
    end: int
    starting: list[int]  # numbers of flows
    ending: list[int]
    arguments: dict[str, Any]


class _Track(NamedTuple):
    process: int
    thread: int | None
    name: str
    parent: int


class _Trace:
    """The slices and tracks of packets."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self._tracks: dict[int, _Track] = {}
        self._interned: dict[tuple[int, int, int], str] = {}  # by sequence, kind and number
        self._open: dict[int, list[_Slice]] = {}
        self._slices: list[_Slice] = []
        self._forward: dict[int, int] = {}  # numbers of tracks with forward ops

    def add(self, body: bytes) -> None:
        """Take the packets of a file. One that is damaged is counted; where packets break off, the rest is lost."""
        try:
            for field, packet in fields(body):
                if field == 1 and isinstance(packet, bytes):
                    try:
                        self._packet(packet)
                    except (Truncated, UnicodeDecodeError, ValueError):
                        self._recovery.skip("packet that is damaged")
        except Truncated as error:
            self._recovery.complete = False
            self._recovery.note(f"the trace breaks off: {error}")
        still_open = sum(map(len, self._open.values()))
        self._recovery.skip("slice without an end", still_open)

    def _packet(self, packet: bytes) -> None:
        parts = _last_of(packet)
        sequence, time = _whole(parts.get(10)), _whole(parts.get(8))
        if isinstance(parts.get(60), bytes):
            self._descriptor(parts[60])
        if isinstance(parts.get(12), bytes):
            for kind, entry in fields(parts[12]):
                if kind in (1, 2) and isinstance(entry, bytes):
                    named = _last_of(entry)
                    self._interned[sequence, kind, _whole(named.get(1))] = _text(named.get(2))
        if isinstance(parts.get(11), bytes):
            self._track_event(parts[11], sequence, time)

    def _descriptor(self, body: Any) -> None:
        parts = _last_of(body)
        process = _last_of(parts[3]) if isinstance(parts.get(3), bytes) else {}
        thread = _last_of(parts[4]) if isinstance(parts.get(4), bytes) else {}
        name = _text(thread.get(5)) or _text(parts.get(2))
        number = _whole(thread.get(2)) if thread else None
        self._tracks[_whole(parts.get(1))] = _Track(_whole(thread.get(1) or process.get(1)), number, name, _whole(parts.get(5)))

    def _track_event(self, body: Any, sequence: int, time: int) -> None:
        parts = _last_of(body)
        kind, track = _whole(parts.get(9)), _whole(parts.get(11))
        if kind == _END:
            opened = self._open.get(track)
            if not opened:
                self._recovery.skip("end of a slice that did not begin")
            else:
                self._slices.append(opened.pop()._replace(end=time + _cut_off(body)))
            return
        if kind not in (_BEGIN, _INSTANT):
            return
        category = _text(parts.get(22)) or self._interned.get((sequence, 1, _whole(parts.get(3))), "")
        name = _text(parts.get(23)) or self._interned.get((sequence, 2, _whole(parts.get(10))), "")
        flows: dict[int, list[int]] = {47: [], 48: []}
        arguments: dict[str, Any] = {}
        for field, value in fields(body):
            if field in flows:
                flows[field].append(_whole(value))
            elif field == 4 and isinstance(value, bytes):
                arguments.update(_annotation(value))
        found = _Slice(track, name, category, time, time, flows[47], flows[48], arguments)
        if kind == _BEGIN:
            self._open.setdefault(track, []).append(found)
        else:
            self._slices.append(found)

    # ------------------------------------------------------------------ events in Kineto's form

    def events(self) -> list[Event]:
        """All slices, in order of start, and the launches between them."""
        ended = sorted(self._slices, key=lambda found: (found.start, -found.end))
        sources = {flow: found for found in ended for flow in found.starting}
        backward = {flow for found in ended if found.category == "cpu_op" for flow in found.ending}
        devices: set[int] = set()
        events: list[Event] = []
        for found in ended:
            process, thread, device = self._place(found)
            event: Event = {
                "ph": "X",
                "name": found.name,
                "cat": found.category or "user_annotation",
                "pid": process,
                "tid": thread,
                "ts": _micro(found.start),
                "dur": _micro(found.end - found.start),
                "args": dict(found.arguments),
            }
            if found.category.endswith("_runtime"):
                event["args"] |= {"correlation": found.starting[0]} if found.starting else {}
            elif device is not None:
                event["cat"] = _ON_DEVICE[found.category]
                event["args"] |= {"device": device, "stream": thread}
                events += self._launches(found, sources, event["args"])
                if found.track not in devices:
                    devices.add(found.track)
                    name = {"name": "thread_name", "args": {"name": _DEVICE_LANE.sub(r"\2", self._tracks[found.track].name)}}
                    events.append({"ph": "M", "pid": process, "tid": thread, **name})
            else:
                events += self._forward_flows(found, sources, backward, event["args"])
            events.append(event)
        return events

    def _place(self, found: _Slice) -> tuple[int, int, int | None]:
        """Process and thread of a slice; of one of a device the device, the lane, and the device again."""
        track = self._tracks.get(found.track, _Track(0, None, "", 0))
        match = _DEVICE_LANE.fullmatch(track.name) if track.thread is None else None
        if match and found.category in _ON_DEVICE:
            number = re.search(r"\d+", match[2])
            return int(match[1]), int(number[0]) if number else found.track, int(match[1])
        above = self._tracks.get(track.parent)
        process = track.process or (above.process if above else 0)
        number = re.search(r"\((\d+)\)$", track.name)  # of a thread that has no number in the descriptor
        return process, track.thread if track.thread is not None else int(number[1]) if number else found.track, None

    def _launches(self, found: _Slice, sources: dict[int, _Slice], arguments: Event) -> Iterator[Event]:
        """Flows that lead to a piece of work: from a call of the runtime by a number, from an op by one of its own."""
        for flow in found.ending:
            source = sources.get(flow)
            if source is None:
                continue
            if source.category.endswith("_runtime"):
                arguments["correlation"] = source.starting[0]
            else:
                process, thread, _ = self._place(source)
                arguments["External id"] = flow
                place = {"pid": process, "tid": thread, "ts": _micro(source.start)}
                yield {"ph": "s", "name": "torch_to_npu", "cat": "async_npu", "id": flow, **place}

    def _forward_flows(
        self, found: _Slice, sources: dict[int, _Slice], backward: set[int], arguments: Event
    ) -> Iterator[Event]:
        """Flows from ops to their backward, whose numbers stand for sequence numbers, and tracks for forward threads."""
        process, thread, _ = self._place(found)
        for phase, flows in (("s", found.starting), ("f", found.ending)):
            for flow in flows:
                if found.category != "cpu_op" or flow not in backward or flow not in sources:
                    continue
                arguments["Sequence number"] = flow
                if phase == "f":
                    arguments["Fwd thread id"] = self._forward.setdefault(sources[flow].track, 1 + len(self._forward))
                place = {"pid": process, "tid": thread, "ts": _micro(found.start)}
                yield {"ph": phase, "name": "fwdbwd", "cat": "fwdbwd", "id": flow, "bp": "e", **place}


def _last_of(body: Any) -> dict[int, Any]:
    """The fields of a message; of one that is repeated, the last."""
    return dict(fields(body))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _annotation(body: bytes) -> dict[str, Any]:
    """An argument of a slice; JSON objects are arguments each."""
    parts = _last_of(body)
    if isinstance(parts.get(9), bytes):
        try:
            value = json.loads(parts[9])
        except RecursionError:
            return {}
        return value if isinstance(value, dict) else {_text(parts.get(10)): value}
    name = _text(parts.get(10))
    if not name:
        return {}
    return {name: _text(parts[6]) if 6 in parts else next((parts[at] for at in (2, 3, 4) if at in parts), None)}


def _cut_off(body: Any) -> int:
    """How much longer a slice of this project's was than its track could show."""
    annotations = (_annotation(value) for field, value in fields(body) if field == 4 and isinstance(value, bytes))
    return next((_whole(found[CUT]) for found in annotations if CUT in found), 0)


def _micro(nanoseconds: int) -> Decimal:
    return Decimal(nanoseconds) / 1000
