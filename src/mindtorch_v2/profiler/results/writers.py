"""Every way to write a finished recording, by name. A writer's module is imported when the writer is first used.

To add one, write a module with `export(store, path, **options)` in `formats` (or `exporters`, if views use it) and add its
line to _WRITERS. With an ending, `mtprof convert` offers it, too. Programs add their own with `register`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

Writer = Callable[..., None]  # writer(store, path, **options)


class _Entry(NamedTuple):
    module: str  # relative to this package; its `function(store, path, **options)` writes the file
    ending: str | None = None  # of the files that `mtprof convert` writes with it
    function: str = "export"


_WRITERS: dict[str, _Entry] = {
    "chrome": _Entry("..exporters.chrome", ".json"),
    "saved": _Entry("..formats.saved", ".mtp"),
    "perfetto": _Entry("..formats.perfetto", ".pftrace"),
    "speedscope": _Entry("..formats.speedscope", ".speedscope.json"),
    "collapsed": _Entry("..exporters.stacks", ".collapsed.txt"),
    "pprof": _Entry("..formats.pprof", ".pb.gz"),
    "csv": _Entry("..formats.csv_file", ".csv"),
    "parquet": _Entry("..formats.parquet_file", ".parquet"),
    "html": _Entry("..report.html", ".html"),
    "ascend": _Entry("..formats.ascend.export", "_ascend_pt"),
    "ascend-db": _Entry("..formats.ascend.export", "_db_ascend_pt", "export_databases"),
    "event_list": _Entry("..exporters.event_list"),
    "stacks": _Entry("..exporters.stacks"),
}
ENDINGS: dict[str, str] = {name: entry.ending for name, entry in _WRITERS.items() if entry.ending is not None}
_loaded: dict[str, Writer] = {}


def names() -> list[str]:
    """What `get` accepts, sorted."""
    return sorted({*_WRITERS, *_loaded})


def register(name: str, export: Writer) -> None:
    """Let `get(name)` return `export(store, path, **options)`, in place of a writer that had that name."""
    _loaded[name] = export


def get(name: str) -> Writer:
    """The writer of that name: call it as writer(store, path, **options)."""
    if name not in _loaded:
        if name not in _WRITERS:
            raise ValueError(f"unknown exporter {name!r}, known are: {', '.join(names())}")
        entry = _WRITERS[name]
        _loaded[name] = getattr(import_module(entry.module, __package__), entry.function)
    return _loaded[name]
