"""The short trace that EventList.export_chrome_trace() writes: names and times of its events."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from .._io.files import write_file
from .._io.strict_json import dumps


def export(events: Iterable[Any], path: str | os.PathLike[str]) -> None:
    """Write FunctionEvents as a JSON list of spans; those of a device are a process of their own.

    An op's launches are written as starts of flows. Events without a trace_name, such as [memory], are left out.
    """
    write_file(path, [b"[\n", ",\n".join(map(dumps, _entries(events))).encode(), b"\n]\n"])


def _entries(events: Iterable[Any]) -> Iterator[dict[str, Any]]:
    launches = count()
    for event in events:
        if event.trace_name is None:
            continue
        place = {
            "tid": event.thread if not event.is_remote else f"{event.node_id}:{event.thread}",
            "pid": f"{event.device_type.value} functions",
        }
        start, name = event.time_range.start, event.trace_name
        yield {"name": name, "ph": "X", "ts": start, "dur": event.time_range.elapsed_us(), **place, "args": {}}
        for _ in event.kernels:
            category = f"cpu_to_{event.use_device or 'cuda'}"
            yield {"name": name, "ph": "s", "ts": start, **place, "id": next(launches), "cat": category, "args": {}}
