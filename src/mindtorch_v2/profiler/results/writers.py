"""Every way to write a finished recording, by name. A writer's module is imported when the writer is first used.

To add one, write a module with `export(store, path, **options)` in `formats` (or `exporters`, if views use it) and add its
line to _WRITERS. With an ending, `mtprof convert` offers it, too. Programs add their own with `register`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class _Writer(NamedTuple):
    module: str  # relative to this package; its `export(store, path, **options)` writes the file
    ending: str | None = None  # of the files that `mtprof convert` writes with it


_WRITERS: dict[str, _Writer] = {
    "chrome": _Writer("..exporters.chrome", ".json"),
    "saved": _Writer("..formats.saved", ".mtp"),
    "perfetto": _Writer("..formats.perfetto", ".pftrace"),
    "speedscope": _Writer("..formats.speedscope", ".speedscope.json"),
    "collapsed": _Writer("..exporters.stacks", ".collapsed.txt"),
    "pprof": _Writer("..formats.pprof", ".pb.gz"),
    "csv": _Writer("..formats.csv_file", ".csv"),
    "parquet": _Writer("..formats.parquet_file", ".parquet"),
    "html": _Writer("..report.html", ".html"),
    "event_list": _Writer("..exporters.event_list"),
    "stacks": _Writer("..exporters.stacks"),
}
ENDINGS: dict[str, str] = {name: writer.ending for name, writer in _WRITERS.items() if writer.ending is not None}
_loaded: dict[str, Callable[..., Any]] = {}


def names() -> list[str]:
    """What `get` accepts, sorted."""
    return sorted({*_WRITERS, *_loaded})


def register(name: str, export: Callable[..., Any]) -> None:
    """Let `get(name)` return `export(store, path, **options)`, in place of a writer that had that name."""
    _loaded[name] = export


def get(name: str) -> Callable[..., Any]:
    """The writer of that name: call it as writer(store, path, **options)."""
    if name not in _loaded:
        if name not in _WRITERS:
            raise ValueError(f"unknown exporter {name!r}, known are: {', '.join(names())}")
        _loaded[name] = import_module(_WRITERS[name].module, __package__).export
    return _loaded[name]
