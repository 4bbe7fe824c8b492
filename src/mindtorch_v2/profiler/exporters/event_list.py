"""The short trace of a list of events, recorded or made by hand: names and times, for chrome://tracing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from .files import write_file


def export(events: Iterable[Any], path: str | os.PathLike[str]) -> None:
    """Write FunctionEvents as a JSON list of spans; those of a device are on a row of their own."""
    spans = [
        {
            "name": event.trace_name or event.name,
            "ph": "X",
            "ts": event.time_range.start,
            "dur": event.time_range.elapsed_us(),
            "tid": event.thread if not event.is_remote else f"{event.node_id}:{event.thread}",
            "pid": "CPU functions" if event.device_type == "CPU" else f"{event.device_type.name} functions",
            "args": {},
        }
        for event in events
    ]
    write_file(path, [b"[\n", ",\n".join(map(json.dumps, spans)).encode(), b"\n]\n"])
