"""One Chrome trace of many ranks on one clock, for Perfetto: a process a rank, times aligned by the collectives they share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.files import write_file
from .._io.strict_json import dumps
from ..analysis.findings import duration
from ..store.store import EventStore
from .answered import JobAnswers
from .engines import Progress
from .recorded_rows import read_store
from .sources import find_sources, open_source

if TYPE_CHECKING:
    from .clocks import Clocks

_FIRST_LANE = 1  # lanes of a rank are numbered from here: thread ids must fit 31 bits
_SKIPPED = (observer.MEMORY,)


class UnconnectedError(ValueError):
    """Ranks that no chain of collectives connects, so that no clock is common to them."""


def write_merged_trace(
    answers: JobAnswers,
    paths: Sequence[str],
    target: str | os.PathLike[str],
    ranks: set[int] | None = None,
    steps: set[int] | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the recordings of chosen ranks and steps as one trace, gzipped if `target` ends in .gz.

    UnconnectedError: their clocks cannot be compared. ValueError: there is no such rank, or its recording is not at hand.
    """
    job, clocks = answers.job, answers.clocks
    chosen = [at for at, rank in enumerate(job.ranks.tolist()) if ranks is None or rank in ranks]
    if not chosen:
        raise ValueError(f"none of these ranks is there: the job has {int(job.ranks[0])} to {int(job.ranks[-1])}")
    _check_connected(answers, chosen)
    places = {source.label: source.path for source in find_sources(paths)}
    missing = [job.sources[at] for at in chosen if job.sources[at] not in places]
    if missing:
        raise ValueError(f"the recording {missing[0]!r} is not at hand: digests alone have no events")
    write_file(target, _blocks(answers, clocks, chosen, places, steps, progress))


def _check_connected(answers: JobAnswers, chosen: list[int]) -> None:
    clocks, job = answers.clocks, answers.job
    parts = np.unique(clocks.part[chosen])
    if len(parts) > 1:
        examples = [int(job.ranks[next(at for at in chosen if clocks.part[at] == part)]) for part in parts[:4].tolist()]
        raise UnconnectedError(
            f"no collective connects these ranks: they are in {len(parts)} parts (ranks {', '.join(map(str, examples))} ...), "
            "whose clocks cannot be compared. --ranks chooses those of one part"
        )


def _blocks(
    answers: JobAnswers,
    clocks: Clocks,
    chosen: list[int],
    places: dict[str, str],
    steps: set[int] | None,
    progress: Progress | None,
) -> Iterator[bytes]:
    job = answers.job
    first = min(
        int(clocks.to_reference(at, job.steps["start"][at, :1] + job.to_wall[at])[0]) for at in chosen
    )  # of the first common step, so that times in the file are small
    about = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": first,
        "ranks": [int(job.ranks[at]) for at in chosen],
        "clocks": clocks.to_dict(),
    }
    yield dumps(about)[:-1].encode() + b', "traceEvents": [\n'
    separator = b""
    for done, at in enumerate(chosen, 1):
        file, _ = open_source(places[job.sources[at]])
        with file:
            store = read_store(file)
        for block in _events(store, answers, at, first, steps):
            yield separator + block
            separator = b",\n"
        if progress is not None:
            progress(done, len(chosen))
    yield b"\n]}\n"


def _events(store: EventStore, answers: JobAnswers, at: int, first: int, steps: set[int] | None) -> Iterator[bytes]:
    """The events of one rank, in pieces."""
    job, clocks = answers.job, answers.clocks
    rank = int(job.ranks[at])
    error = duration(float(clocks.error_ns[at]))
    name = f"rank {rank}" + (f" on {job.hosts[at]}" if job.hosts[at] else "") + f" (clock within {error})"
    yield _json({"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": name}})
    yield _json({"ph": "M", "name": "process_sort_index", "pid": rank, "tid": 0, "args": {"sort_index": rank}})
    rows = _chosen_rows(store, answers, at, steps)
    for lane in np.unique(store.tid[rows]).tolist():
        thread = {"ph": "M", "name": "thread_name", "pid": rank, "tid": _FIRST_LANE + lane}
        yield _json({**thread, "args": {"name": store.threads[lane].name}})
    shift = job.to_wall[at]
    start = clocks.to_reference(at, store.start[rows] + shift) - first
    end = clocks.to_reference(at, store.end[rows] + shift) - first
    names = [dumps(text) for text in store.names]
    columns = zip(
        store.name[rows].tolist(), store.tid[rows].tolist(), start.tolist(), np.maximum(end - start, 0).tolist(),
        store.step[rows].tolist(), store.details[rows].tolist(), strict=True,
    )  # fmt: skip
    lines = []
    for number, lane, begin, length, step, detail in columns:
        arguments = f'{{"Step": {step}' if detail < 0 else f"{_open(store.row_details[detail].arguments)}"
        lines.append(
            f'{{"ph": "X", "name": {names[number]}, "pid": {rank}, "tid": {_FIRST_LANE + lane}, "ts": {_micro(begin)}, '
            f'"dur": {_micro(length)}, "args": {arguments}}}}}'
        )
        if len(lines) == 1 << 12:
            yield ",\n".join(lines).encode()
            lines = []
    if lines:
        yield ",\n".join(lines).encode()


def _chosen_rows(store: EventStore, answers: JobAnswers, at: int, steps: set[int] | None) -> NDArray[np.intp]:
    kept = ~np.isin(store.kind, _SKIPPED)
    if steps is not None:
        job = answers.job
        inside = np.zeros(len(store.start), np.bool_)
        for index in np.flatnonzero(np.isin(job.step_numbers, list(steps))).tolist():
            begin = int(job.steps["start"][at, index])
            inside |= (store.start >= begin) & (store.start < begin + int(job.steps["length"][at, index]))
        kept &= inside
    return np.flatnonzero(kept)


def _open(arguments: str) -> str:
    """The text of a JSON object without its closing brace."""
    return arguments.rstrip().removesuffix("}")


def _micro(nanos: int) -> str:
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    return f"{sign}{nanos // 1000}.{nanos % 1000:03d}"


def _json(event: dict[str, object]) -> bytes:
    return dumps(event).encode()
