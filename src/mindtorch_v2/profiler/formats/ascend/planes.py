"""Tasks of a device that are no rows of a recording: the parts of collectives, which run on planes, and marks of streams.

They are known of folders that were read. A text folder has a part twice, on its stream and on the lane of its plane; a database
once, as a row of TASK with one of COMMUNICATION_TASK_INFO.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from . import kinds
from .contents import Contents

# Arguments that a part has here beside CANN's own: its plane, and the number of the lane of its group.
PLANE, GROUP = "plane id", "group lane"
NO_NUMBER = 4294967295  # what CANN writes for a model, a context or a task that there is none of
_MOST = (1 << 63) - 1  # the largest number of a database; CANN writes it for 2 ** 64 - 1
_NOTHING = (1 << 64) - 1

Fields = dict[str, Any]


class Task(NamedTuple):
    """A task on a stream; times are the store's, `part` the arguments of a part of a collective, {} for another task."""

    start: int
    end: int
    name: str
    device: int
    stream: int
    task: int
    context: int
    model: int
    connection: int
    part: Fields
    part_name: str

    @property
    def place(self) -> tuple[int, ...]:
        """What both events of one task have in common."""
        return self.start, self.device, self.stream, self.task, self.context


def events(contents: Contents) -> Iterator[tuple[int, int, Fields]]:
    """Start, end and fields of each such task."""
    for other in contents.store.other_events:
        if other.duration >= 0 and f'"{kinds.TASK}"' in other.fields:
            fields = orjson.loads(other.fields)
            if fields.get("cat") == kinds.TASK and type(fields.get("pid")) is int and type(fields.get("tid")) is int:
                yield other.start, other.start + other.duration, fields


def is_part(fields: Mapping[str, Any]) -> bool:
    """Whether an event is a part of a collective on its plane."""
    args = fields.get("args")
    known = isinstance(args, dict) and type(args.get(PLANE)) is int and type(args.get(GROUP)) is int
    return known and kinds.place_of(fields["pid"]) == kinds.COMMUNICATION


def tasks(contents: Contents) -> list[Task]:
    """Each task once: a part that is also on its stream is one."""
    found: dict[tuple[int, ...], Task] = {}
    more: list[Task] = []
    parts: list[Task] = []
    for start, end, fields in events(contents):
        place = kinds.place_of(fields["pid"])
        if is_part(fields):
            parts.append(_part(start, end, fields))
        elif place == kinds.HARDWARE:
            task = _on_stream(start, end, fields)
            if task.task == NO_NUMBER or task.place in found:
                more.append(task)
            else:
                found[task.place] = task
    for part in parts:
        same = found.get(part.place)
        if same is None:
            more.append(part)
        else:
            found[part.place] = same._replace(end=part.end, part=part.part, part_name=part.part_name)
    return [*found.values(), *more]


def _on_stream(start: int, end: int, fields: Mapping[str, Any]) -> Task:
    args = fields.get("args")
    told: Fields = args if isinstance(args, dict) else {}
    connection = _number(told.get("connection_id", told.get("correlation")))
    numbers = (_number(told.get("Task Id")), _number(told.get("Subtask Id")), _number(told.get("Model Id")))
    name, device = str(fields.get("name")), kinds.device_of(fields["pid"])
    return Task(start, end, name, device, fields["tid"], *numbers, connection, {}, "")


def _part(start: int, end: int, fields: Mapping[str, Any]) -> Task:
    args = fields["args"]
    stream, number = _number(args.get("stream id")), _number(args.get("task id"))
    context, model = _number(args.get("context id")), _number(args.get("model id"))
    name, device = str(fields.get("name")), kinds.device_of(fields["pid"])
    return Task(start, end, name, device, stream, number, context, model, NO_NUMBER, args, name)


def _number(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= _MOST else NO_NUMBER


def task_type(task: Task) -> str:
    """The name that a task has in a database, where only its type is; none that would be read as work of its own."""
    name = task.name
    is_work = kinds.task_category(name, name) is not None or name.startswith(kinds.MARK)
    return f"TASK {name}" if is_work and not task.part else name


def notify(value: Any) -> int:
    """The number of a notification as databases have it: text files have it as text, up to 2 ** 64 - 1."""
    text = str(value)
    return min(int(text), _MOST) if text.isascii() and text.isdecimal() and len(text) < 21 else _MOST


def notify_text(value: Any) -> str:
    """The same as text files have it."""
    return str(_NOTHING if value == _MOST else value)


class Owners:
    """Which collective a part belongs to."""

    def __init__(self, contents: Contents) -> None:
        rows: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for row in contents.collectives.tolist():
            times = int(contents.store.start[row]), int(contents.store.end[row])
            rows.setdefault((contents.device(row), -1 - contents.lane(row)), []).append((*times, row))
        self._rows = {place: sorted(found) for place, found in rows.items()}

    def of(self, task: Task) -> int | None:
        """The row of the collective of the part's group that it ran in; those of a group run one after the other."""
        rows = self._rows.get((task.device, task.part[GROUP]), [])
        at = bisect_right(rows, task.start, key=lambda row: row[0]) - 1
        return rows[at][2] if at >= 0 and task.start <= rows[at][1] else None


class Lanes:
    """The lanes of planes in a trace_view.json, behind those of the groups."""

    def __init__(self, contents: Contents) -> None:
        self._groups = {-1 - contents.store.threads[lane].ident: number for lane, number in contents.groups.items()}
        places = {self._place(fields) for _, _, fields in events(contents) if is_part(fields)}
        self._numbers = {place: len(self._groups) + number for number, place in enumerate(sorted(places))}

    def _place(self, fields: Mapping[str, Any]) -> tuple[int, int, int]:
        args = fields["args"]
        return kinds.device_of(fields["pid"]), self._groups.get(args[GROUP], args[GROUP]), args[PLANE]

    def names(self) -> Iterator[tuple[int, int, str]]:
        """Device, number and name of each."""
        for (device, _, plane), number in self._numbers.items():
            yield device, number, f"Plane {plane}"

    def placed(self, contents: Contents, fields: Fields) -> Fields:
        """An event of a part on its lane, with the number that its group has there."""
        device, group, _ = place = self._place(fields)
        process = kinds.process(contents.store.pid, kinds.COMMUNICATION, device)
        return {**fields, "pid": process, "tid": self._numbers[place], "args": {**fields["args"], GROUP: group}}
