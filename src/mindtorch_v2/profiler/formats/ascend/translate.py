"""Gives the events of a trace_view.json the form of Kineto's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..trace.times import is_time, nanosecond
from . import kinds, planes

# Times are text there, and nowhere else.
TEXT_TIME = (b'"ts": "', b'"ts":"')
_TIME = re.compile(r"\s*-?\d{1,17}(\.\d{0,20})?\s*", re.ASCII)
_SEPARATOR = ";\r\n"
_TIMED = frozenset("XBEiICsftn")


class Translator:
    """Translates events one by one. What it cannot read stays as it is, for the reader to count.

    kernels: what kernel_details.csv tells of kernels, by their start in nanoseconds. collectives: what other files tell of
    collectives, by name.
    """

    def __init__(
        self,
        kernels: Mapping[int, Mapping[str, Any]] | None = None,
        collectives: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._kernels = kernels or {}
        self._collectives = collectives or {}
        self._places: dict[Any, int] = {}
        self._group_lanes: dict[tuple[Any, Any], bool] = {}
        self._planes: dict[tuple[Any, Any], int] = {}
        self._groups_of_planes: dict[tuple[Any, int], int | None] = {}

    def events(self, events: list[Any]) -> list[Any]:
        """A batch in Kineto's form."""
        return [self._event(event) for event in events]

    def _event(self, event: Any) -> Any:
        phase = event.get("ph") if isinstance(event, dict) else None
        if not isinstance(phase, str) or not _is_place(event.get("pid")) or not _is_place(event.get("tid")):
            return event
        changed = dict(event)
        if phase in _TIMED:
            for key in ("ts", "dur"):
                if isinstance(event.get(key), str):
                    changed[key] = _time(event[key])
        if phase == "M":
            self._note(event)
            return self._named_lane(changed)
        process = event.get("pid")
        if "cat" in event or type(process) is not int:
            return self._of_python(changed)
        if phase != "X":
            return changed
        translate = _BY_PLACE.get(self._places.get(process, kinds.place_of(process)))
        if translate is None or not isinstance(event.get("name"), str):
            return changed
        args = event.get("args")
        return translate(self, changed, args if isinstance(args, dict) else {})

    def _note(self, event: Mapping[str, Any]) -> None:
        """Remember which process is which, and which lanes of collectives are groups."""
        args = event.get("args")
        name = args.get("name") if isinstance(args, dict) else None
        if event.get("name") == "process_name" and isinstance(name, str):
            # A device's number follows the name where there are several.
            self._places[event.get("pid")] = next((place for text, place in kinds.PLACES.items() if name.startswith(text)), -1)
        elif event.get("name") == "thread_name" and isinstance(name, str):
            self._group_lanes[event.get("pid"), event.get("tid")] = not name.startswith("Plane")
            number = name.removeprefix("Plane ")
            if number != name and number.isdecimal() and len(number) < 10:
                self._planes[event.get("pid"), event.get("tid")] = int(number)

    def _named_lane(self, event: dict[str, Any]) -> dict[str, Any]:
        """Names of streams and groups belong to the device that rows have."""
        process = event.get("pid")
        place = self._places.get(process)
        if event.get("name") != "thread_name" or type(process) is not int or type(event.get("tid")) is not int:
            return event
        if place == kinds.HARDWARE:
            return {**event, "pid": kinds.device_of(process)}
        if place == kinds.COMMUNICATION:
            return {**event, "pid": kinds.device_of(process), "tid": -1 - event["tid"]}
        return event

    def _of_python(self, event: dict[str, Any]) -> dict[str, Any]:
        category, args = event.get("cat"), event.get("args")
        if isinstance(category, str) and isinstance(event.get("name"), str) and event.get("ph") == "X":
            event["cat"] = kinds.host_category(category, event["name"])
        if not isinstance(args, dict):
            return event
        args = event["args"] = dict(args)
        if category == "" and args.get("type") == "HostCpuOps":
            event["cat"] = "cpu_op"  # an op of MindSpore, whose events of the host have no category
        if args.pop(kinds.SCOPE_ARGUMENT, None) == "user_annotation":
            event["cat"] = "user_annotation"
        if isinstance(args.get("Input Dims"), str):
            args["Input Dims"] = [_sizes(text) for text in args["Input Dims"].split(_SEPARATOR)]
        if isinstance(args.get("Input type"), str):
            args["Input type"] = args["Input type"].split(_SEPARATOR)
        if isinstance(args.get("Call stack"), str):
            # The innermost frame is first, which in Kineto's form a semicolon at the end tells.
            args["Call stack"] = args["Call stack"].replace(_SEPARATOR, ";") + ";"
        return event

    def _of_cann(self, event: dict[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        """A call of CANN, on the thread of Python that made it."""
        more = {key: args[key] for key in ("Mode", "level") if key in args}
        if isinstance(args.get(kinds.CALL_NAME), str):
            event, more = {**event, "name": args[kinds.CALL_NAME]}, {}
        if type(args.get("connection_id")) is int:
            more["correlation"] = args["connection_id"]
        return {**event, "pid": kinds.host_process(event["pid"]), "cat": "privateuse1_runtime", "args": more}

    def _of_hardware(self, event: dict[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        if args.get("Task Type") == kinds.MARK:
            return {**event, "pid": kinds.device_of(event["pid"]), "cat": "gpu_user_annotation", "args": {}}
        category = kinds.task_category(str(args.get("Task Type")), event["name"])
        if category is None:
            return {**event, "cat": kinds.TASK}
        more = {key: value for key, value in args.items() if key not in ("connection_id", "data size(Byte)")}
        if kinds.is_copy_name(more.get(kinds.COPY_NAME)):
            event = {**event, "name": more.pop(kinds.COPY_NAME)}
        if type(args.get("data size(Byte)")) is int:
            more["bytes"] = args["data size(Byte)"]
        return self._device_row(event, category, args, {**more, "stream": event.get("tid")})

    def _of_communication(self, event: dict[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        """A collective is a row of its group's lane; the tasks it is made of, on lanes named Plane, are not rows."""
        named = kinds.collective(event["name"])
        if not self._group_lanes.get((event["pid"], event.get("tid")), named is not None):
            return {**event, "cat": kinds.TASK, "args": {**args, **self._plane(event)}}
        more = {key: value for key, value in args.items() if key != "connection_id"}
        if named is not None:
            more["Collective name"], more["Seq"] = named
        more |= self._collectives.get(event["name"], {})
        if "count" in args:
            more["In msg nelems"] = args["count"]
        if "data_type" in args:
            more["dtype"] = args["data_type"]
        # Numbers of streams and of groups are counted apart: a group's lane is below all streams.
        lane = -1 - event["tid"] if type(event.get("tid")) is int else event.get("tid")
        return {**self._device_row(event, "kernel", args, more), "tid": lane}

    def _plane(self, event: Mapping[str, Any]) -> dict[str, int]:
        """The plane that a part of a collective ran on, and the lane of its group: the one before the lanes of its planes."""
        process, lane = event["pid"], event.get("tid")
        plane = self._planes.get((process, lane))
        if plane is None or type(lane) is not int:
            return {}
        if (process, lane) not in self._groups_of_planes:
            groups = [at for (of, at), known in self._group_lanes.items() if known and of == process and type(at) is int]
            self._groups_of_planes[process, lane] = max((at for at in groups if at < lane), default=None)
        group = self._groups_of_planes[process, lane]
        return {planes.PLANE: plane} if group is None else {planes.PLANE: plane, planes.GROUP: group}

    def _device_row(
        self, event: dict[str, Any], category: str, args: Mapping[str, Any], more: dict[str, Any]
    ) -> dict[str, Any]:
        more["device"] = kinds.device_of(event["pid"])
        if type(args.get("connection_id")) is int:
            more["correlation"] = args["connection_id"]
        changed = {**event, "pid": more["device"], "cat": category, "args": more}
        if is_time(event.get("ts")):
            start = more["External id"] = nanosecond(event["ts"])  # the id of the flow that leads to it
            known = self._kernels.get(start) or self._kernels.get(start - 1)  # the table cuts digits off
            if category == "kernel" and known is not None:
                changed["args"] = {**known["details"], **more}
                changed["dur"] = known["duration"]
        return changed

    def _of_overlap(self, event: dict[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        return {**event, "cat": kinds.OVERLAP_SPAN}

    def _of_collector(self, event: dict[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        return {**event, "pid": kinds.host_process(event["pid"]), "cat": "user_annotation"}


_BY_PLACE = {
    kinds.CANN: Translator._of_cann,
    kinds.HARDWARE: Translator._of_hardware,
    kinds.COMMUNICATION: Translator._of_communication,
    kinds.OVERLAP: Translator._of_overlap,
    kinds.PYTHON_GC: Translator._of_collector,
}


def has_text_times(text: bytes) -> bool:
    """Whether the text of events is of a trace_view.json."""
    return any(mark in text for mark in TEXT_TIME)


def _is_place(value: Any) -> bool:
    """Whether this may be a process or a thread, None for an event without one."""
    return value is None or type(value) in (int, str)


def _time(text: str) -> Any:
    """Microseconds with all their digits; text that is no time stays text."""
    return Decimal(text.strip()) if _TIME.fullmatch(text) else text


def _sizes(text: str) -> list[int]:
    """The sizes of a tensor, or nothing for what is no tensor."""
    parts = text.split(",")
    return [int(part) for part in parts] if all(part.isdecimal() and len(part) < 19 for part in parts) else []
