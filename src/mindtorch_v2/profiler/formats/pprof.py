"""pprof's profile.proto, gzipped: a sample per call path with its calls, its own time and its own memory."""

from __future__ import annotations

import gzip
import os
import re

import numpy as np

from .._io.files import write_file
from ..store.store import EventStore
from ._nested import call_paths
from ._protobuf import message, number, packed, text

# Fields of perftools.profiles.Profile and its parts.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS, _TIME, _DURATION, _DEFAULT_TYPE = 1, 2, 4, 5, 6, 9, 10, 14
_TYPE, _UNIT = 1, 2
_LOCATIONS, _VALUES = 1, 2
_ID, _LINE, _FUNCTION_ID, _LINE_NUMBER = 1, 4, 1, 2
_NAME, _SYSTEM_NAME, _FILE, _START_LINE = 2, 3, 4, 5
_TYPES = (("calls", "count"), ("cpu", "nanoseconds"), ("device", "nanoseconds"), ("memory", "bytes"))
_FRAME = re.compile(r"(?P<file>[^()]+)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)


def export(store: EventStore, path: str | os.PathLike[str]) -> None:
    """Write a recording for `go tool pprof`; it is always gzipped, as pprof expects."""
    body = _profile(store)
    # write_file() compresses files whose name ends in .gz.
    write_file(path, [body if os.fspath(path).endswith(".gz") else gzip.compress(body, mtime=0)])


class _Strings:
    """The string table: call it for the number of a string."""

    def __init__(self) -> None:
        self.numbers = {"": 0}

    def __call__(self, value: str) -> int:
        return self.numbers.setdefault(value, len(self.numbers))


def _profile(store: EventStore) -> bytes:
    """The Profile message. A call path is the rows around a row, continued by its stack if no Python calls were recorded."""
    strings = _Strings()
    out = [message(_SAMPLE_TYPE, number(_TYPE, strings(kind)) + number(_UNIT, strings(unit))) for kind, unit in _TYPES]
    frames = {name: at for at, name in enumerate(store.names)}  # name of a function -> its number
    by_number = list(store.names)
    path, known = call_paths(store.parent, store.name)
    roots = np.full(len(store), -1) if store.is_python.any() else store.call_stack
    groups, which = np.unique(np.column_stack([path, roots]), axis=0, return_inverse=True)
    which = which.reshape(-1)
    values = [
        np.bincount(which, weights=column, minlength=len(groups)).astype(np.int64)
        for column in (
            np.ones(len(store)),
            np.where(store.device_type == 0, store.self_ns, 0),
            np.where(store.device_type != 0, store.duration, 0),
            store.self_bytes + store.self_device_bytes,
        )
    ]
    for group, (path_number, root) in enumerate(groups.tolist()):
        locations = []
        above = path_number
        while above >= 0:
            above, name = known[above]
            locations.append(name + 1)
        for frame in store.stacks[root] if root >= 0 else ():
            if frame not in frames:
                frames[frame] = len(by_number)
                by_number.append(frame)
            locations.append(frames[frame] + 1)
        out.append(message(_SAMPLE, packed(_LOCATIONS, locations) + packed(_VALUES, [int(column[group]) for column in values])))
    for ident, frame in enumerate(by_number, 1):
        source = _FRAME.fullmatch(frame)
        line = int(source["line"]) if source else 0
        function = number(_ID, ident) + number(_NAME, strings(frame)) + number(_SYSTEM_NAME, strings(frame))
        if source:
            function += number(_FILE, strings(source["file"])) + number(_START_LINE, line)
        out.append(message(_FUNCTION, function))
        line_message = number(_FUNCTION_ID, ident) + number(_LINE_NUMBER, line)
        out.append(message(_LOCATION, number(_ID, ident) + message(_LINE, line_message)))
    out.append(number(_TIME, store.wall_start_ns) + number(_DURATION, store.clock_end_ns - store.clock_start_ns))
    out.append(number(_DEFAULT_TYPE, strings("cpu")))
    out += [text(_STRINGS, value) for value in strings.numbers]
    return b"".join(out)
