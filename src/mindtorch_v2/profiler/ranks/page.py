"""Writes the answers of a job as one HTML page: findings, heat map of ranks and steps, ranks, links, paths, clocks, ops.

The page stands on the report's style and widgets; its own scripts are in assets/. It needs neither server nor network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io.files import write_file
from ..report._pack import pack
from ..report.data import Column
from ..report.html import joined_script, page, without_imports
from .answered import JobAnswers
from .answers.links import LEAST_SLOW
from .answers.peers import class_medians, peer_classes
from .collectives import KINDS

# Of the report's scripts, what this page stands on; then its own.
_SHARED = (
    "widgets/dom.js",
    "widgets/tables.js",
    "widgets/format.js",
    "widgets/palette.js",
    "model/decode.js",
    "widgets/app.js",
    "sections/advice.js",
)
OWN_SCRIPTS = ("model.js", "heat_map.js", "rank_details.js", "overview.js", "tables.js", "paths.js", "main.js")
_MOST_CELLS = 120_000  # of a matrix: steps are averaged beyond, so that the page stays small
_MOST_OPS = 24
_MOST_SEGMENTS = 60  # of a step's path
_MOST_PATHS = 60
_MOST_GROUPS = 400
_RATIO = 10_000  # ratios are whole numbers of 1/100 %
_MICRO = 1000


def export(answers: JobAnswers, path: str | os.PathLike[str], *, links: Mapping[int, str] | None = None) -> None:
    """Write the page. links: pages of single ranks by rank, as paths relative to this one."""
    about = _about(answers, links or {})
    write_file(path, page(about, _columns(answers), _script(), _style()))


def _about(answers: JobAnswers, links: Mapping[int, str]) -> dict[str, Any]:
    job = answers.job
    facts = answers.to_dict()
    hosts = sorted(set(job.hosts))
    place = {host: at for at, host in enumerate(hosts)}
    return {
        "title": "Ranks",
        "findings": facts.pop("findings"),
        "answers": facts,
        "hosts": hosts,
        "host": [place[host] for host in job.hosts],
        "ranks": job.ranks.tolist(),
        "sources": job.sources,
        "links": {str(rank): link for rank, link in links.items()},
        "steps": _binned_labels(job.step_numbers, _bins(answers)),
        "ops": [{"name": job.ops[at][0], "device": job.ops[at][1]} for at in _op_places(answers)],
        "groups": _groups(answers),
        "paths": _paths(answers),
        "least_slow_link": LEAST_SLOW,
    }


def _columns(answers: JobAnswers) -> Iterator[Column]:
    """Matrices of ranks x steps in microseconds, row by row, and columns by rank."""
    job, bins = answers.job, _bins(answers)
    own = job.own.astype(np.float64)
    ratio = own / np.maximum(class_medians(own, peer_classes(job)), 1)
    matrices: dict[str, NDArray[Any]] = {
        "length": job.steps["length"] / _MICRO,
        "computing": job.steps["computing"] / _MICRO,
        "exposed": job.steps["exposed"] / _MICRO,
        "communication": job.steps["communication"] / _MICRO,
        "idle": job.idle / _MICRO,
        "charged": answers.stragglers.charged / _MICRO,
        "ratio": ratio * _RATIO,
        "memory": np.maximum(job.steps["memory"], 0) / 1024,
    }
    for name, matrix in matrices.items():
        yield Column(name, *pack(np.rint(_averaged(matrix, bins)).astype(np.int64).ravel(), "i32"))
    places = _op_places(answers)
    times = job.op_ns[:, places].mean(axis=2) / _MICRO if places else np.empty((len(job.ranks), 0))
    yield Column("op_times", *pack(np.rint(times).astype(np.int64).ravel(), "i32"))
    clocks = answers.clocks
    yield Column("clock_offset", *pack(np.rint(clocks.offset_ns).astype(np.int64), "f64"))
    yield Column("clock_error", *pack(np.rint(clocks.error_ns).astype(np.int64), "f64"))
    yield Column("clock_rate", *pack(np.rint(clocks.rate * 1e9).astype(np.int64), "f64"))
    yield Column("clock_part", *pack(clocks.part, "i32"))


def _bins(answers: JobAnswers) -> NDArray[np.int64]:
    """Where bins of steps begin; a bin a step unless there are too many cells."""
    ranks, steps = answers.job.own.shape
    shown = max(1, min(steps, _MOST_CELLS // max(ranks, 1)))
    return np.unique(np.linspace(0, steps, shown, endpoint=False).astype(np.int64))


def _averaged(matrix: NDArray[Any], bins: NDArray[np.int64]) -> NDArray[np.float64]:
    counts = np.diff(np.append(bins, matrix.shape[1]))
    return np.add.reduceat(matrix.astype(np.float64), bins, axis=1) / counts


def _binned_labels(numbers: NDArray[np.int64], bins: NDArray[np.int64]) -> list[str]:
    ends = np.append(bins[1:], len(numbers)) - 1
    pairs = zip(numbers[bins].tolist(), numbers[ends].tolist(), strict=True)
    return [str(first) if first == last else f"{first} to {last}" for first, last in pairs]


def _op_places(answers: JobAnswers) -> list[int]:
    job = answers.job
    totals = np.median(job.op_ns.sum(axis=2), axis=0)
    return sorted(range(len(job.ops)), key=lambda at: (-totals[at], job.ops[at]))[:_MOST_OPS]


def _groups(answers: JobAnswers) -> list[dict[str, Any]]:
    """Groups and pairs with the median of their transfers, those that take longest beside their like first."""
    instances, job = answers.instances, answers.job
    if not len(instances):
        return []
    pair = instances.pair
    base = int(pair.max()) + 2
    single = pair[:, 0] >= 0
    key = np.where(single, -1 - (pair[:, 0] * base + pair[:, 1]), instances.group)
    order = np.lexsort((instances.transfer, instances.size, instances.kind, key))
    changed = np.any([np.diff(values[order]) != 0 for values in (key, instances.kind, instances.size)], axis=0)
    first = np.flatnonzero(np.append(True, changed))
    count = np.diff(np.append(first, len(order)))
    middle = order[first + count // 2]
    rows: list[dict[str, Any]] = [
        {
            "kind": "message" if single[at] else KINDS[int(instances.kind[at])],
            "name": f"{pair[at, 0]} → {pair[at, 1]}" if single[at] else job.groups[int(instances.group[at])].name,
            "about": "" if single[at] else job.groups[int(instances.group[at])].description,
            "ranks": int(instances.count[at]),
            "bytes": int(instances.size[at]),
            "count": int(number),
            "us": round(float(instances.transfer[at]) / _MICRO, 1),
        }
        for at, number in zip(middle.tolist(), count.tolist(), strict=True)
    ]
    like: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        like.setdefault((row["kind"], row["ranks"], row["bytes"]), []).append(row["us"])
    for row in rows:
        others = like[row["kind"], row["ranks"], row["bytes"]]
        row["ratio"] = round(row["us"] / max(float(np.median(others)), 1e-3), 3)
        row["like"] = len(others) - 1
    rows.sort(key=lambda row: (-row["ratio"] if row["like"] else 0, -row["us"] * row["count"], row["name"]))
    return rows[:_MOST_GROUPS]


def _paths(answers: JobAnswers) -> list[dict[str, Any]]:
    """The critical paths, segments of one rank joined: (rank, own us, transfers us, collectives)."""
    shown = []
    for path in answers.paths[:_MOST_PATHS]:
        joined: list[list[Any]] = []
        for segment in path.segments:
            if joined and joined[-1][0] == segment.rank:
                joined[-1][1] += segment.own_ns
                joined[-1][2] += segment.transfer_ns
                joined[-1][3] += 1
            else:
                joined.append([segment.rank, segment.own_ns, segment.transfer_ns, 1])
        longest = sorted(joined, key=lambda part: -(part[1] + part[2]))[:_MOST_SEGMENTS]
        kept = [part for part in joined if part in longest]
        segments = [[rank, own // _MICRO, sent // _MICRO, number] for rank, own, sent, number in kept]
        shown.append({"step": path.step, "us": path.length_ns // _MICRO, "segments": segments})
    return shown


@cache
def _script() -> str:
    return "\n".join([joined_script(_SHARED), *(without_imports(_asset(name)) for name in OWN_SCRIPTS)])


def _style() -> str:
    return _asset("ranks.css")


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
