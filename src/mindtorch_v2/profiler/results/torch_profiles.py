"""Finished profiles of PyTorch's own profiler as recordings of this one. torch itself is not imported here."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from ..._core.files import name_in_folder
from ..formats import torch_results
from ..formats._recovery import Recovery
from . import writers
from .loaded import LoadedProfile, load
from .mixin import ResultsMixin

_ENDINGS = {".mtp": "saved", ".html": "html", ".json": "chrome", ".json.gz": "chrome"}
_SAVED_ALREADY = "already saved"


def from_torch(prof: Any) -> LoadedProfile:
    """The recording of a finished `torch.profiler.profile`, with the tables, exports and answers of this package.

        with torch.profiler.profile() as prof:
            ...
        print(mindtorch_v2.profiler.from_torch(prof).key_averages().table())

    Takes a `torch.autograd.profiler.profile` as well, and a profile of this package. The events are read where PyTorch keeps
    them, but for recordings of devices and of collectives: these are exported as a trace, which PyTorch does only once, and
    read from that. What was added by `prof.add_metadata` is in traces only. RuntimeError while the profile runs, or if a trace
    that is needed was exported before.
    """
    if isinstance(prof, ResultsMixin):
        return LoadedProfile(prof._recording(), Recovery("live"))
    if not callable(getattr(prof, "export_chrome_trace", None)):
        raise TypeError(f"from_torch: a torch.profiler.profile is wanted, not {type(prof).__name__}")
    inner = getattr(prof, "profiler", prof)  # torch.profiler.profile has one of torch.autograd.profiler
    results = getattr(inner, "kineto_results", None)
    if results is None:
        raise RuntimeError("from_torch: this profile has recorded nothing yet: it must be started and stopped first")
    recovery = Recovery("live")
    try:
        return LoadedProfile(torch_results.read(results, _fields(prof, inner), os.getpid(), recovery), recovery)
    except torch_results.Unreadable:
        return _through_a_trace(prof)


def _fields(prof: Any, inner: Any) -> dict[str, Any]:
    """What PyTorch writes into a trace beside the events."""
    if getattr(prof, "execution_trace_observer", None) is not None:
        raise torch_results.Unreadable("numbers that an execution trace refers to")
    flags = ("with_stack", "profile_memory", "record_shapes", "with_modules", "with_flops")
    fields = {flag: bool(getattr(inner, flag, False)) for flag in flags}
    preset = {key: orjson.loads(value) for key, value in (getattr(prof, "preset_metadata", None) or {}).items()}
    ranks = prof._get_distributed_info() if hasattr(prof, "_get_distributed_info") else None
    return (
        fields
        | preset
        | {"host_name": platform.node(), "trace_id": getattr(inner, "trace_id", None)}
        | ({"distributedInfo": ranks} if ranks else {})
    )


def _through_a_trace(prof: Any) -> LoadedProfile:
    with tempfile.TemporaryDirectory(prefix="mtprof-") as folder:
        path = os.path.join(folder, "trace.json")
        try:
            prof.export_chrome_trace(path)
        except RuntimeError as error:
            if _SAVED_ALREADY not in str(error):
                raise
            raise RuntimeError(
                "from_torch: PyTorch exports a trace only once, and that of this profile was exported before: read the file "
                "with profiler.load(), or call from_torch() first and export from its result"
            ) from error
        return load(path)


def trace_handler(
    folder: str | os.PathLike[str],
    worker_name: str | None = None,
    *,
    formats: Sequence[str] = (".mtp",),
    row_limit: int | None = None,
    sort_by: str = "self_cpu_time_total",
) -> Callable[[Any], None]:
    """A function for `on_trace_ready=` of PyTorch's profiler, or of this one, that writes every window to a folder.

    Files are named by the worker (by default host and process), the number of the step, and one of `formats`: .mtp, .html,
    .json or .json.gz. With row_limit it also prints a table of that many rows.
    """
    unknown = [ending for ending in formats if ending not in _ENDINGS]
    if unknown or isinstance(formats, str):
        raise ValueError(f"formats: {unknown or formats!r}; known are {', '.join(_ENDINGS)}, in a list")
    if worker_name is not None:
        name_in_folder(worker_name, "worker_name")

    def on_trace_ready(prof: Any) -> None:
        os.makedirs(folder, exist_ok=True)
        recording = from_torch(prof)
        worker = worker_name or name_in_folder(f"{platform.node()}_{os.getpid()}", "the host's name")
        stem = os.path.join(os.fspath(folder), f"{worker}.{getattr(prof, 'step_num', 0)}")
        for ending in formats:
            if ending == ".html":
                recording.export_html(stem + ending)
            else:
                writers.get(_ENDINGS[ending])(recording.store, stem + ending)
        if row_limit is not None:
            print(recording.key_averages().table(sort_by=sort_by, row_limit=row_limit))

    return on_trace_ready
