"""Turns the events of a trace into columns, batch by batch; the events themselves are not kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.store import OtherEvent
from .._bounds import MOST_LANES
from .._recovery import Recovery
from .checks import checked_args, fault, is_key
from .details import DetailsTable, json_text
from .kinds import DEVICE_KINDS, HOST_KINDS, MEMORY_NAME, OLD_MARKS, device_kind, in_present_form, is_row
from .tables import Device, Inputs, LaneKey, Lanes
from .times import LATEST_NS, Inexact, nanosecond, nanoseconds

# torch's numbers of device types, by how the categories of their runtimes begin.
CUDA = 1
_DEVICE_OF_RUNTIME = {"privateuse1": 20, "xpu": 12, "mtia": 19, "hpu": 6}
_RECORDING_CATEGORY = "Trace"  # of the span of the whole recording
_WRITTEN_ANEW = ("Iteration Start: PyTorch Profiler", "Record Window End")  # instants that every trace has
_IGNORED_PHASES = {"M", "s", "t", "f"}
_LAUNCH_FLOWS = "async_npu"  # from an op to what it launched, in Ascend's traces
_TEXT_TID = b'"tid": "'
_SPARE_LANES = 1 << 8  # for streams, which are named in args

Columns = dict[str, NDArray[Any]]


class Parts:
    """Columns that grow by a batch at a time."""

    def __init__(self, **dtypes: Any) -> None:
        self._dtypes = dtypes
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in dtypes}

    def arrays(self, **columns: Any) -> Columns:
        """Convert lists or arrays for `add`; ValueError, TypeError or OverflowError if they are not numbers."""
        arrays = {name: np.asarray(values, self._dtypes[name]) for name, values in columns.items()}
        if any(array.ndim != 1 for array in arrays.values()):
            raise ValueError("a list in place of a number")
        return arrays

    def add(self, arrays: Columns) -> None:
        """Append arrays of one length."""
        for name, values in arrays.items():
            self._parts[name].append(values)

    def columns(self) -> Columns:
        """The parts joined; afterwards this object has none."""
        return {name: np.concatenate([np.empty(0, dtype), *self._parts.pop(name)]) for name, dtype in self._dtypes.items()}


_SPAN = {"name": np.int32, "kind": np.int8, "tid": np.int32, "start": np.int64, "end": np.int64}


class Collector:
    """Collects events in batches; afterwards `host`, `python`, `device`, `memory` and `flows` have the columns."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self.names: dict[str, int] = {}
        self.modules: dict[str, int] = {}
        self.stacks: dict[str, int] = {}
        self.lanes = Lanes()
        self.inputs = Inputs()
        self.host = Parts(
            **_SPAN,
            seq=np.int64,
            fwd=np.int64,
            shapes=np.int32,
            module=np.int32,
            stack=np.int32,
            correlation=np.int64,
            details=np.int32,
            external=np.int64,
            flops=np.int64,
        )
        self.python = Parts(**_SPAN)
        self.device = Parts(**_SPAN, device_index=np.int32, correlation=np.int64, details=np.int32, external=np.int64)
        self.details = DetailsTable()
        self.others: list[OtherEvent] = []
        self.memory = Parts(
            mem_time=np.int64,
            mem_bytes=np.int64,
            mem_addr=np.int64,
            mem_tid=np.int32,
            mem_total=np.int64,
            mem_device_type=np.int8,
            mem_device_index=np.int32,
            mem_reserved=np.int64,
        )
        self.flows = Parts(flow=np.int64, begins=np.bool_, tid=np.int32, time=np.int64)
        self.launches = Parts(flow=np.int64, begins=np.bool_, tid=np.int32, time=np.int64)
        self.window: tuple[int, int] | None = None
        self._open: dict[LaneKey, list[dict[str, Any]]] = {}
        self._runtimes: set[str] = set()
        self._text: bytes | None = None
        self._new_lanes: set[LaneKey] = set()
        # Changes of the current batch to open spans: (the list of a thread, the span popped from it or None for a pushed one).
        self._undo: list[tuple[list[dict[str, Any]], dict[str, Any] | None]] = []

    def add(self, events: list[Any], text: bytes | None = None) -> None:
        """Add a batch, and its text if there is one. Events that cannot be read are counted by reason and left out.

        Inexact if times have to be parsed again from the text; then no event of the batch was added.
        """
        self._text = text
        if text is None or _TEXT_TID in text or any(mark in text for mark in OLD_MARKS):
            events = [in_present_form(event) for event in events]
        if not self._add_whole(events):
            # Something is not as Kineto writes it: check every event, and add the good ones.
            self._new_lanes = set()
            good = [event for event in map(self._checked, events) if event is not None]
            if not self._add_whole(good):
                for event in good:
                    if not self._add_whole([event]):
                        self._recovery.skip("not understood")

    def _add_whole(self, events: list[Any]) -> bool:
        """Add all of these events, or none of them if one cannot be read; whether they were added."""
        skipped = dict(self._recovery.skipped)
        self._undo = []
        others = len(self.others)
        tables: list[dict[Any, int]] = [self.names, self.modules, self.stacks, self.lanes.numbers]
        sizes = [len(table) for table in tables]
        try:
            additions = self._additions(events)
            for table, size in zip(tables, sizes, strict=True):
                if not all(map(is_key, islice(reversed(table), len(table) - size))):
                    raise TypeError("a name that is not text")
            if len(self.lanes.numbers) > MOST_LANES:
                raise ValueError("too many threads")
        except (Inexact, AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            for table, size in zip(tables, sizes, strict=True):
                while len(table) > size:
                    table.popitem()
            for waiting, begun in reversed(self._undo):
                if begun is None:
                    waiting.pop()
                else:
                    waiting.append(begun)
            del self.others[others:]
            self._recovery.skipped = skipped
            if isinstance(error, Inexact):
                raise
            return False
        for parts, columns in additions:
            parts.add(columns)
        return True

    def _additions(self, events: list[Any]) -> list[tuple[Parts, Columns]]:
        """The columns of a batch, each with the Parts that it is to be added to."""
        host: list[Any] = []
        python: list[Any] = []
        device: list[Any] = []
        others: list[Any] = []
        by_category: dict[str, Callable[[Any], None]] = {"python_function": python.append}
        by_category.update(dict.fromkeys(HOST_KINDS.keys() - by_category.keys(), host.append))
        by_category.update(dict.fromkeys(DEVICE_KINDS, device.append))
        append_for, append_other = by_category.get, others.append
        special = self._text is None or b"mtia_" in self._text
        for event in events:
            if event["ph"] == "X" and not (special and not is_row(event)):
                append_for(event.get("cat"), append_other)(event)
            else:
                append_other(event)
        spans, instants, flows, launches = self._other_events(others)
        host += spans
        additions = []
        if host:
            additions.append((self.host, self._host_columns(host)))
        if python:
            kinds = [observer.PYTHON] * len(python)
            additions.append((self.python, self.python.arrays(**self._span_columns(python), kind=kinds)))
        if device:
            additions.append((self.device, self._device_columns(device)))
        if instants:
            additions.append((self.memory, self._memory_columns(instants)))
        if flows:
            additions.append((self.flows, self._flow_columns(flows)))
        if launches:
            additions.append((self.launches, self._flow_columns(launches)))
        return additions

    def _other_events(self, events: list[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Spans, instants, flows and beginnings of launches among events that are not complete spans of a known category."""
        spans: list[Any] = []
        instants: list[Any] = []
        flows: list[Any] = []
        launches: list[Any] = []
        for event in events:
            phase, category = event["ph"], event.get("cat")
            if len(phase) != 1:
                raise ValueError("no phase")
            if phase == "X" and category == _RECORDING_CATEGORY:
                self._note_window(event)
            elif phase == "X" and is_row(event):
                spans.append(event)
            elif phase in "iI" and event["name"] == MEMORY_NAME:
                instants.append(event)
            elif phase in "sf" and category == "fwdbwd":
                flows.append(event)
            elif phase == "s" and category == _LAUNCH_FLOWS:
                launches.append(event)
            elif phase in "BE":
                spans += self._closed(event)
            else:
                self._note(phase, event)
        return spans, instants, flows, launches

    # ------------------------------------------------------------------ spans

    def _times(self, rows: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        start = nanoseconds([event["ts"] for event in rows])
        length = nanoseconds([event["dur"] for event in rows])
        if len(length) and length.min() < 0:
            raise ValueError("a negative duration")
        return start, start + length

    def _span_columns(self, rows: Sequence[Any]) -> dict[str, Any]:
        names = self.names
        start, end = self._times(rows)
        name = [names.setdefault(event["name"], len(names)) for event in rows]
        return {"name": name, "tid": self._lanes_of(rows), "start": start, "end": end}

    def _lanes_of(self, rows: Sequence[Any]) -> list[int]:
        known = self.lanes.numbers
        return [known.setdefault((event["pid"], event["tid"]), len(known)) for event in rows]

    def _host_columns(self, rows: Sequence[Any]) -> Columns:
        args = [event.get("args") or {} for event in rows]
        categories = [event.get("cat") or "" for event in rows]
        kinds, number = HOST_KINDS, self.inputs.number
        self._runtimes |= {category for category in categories if isinstance(category, str)}
        return self.host.arrays(
            **self._span_columns(rows),
            kind=[kinds.get(category, observer.OP) for category in categories],
            seq=self._numbers("Sequence number", args, -1),
            fwd=self._numbers("Fwd thread id", args, 0),
            shapes=[number(arguments) if "Input Dims" in arguments else -1 for arguments in args],
            module=self._texts("Module Hierarchy", args, self.modules),
            stack=self._texts("Call stack", args, self.stacks),
            correlation=self._numbers("correlation", args, -1),
            details=self.details.of_host(args, categories, self._numbers("Record function id", args, 0)),
            external=self._numbers("External id", args, -1),
            flops=np.zeros(len(rows), np.int64),
        )

    def _numbers(self, key: str, args: Sequence[Any], missing: int) -> Any:
        """An argument of every event; the events need no look if the text of the batch does not contain the key."""
        if self._text is not None and key.encode() not in self._text:
            return np.full(len(args), missing)
        return [arguments.get(key, missing) for arguments in args]

    def _texts(self, key: str, args: Sequence[Any], table: dict[str, int]) -> Any:
        """Like _numbers(), of an argument that is a text: its number in a table, -1 where there is none."""
        if self._text is not None and key.encode() not in self._text:
            return np.full(len(args), -1)
        texts = [arguments.get(key) for arguments in args]
        return [table.setdefault(text, len(table)) if text else -1 for text in texts]

    def _device_columns(self, rows: Sequence[Any]) -> Columns:
        names, lanes = self.names, self.lanes
        start, end = self._times(rows)
        places = [event.get("args") or {} for event in rows]
        categories = [event["cat"] for event in rows]
        self._runtimes |= {category for category in categories if isinstance(category, str)}
        index = [args.get("device", event["pid"]) for args, event in zip(places, rows, strict=True)]
        return self.device.arrays(
            name=[names.setdefault(event["name"], len(names)) for event in rows],
            kind=[device_kind(event) for event in rows],
            # Kineto's lanes are streams, but for devices that do several things of a stream at a time.
            tid=[
                lanes.number(Device(at), event["tid"] if type(event["tid"]) is int else args.get("stream", event["tid"]))
                for at, args, event in zip(index, places, rows, strict=True)
            ],
            start=start,
            end=end,
            device_index=index,
            correlation=[args.get("correlation", -1) for args in places],
            details=self.details.of_device(places, categories),
            external=[args.get("External id", -1) for args in places],
        )

    def _closed(self, event: Any) -> list[Any]:
        """The span that an E event closes, with its exact duration; nothing for a B event, which is stored until then."""
        place = (event["pid"], event["tid"])
        waiting = self._open.setdefault(place, [])
        if event["ph"] == "B":
            waiting.append(event)
            self._undo.append((waiting, None))
            return []
        if not waiting:
            self._recovery.skip("end without a beginning")
            return []
        begun = waiting.pop()
        self._undo.append((waiting, begun))
        if nanosecond(event["ts"]) < nanosecond(begun["ts"]):
            self._recovery.skip("negative duration")
            return []
        args = {**(begun.get("args") or {}), **(event.get("args") or {})}
        length = nanosecond(event["ts"]) - nanosecond(begun["ts"])
        return [{**begun, "ph": "X", "dur": _micro(length), "args": args}]

    def close_open_spans(self) -> None:
        """Close spans without an end at the last beginning of their thread."""
        for waiting in self._open.values():
            last = max((nanosecond(event["ts"]) for event in waiting), default=0)
            rest, waiting[:] = list(waiting), []
            self._recovery.skip("beginning without an end (ends at the last beginning of its thread)", len(rest))
            self.add([{**event, "ph": "X", "dur": _micro(last - nanosecond(event["ts"]))} for event in rest])

    # ------------------------------------------------------------------ memory, flows, names

    def _flow_columns(self, rows: Sequence[Any]) -> Columns:
        return self.flows.arrays(
            flow=[event["id"] for event in rows],
            begins=[event["ph"] == "s" for event in rows],
            tid=self._lanes_of(rows),
            time=nanoseconds([event["ts"] for event in rows]),
        )

    def _memory_columns(self, rows: Sequence[Any]) -> Columns:
        args = [event["args"] for event in rows]
        return self.memory.arrays(
            mem_time=nanoseconds([event["ts"] for event in rows]),
            mem_bytes=[arguments["Bytes"] for arguments in args],
            mem_addr=[arguments.get("Addr", 0) for arguments in args],
            mem_tid=self._lanes_of(rows),
            mem_total=[arguments.get("Total Allocated", 0) for arguments in args],
            mem_device_type=[arguments.get("Device Type", 0) for arguments in args],
            mem_device_index=[arguments.get("Device Id", -1) for arguments in args],
            mem_reserved=[arguments.get("Total Reserved", 0) for arguments in args],
        )

    def _note_window(self, event: Any) -> None:
        start, end = (int(times[0]) for times in self._times([event]))
        first, last = self.window or (start, end)
        self.window = (min(first, start), max(last, end))

    def _note(self, phase: str, event: Any) -> None:
        if phase == "M" and event["name"] == "thread_name":
            self.lanes.set_name(event["pid"], event["tid"], event["args"]["name"])
        elif phase in "XCiI":
            self._keep(event)
        elif phase not in _IGNORED_PHASES:
            self._recovery.skip(f"phase {phase}")

    def _keep(self, event: Any) -> None:
        """Keep an event that is no row, to be written again by whatever writes traces."""
        if event["ph"] in "iI" and event["name"] in _WRITTEN_ANEW:
            return
        duration = nanosecond(event["dur"]) if "dur" in event else -1
        fields = {key: value for key, value in event.items() if key not in ("ts", "dur")}
        self.others.append(OtherEvent(nanosecond(event["ts"]), duration, json_text(fields)))

    def main_process(self) -> int:
        """The process of the first thread, 0 if there is none yet."""
        return next((owner for owner, _ in self.lanes.numbers if type(owner) is int), 0)

    def runtime_device(self) -> int:
        """torch's number of the device that the trace's kernels ran on."""
        for prefix, number in _DEVICE_OF_RUNTIME.items():
            if any(category.startswith(prefix) for category in self._runtimes):
                return number
        return CUDA

    # ------------------------------------------------------------------ malformed events

    def _checked(self, event: Any) -> Any:
        """The event without malformed arguments; None, with the reason counted, if it cannot be read."""
        reason = fault(event)
        if reason is None and event["ph"] in "XBEsfiI":
            place = (event["pid"], event["tid"])
            if place not in self.lanes.numbers and place not in self._new_lanes:
                if len(self.lanes.numbers) + len(self._new_lanes) >= MOST_LANES - _SPARE_LANES:
                    reason = f"of more than {MOST_LANES - _SPARE_LANES} threads"
                self._new_lanes.add(place)
        if reason is None and event["ph"] in ("X", "B", "E", "i", "I", "s", "f", "M"):
            args = event.get("args")
            return {
                **event,
                "cat": event.get("cat") if isinstance(event.get("cat"), str) else "",
                "args": checked_args(args) if isinstance(args, dict) else {},
            }
        self._recovery.skip(reason or f"phase {event['ph']}")
        return None


def _micro(nanos: int) -> Decimal:
    """Nanoseconds as microseconds, exactly."""
    return Decimal(min(nanos, LATEST_NS)) / 1000
