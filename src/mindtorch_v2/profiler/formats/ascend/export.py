"""Writes a recording as a `*_ascend_pt` folder, for MindStudio Insight, msprof-analyze and TensorBoard's plugin for Ascend."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ..._io.files import path_text
from ..._io.folders import write_folder
from ..._io.strict_json import dumps
from ...store.store import EventStore
from .. import saved
from .._recovery import TraceError
from . import communication
from .contents import Contents
from .database_files import databases
from .folder import OUTPUT, RECORDING
from .text_files import tables, trace_view

# What tools ask for of the environment; what is not set is not told.
_VARIABLES = (
    "ASCEND_GLOBAL_LOG_LEVEL",
    "HCCL_RDMA_TC",
    "HCCL_RDMA_SL",
    "ACLNN_CACHE_LIMIT",
    "HOST_CACHE_CAPACITY",
    "ASCEND_ENHANCE_ENABLE",
    "PYTORCH_NPU_ALLOC_CONF",
    "ASCEND_LAUNCH_BLOCKING",
    "HCCL_ALGO",
)
_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


def export(
    store: EventStore, path: str | os.PathLike[str], forms: Collection[str] = ("text",), *, keep_recording: bool = False
) -> None:
    """Write a folder with files in these forms, text, db or both; with keep_recording, with the recording itself, too.

    Without a form it has nothing but the recording, of which analyse() makes files later. FileExistsError if there is something
    at `path`: folders are not written over.
    """
    contents = Contents(store)
    files = {f"{OUTPUT}/{name}": blocks for name, blocks in _output(contents, forms).items()}
    if keep_recording or not forms:
        files[RECORDING] = saved.blocks(store, store.metadata)
    write_folder(path_text(path), {**information(contents, forms), **files})


def analyse(path: str | os.PathLike[str], forms: Collection[str] | None = None) -> None:
    """Write the files of a folder that has only its recording, in the forms that were asked for when it was made if not given.

    FileExistsError if it has files, TraceError if it has no recording.
    """
    recording = os.path.join(path, RECORDING)
    if not os.path.isfile(recording):
        raise TraceError(f"{os.fspath(path)!r} has no {RECORDING}: raw data of CANN can only be processed by CANN's own tools")
    store, _ = saved.read(recording)
    config = store.metadata.get("ascend_config")
    experimental = config.get("experimental_config") if isinstance(config, dict) else None
    asked = experimental.get("_export_type") if isinstance(experimental, dict) else None
    known = [form for form in asked if form in _FORMS] if isinstance(asked, list) else []
    write_folder(os.path.join(path, OUTPUT), _output(Contents(store), forms or known or ("text",)))


def _output(contents: Contents, forms: Collection[str]) -> dict[str, Iterable[bytes]]:
    unknown = [form for form in forms if form not in _FORMS]
    if unknown:
        raise ValueError(f"an Ascend folder is written as {' or '.join(_FORMS)}, not as {', '.join(map(repr, unknown))}")
    return {name: blocks for form in forms for name, blocks in _FORMS[form](contents).items()}


def export_databases(store: EventStore, path: str | os.PathLike[str]) -> None:
    """Write a folder with databases in place of text files."""
    export(store, path, ("db",))


def _text(contents: Contents) -> dict[str, Iterable[bytes]]:
    return {**tables(contents), **communication.text_files(contents), "trace_view.json": trace_view(contents)}


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
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    added = {key: value for key, value in store.metadata.items() if key not in ("ascend_config", communication.MATRIX)}
    metadata = {"ENV_VARIABLES": variables, **_groups(store), **added}
    return {name: [dumps(info).encode()], "profiler_metadata.json": [dumps(metadata).encode()]}


def _groups(store: EventStore) -> dict[str, Any]:
    """The process groups under the names that Ascend's tools look for."""
    info = store.metadata.get("distributedInfo")
    if not isinstance(info, dict):
        return {}
    groups = info.get("pg_config")
    described = {
        str(group.get("pg_name")): {
            "group_name": group.get("pg_desc"),
            "group_rank": ranks.index(info.get("rank")) if info.get("rank") in ranks else -1,
            "global_ranks": ranks,
        }
        for group in (groups if isinstance(groups, list) else [])
        if isinstance(group, dict) and isinstance(ranks := group.get("ranks"), list)
    }
    return {"parallel_group_info": described}
