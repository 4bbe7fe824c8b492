"""Reads the recordings of a job on an engine and merges their digests."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .answered import JobAnswers
from .engines import Progress, run_tasks
from .job import LeftOut, merge
from .mapping import tasks
from .sources import find_sources


def digest(
    paths: str | os.PathLike[str] | Iterable[str],
    *,
    processes: int | None = None,
    dask: str | None = None,
    ray: str | None = None,
    progress: Progress | None = None,
) -> tuple[list[bytes], list[LeftOut]] | None:
    """The digests of all recordings, and the files that were left out. None in a worker process of mpiexec.

    progress(files done, files in all) is called along the way.
    """
    sources = find_sources([os.fspath(paths)] if isinstance(paths, str | os.PathLike) else paths)
    results = run_tasks(tasks(sources), processes=processes, dask=dask, ray=ray)
    if results is None:
        return None
    blocks: list[bytes] = []
    left_out: list[LeftOut] = []
    done = 0
    for result in results:
        for file in result.files:
            blocks += file.blocks
            if file.reason:
                left_out.append(LeftOut(file.label, file.reason))
        done += len(result.files)
        if progress is not None:
            progress(done, len(sources))
    return blocks, left_out


def load(
    paths: str | os.PathLike[str] | Iterable[str],
    *,
    processes: int | None = None,
    dask: str | None = None,
    ray: str | None = None,
    progress: Progress | None = None,
) -> JobAnswers:
    """Read the recordings of a job: a folder, a pattern, names or addresses; `processes`, `dask` or `ray` say where.

    TraceError: there is no recording of a rank, or they have no step in common. Files that are none are left out by name.
    """
    digests = digest(paths, processes=processes, dask=dask, ray=ray, progress=progress)
    if digests is None:
        raise RuntimeError("this process only works for the first one of mpiexec")
    return JobAnswers(merge(*digests))
