"""speedscope's own format: one evented profile per thread or stream, with exact times."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from .._io.files import write_file
from .._io.strict_json import dumps
from ..store.store import EventStore
from ._nested import beginnings_and_ends, lanes

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_BLOCK = 1 << 13


def export(store: EventStore, path: str | os.PathLike[str], *, name: str | None = None) -> None:
    """Write a recording for https://www.speedscope.app, gzipped if the name ends in .gz; `name` is its title."""
    write_file(path, _blocks(store, name or os.path.basename(os.fspath(path))))


def _blocks(store: EventStore, title: str) -> Iterator[bytes]:
    frames = ",".join(dumps({"name": name}) for name in store.names)
    yield (
        f'{{"$schema": "{_SCHEMA}", "exporter": "mindtorch_v2", "name": {dumps(title)}, '
        f'"shared": {{"frames": [{frames}]}}, "profiles": ['
    ).encode()
    for number, lane in enumerate(lanes(store)):
        start = int(store.start[lane.rows].min()) - store.clock_start_ns
        end = int(store.end[lane.rows].max()) - store.clock_start_ns
        yield (
            f'{"," if number else ""}{{"type": "evented", "name": {dumps(lane.name)}, "unit": "nanoseconds", '
            f'"startValue": {start}, "endValue": {end}, "events": ['
        ).encode()
        name, origin = store.name.tolist(), store.clock_start_ns
        events = (
            f'{{"type": "{"O" if begins else "C"}", "frame": {name[row]}, "at": {time - origin}}}'
            for begins, row, time in beginnings_and_ends(store, lane.rows)
        )
        separator = ""
        while part := ",".join(islice(events, _BLOCK)):
            yield (separator + part).encode()
            separator = ","
        yield b"]}"
    yield b"]}\n"
