"""Writes a recording as a `*_ascend_pt` folder, for MindStudio Insight, msprof-analyze and TensorBoard's plugin for Ascend."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ..._io.files import path_text
from ..._io.folders import write_folder
from ..._io.strict_json import dumps
from ...store.store import EventStore
from .contents import Contents
from .database_files import databases
from .text_files import tables, trace_view

_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


def export(store: EventStore, path: str | os.PathLike[str], forms: Collection[str] = ("text",)) -> None:
    """Write a folder with files in these forms: text, db or both.

    FileExistsError if there is something at `path`: folders are not written over.
    """
    unknown = [form for form in forms if form not in _FORMS]
    if unknown or not forms:
        raise ValueError(
            f"an Ascend folder is written as {' or '.join(_FORMS)}, not as {', '.join(map(repr, unknown)) or 'nothing'}"
        )
    contents = Contents(store)
    files = {f"{_OUTPUT}/{name}": blocks for form in forms for name, blocks in _FORMS[form](contents).items()}
    write_folder(path_text(path), {**information(contents, forms), **files})


def export_databases(store: EventStore, path: str | os.PathLike[str]) -> None:
    """Write a folder with databases in place of text files."""
    export(store, path, ("db",))


def _text(contents: Contents) -> dict[str, Iterable[bytes]]:
    return {**tables(contents), "trace_view.json": trace_view(contents)}


_FORMS: Mapping[str, Callable[[Contents], dict[str, Iterable[bytes]]]] = {"text": _text, "db": databases}


def information(contents: Contents, forms: Collection[str]) -> dict[str, Iterable[bytes]]:
    """The files beside the output: options, rank, what the program added."""
    store, rank = contents.store, contents.rank
    activities = ["ProfilerActivity.CPU", *(["ProfilerActivity.NPU"] if store.has_device_rows else [])]
    info: dict[str, Any] = {
        "config": store.metadata.get("ascend_config")
        or {
            "common_config": {
                "activities": activities,
                "schedule": None,
                **{flag: bool(store.options.get(flag)) for flag in _FLAGS},
            },
            "experimental_config": {
                "_profiler_level": "Level1",
                "_aic_metrics": "ACL_AICORE_NONE",
                "_export_type": list(forms),
            },
        },
        "start_info": {"syscnt_enable": False, "freq": 100, "start_cnt": 0, "start_monotonic": store.clock_start_ns},
        "end_info": {
            "collectionTimeEnd": contents.wall(store.clock_end_ns),
            "MonotonicTimeEnd": store.clock_end_ns,
        },
    }
    if rank is not None:
        info["rank_id"] = rank
    name = "profiler_info.json" if rank is None else f"profiler_info_{rank}.json"
    metadata = {"ENV_VARIABLES": {}, **{key: value for key, value in store.metadata.items() if key != "ascend_config"}}
    return {name: [dumps(info).encode()], "profiler_metadata.json": [dumps(metadata).encode()]}
