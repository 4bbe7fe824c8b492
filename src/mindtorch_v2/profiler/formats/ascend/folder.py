"""Reads a folder of Ascend's profilers: the database if there is one, else trace_view.json and the tables beside it."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...store.store import EventStore
from .. import kineto, saved
from .._recovery import Recovery, TraceError
from .._source import Progress
from . import communication, database, tables
from .translate import Translator

OUTPUT = "ASCEND_PROFILER_OUTPUT"
RECORDING = os.path.join("FRAMEWORK", "recording.mtp")  # of a folder that this project wrote and that is not analyzed yet
_TRACE = "trace_view.json"
_DATABASE = re.compile(r"ascend_(pytorch|mindspore)_profiler(_\d+)?\.db")
_INFO = re.compile(r"profiler_info(_\d+)?\.json")
_MOST_JSON = 64 << 20
_OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


class _Parts(NamedTuple):
    """What a folder has: paths, "" for what is not there."""

    output: str
    trace: str
    database: str
    info: str
    metadata: str


def read(
    path: str | os.PathLike[str], progress: Progress | None = None, max_bytes: int | None = None
) -> tuple[EventStore, Recovery]:
    """Read a `*_ascend_pt` or `*_ascend_ms` folder, or the ASCEND_PROFILER_OUTPUT in it.

    TraceError: its output has neither a trace_view.json nor a database; also for a folder that has several recordings, of
    which the message names one. IsADirectoryError: it is another kind of folder.
    """
    unprocessed = os.path.join(path, RECORDING)
    if os.path.isfile(unprocessed) and not os.path.isdir(os.path.join(path, OUTPUT)):
        return saved.read(unprocessed, progress, max_bytes)
    parts = _parts(os.fspath(path))
    if parts.trace:
        store, recovery = _read_text(parts, progress, max_bytes)
    else:
        store, recovery = _read_database(parts, progress, max_bytes)
    recovery.format = "ascend"
    _add_information(store, parts, recovery)
    return store, recovery


def _parts(path: str) -> _Parts:
    names = _listed(path)
    output = path if _TRACE in names or any(map(_DATABASE.fullmatch, names)) else os.path.join(path, OUTPUT)
    if not os.path.isdir(output):
        within = [name for name in names if os.path.isdir(os.path.join(path, name, OUTPUT))]
        if within:
            raise TraceError(f"{path!r} holds {len(within)} recordings: name one of them, such as {sorted(within)[0]!r}")
        raise IsADirectoryError(errno.EISDIR, f"is a folder that has neither {OUTPUT} nor {_TRACE}", path)
    files = _listed(output)
    above = os.path.dirname(os.path.abspath(output)) if output == path else path
    beside = _listed(above)

    def only(folder: str, candidates: list[str]) -> str:
        return os.path.join(folder, sorted(candidates)[0]) if candidates else ""

    parts = _Parts(
        output,
        only(output, [name for name in files if name == _TRACE]),
        only(output, [name for name in files if _DATABASE.fullmatch(name)]),
        only(above, [name for name in beside if _INFO.fullmatch(name)]),
        only(above, [name for name in beside if name == "profiler_metadata.json"]),
    )
    if not parts.trace and not parts.database:
        raise TraceError(f"{output!r} has neither {_TRACE} nor a database: the recording was not processed, or that failed")
    return parts


def _listed(path: str) -> list[str]:
    return sorted(os.listdir(path))


def _read_text(parts: _Parts, progress: Progress | None, max_bytes: int | None) -> tuple[EventStore, Recovery]:
    recovery = Recovery("ascend")
    kernels = tables.kernels(os.path.join(parts.output, "kernel_details.csv"), recovery)
    collectives = communication.details_by_name(_json(os.path.join(parts.output, "communication.json"), recovery))
    blocks = os.path.join(parts.output, "operator_memory.csv")
    store, recovery = kineto.read(
        parts.trace,
        progress,
        max_bytes,
        translator=Translator(kernels, collectives),
        more_events=lambda process: tables.memory(blocks, process, recovery),
        recovery=recovery,
    )
    _add_matrix(store, _json(os.path.join(parts.output, "communication_matrix.json"), recovery))
    return store, recovery


def _read_database(parts: _Parts, progress: Progress | None, max_bytes: int | None) -> tuple[EventStore, Recovery]:
    recovery = Recovery("ascend")
    collectives, matrix = communication.from_database(os.path.join(parts.output, "analysis.db"), recovery)
    told = communication.details_by_name(collectives)
    store, recovery = database.read(parts.database, progress, max_bytes, collectives=told, recovery=recovery)
    _add_matrix(store, matrix)
    return store, recovery


def _add_matrix(store: EventStore, document: Any) -> None:
    matrix = communication.matrix_of(document)
    if matrix:
        store.metadata[communication.MATRIX] = matrix


def _json(path: str, recovery: Recovery) -> Any:
    """What a small JSON file holds; None, with a note, if that cannot be read, and without one if there is no such file."""
    try:
        if not path or os.path.getsize(path) > _MOST_JSON:
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        recovery.note(f"{os.path.basename(path)} cannot be read: {error}")
        return None


def _add_information(store: EventStore, parts: _Parts, recovery: Recovery) -> None:
    """Options, rank and what the program added, from the files beside the output."""
    info, metadata = _json(parts.info, recovery), _json(parts.metadata, recovery)
    config = info.get("config") if isinstance(info, dict) else None
    common = config.get("common_config") if isinstance(config, dict) else None
    if isinstance(common, dict):
        store.options.update({name: common[name] for name in _OPTIONS if isinstance(common.get(name), bool)})
    if isinstance(config, dict):
        store.metadata["ascend_config"] = config
    if isinstance(metadata, dict):
        store.metadata.update(metadata)
    rank = info.get("rank_id") if isinstance(info, dict) else None
    if type(rank) is int and rank >= 0:
        store.metadata.setdefault("distributedInfo", _distributed(rank, metadata if isinstance(metadata, dict) else {}))
    store.options["use_device"] = "npu" if store.has_device_rows else None


def _distributed(rank: int, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Rank and groups under the names that Kineto gives them."""
    arguments, groups = metadata.get("distributed_args"), metadata.get("parallel_group_info")
    described: dict[str, Any] = {"backend": "hccl", "rank": rank}
    if isinstance(arguments, dict) and type(arguments.get("world_size")) is int:
        described["world_size"] = arguments["world_size"]
    if isinstance(groups, dict):
        described["pg_config"] = [
            {"pg_name": name, "pg_desc": group.get("group_name"), "ranks": group.get("global_ranks")}
            for name, group in groups.items()
            if isinstance(group, dict)
        ]
    return described
