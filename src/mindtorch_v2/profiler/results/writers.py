"""Every way to write a finished recording, by name. A writer is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

# name -> module, relative to this package, whose `export(store, path, **options)` writes the file
_MODULES: dict[str, str] = {
    "chrome": "..exporters.chrome",
    "collapsed": "..exporters.stacks",
    "csv": "..formats.csv_file",
    "event_list": "..exporters.event_list",
    "html": "..report.html",
    "parquet": "..formats.parquet_file",
    "perfetto": "..formats.perfetto",
    "pprof": "..formats.pprof",
    "saved": "..formats.saved",
    "speedscope": "..formats.speedscope",
    "stacks": "..exporters.stacks",
}
_loaded: dict[str, Callable[..., Any]] = {}


def names() -> list[str]:
    """What `get` knows, sorted."""
    return sorted({*_MODULES, *_loaded})


def register(name: str, export: Callable[..., Any]) -> None:
    """Make `export(store, path, **options)` known under a name, in place of what had that name."""
    _loaded[name] = export


def get(name: str) -> Callable[..., Any]:
    """The exporter of that name: call it as exporter(store, path, **options)."""
    if name not in _loaded:
        if name not in _MODULES:
            raise ValueError(f"unknown exporter {name!r}, known are: {', '.join(names())}")
        _loaded[name] = import_module(_MODULES[name], __package__).export
    return _loaded[name]
