"""Digest: what a thousand ranks need to know of each other, from one rank's recording, in about 1 KB a step.

All figures are whole numbers of nanoseconds or bytes by the rank's own clock, so that equal recordings have equal digests on
every machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..retention.stats import BINS, LOG_GROWTH
from ..store import tree
from ..store.derived import STEP_PREFIX
from ..store.intervals import Intervals
from .collectives import OP_KINDS, Collectives, Group, device_rows, find_collectives
from .recorded_rows import Numbers, RecordedRows

MOST_OPS = 48  # of a rank, those that take longest; the rest is one more
OTHERS = "(others)"
_MOST_NAME = 120
MOST_STEPS = 1 << 20
EXPOSED_SCALE = 255  # `exposed` of a collective is a part of its time: this is all of it
LOADER_NAME = "enumerate(DataLoader)"
_RANK_IN_NAME = re.compile(r"rank[_\-.=]?(\d{1,9})", re.IGNORECASE)


class NoRankError(ValueError):
    """A recording that does not say of which rank it is, or has nothing to tell."""


@dataclass
class Steps:
    """One row for each step: its number, begin and length, and what filled it."""

    number: Numbers
    start: Numbers
    length: Numbers
    computing: Numbers
    communication: Numbers
    exposed: Numbers  # communication while nothing is computed
    loader: Numbers  # waiting for the data loader
    memory: Numbers  # the peak, -1 if memory was not recorded
    elements: Numbers  # of all tensors that ops took, -1 if shapes were not recorded
    flops: Numbers

    @property
    def idle(self) -> Numbers:
        """Neither computing nor communication."""
        return self.length - self.computing - self.exposed

    @property
    def own(self) -> Numbers:
        """All but exposed communication: what a rank is responsible for itself."""
        return self.length - self.exposed


@dataclass
class Communications:
    """One row for each collective or message, in order of start; `step` is an index of the steps, `group` of the groups."""

    step: Numbers
    kind: Numbers
    group: Numbers
    seq: Numbers
    start: Numbers
    length: Numbers
    exposed: Numbers  # in parts of EXPOSED_SCALE
    size: Numbers  # bytes
    peer: Numbers


@dataclass
class OpTimes:
    """Calls and self time of each op in each step, sorted; only where there are calls."""

    op: Numbers
    step: Numbers
    count: Numbers
    self_ns: Numbers


@dataclass
class Sketches:
    """How long single calls of an op took: counts by bins that grow by `retention.stats.LOG_GROWTH`."""

    op: Numbers
    bin: Numbers
    count: Numbers


PARTS: dict[str, Any] = {"steps": Steps, "communications": Communications, "op_times": OpTimes, "sketches": Sketches}


@dataclass
class Digest:
    """What one rank's recording tells. Times are the rank's own; adding `to_wall` makes them those of its host's clock."""

    rank: int
    world_size: int
    host: str
    source: str
    to_wall: int
    events: int
    damage: str
    ops: list[str]
    device_ops: list[bool]
    groups: list[Group]
    steps: Steps
    communications: Communications
    op_times: OpTimes
    sketches: Sketches


def make_digest(rows: RecordedRows, source: str) -> Digest:
    """The digest of a recording; `source` names its file. NoRankError: neither it nor its name tells the rank."""
    columns = rows.columns
    rank, world_size = _rank(rows.metadata, source)
    if not len(columns["start"]):
        raise NoRankError("the recording is empty")
    number, begins, ends = _steps(rows)
    step_of = np.searchsorted(begins, columns["start"], side="right") - 1
    step_of[columns["start"] >= ends[-1]] = -1  # after the last step
    found = find_collectives(rows, number[step_of])
    steps, compute = _fill_steps(rows, found, number, begins, ends, step_of)
    ops, device_ops, op_times, sketches = _ops(rows, found, step_of, len(begins))
    return Digest(
        rank=rank,
        world_size=world_size,
        host=str(rows.metadata.get("host_name", "")),
        source=source,
        to_wall=rows.to_wall,
        events=len(columns["start"]),
        damage=rows.damage,
        ops=ops,
        device_ops=device_ops,
        groups=found.groups,
        steps=steps,
        communications=_communications(columns, found, compute, step_of),
        op_times=op_times,
        sketches=sketches,
    )


def _rank(metadata: Mapping[str, Any], source: str) -> tuple[int, int]:
    info = metadata.get("distributedInfo")
    if isinstance(info, dict) and isinstance(info.get("rank"), int) and 0 <= info["rank"] < 1 << 30:
        size = info.get("world_size")
        return info["rank"], size if isinstance(size, int) else 0
    named = _RANK_IN_NAME.findall(source)
    if not named:
        raise NoRankError("neither the recording (distributedInfo) nor its name (rank3.mtp) tells its rank")
    return int(named[-1]), 0


def _steps(rows: RecordedRows) -> tuple[Numbers, Numbers, Numbers]:
    """Numbers, begins and ends of the steps: of ProfilerStep#N ranges, else of runs of rows with the same step."""
    columns = rows.columns
    marks = np.flatnonzero((columns["kind"] == observer.STEP) & (columns["device_type"] == 0))
    if len(marks):
        texts = [rows.names[name].removeprefix(STEP_PREFIX) for name in columns["name"][marks].tolist()]
        known = [at for at, text in enumerate(texts) if text.isdecimal() and len(text) < 10]
        marks = marks[known]
        number = np.array([int(texts[at]) for at in known], np.int64)
        begins, ends = columns["start"][marks], columns["end"][marks]
    else:
        step, start = columns["step"], columns["start"]
        first = np.flatnonzero(np.append(True, np.diff(np.maximum.accumulate(step)) > 0))
        number, begins = step[first], start[first]
        ends = np.append(begins[1:], columns["end"].max())
    if not len(number):
        return np.zeros(1, np.int64), columns["start"][:1], columns["end"].max(keepdims=True)
    number, at = np.unique(number[:MOST_STEPS], return_index=True)
    begins = np.maximum.accumulate(begins[at])
    return number, begins, np.maximum(ends[at], begins)


def _fill_steps(
    rows: RecordedRows, found: Collectives, number: Numbers, begins: Numbers, ends: Numbers, step_of: Numbers
) -> tuple[Steps, Intervals]:
    columns = rows.columns
    communication = np.zeros(len(columns["start"]), np.bool_)
    communication[found.rows] = True
    compute = _compute_intervals(rows, communication, found.callers)
    sent = Intervals(columns["start"][found.rows], columns["end"][found.rows])
    computing = compute.covered(begins, ends)
    names = np.array([name.startswith(LOADER_NAME) for name in rows.names] + [False])
    loading = names[columns["name"]]
    loader = Intervals(columns["start"][loading], columns["end"][loading])
    count = len(number)
    inside = step_of >= 0
    steps = Steps(
        number=number,
        start=begins,
        length=ends - begins,
        computing=computing,
        communication=sent.covered(begins, ends),
        exposed=(compute | sent).covered(begins, ends) - computing,
        loader=loader.covered(begins, ends),
        memory=_memory_peaks(columns, begins, ends),
        elements=_elements(rows, step_of, count),
        flops=_sums(step_of[inside], columns["flops"][inside], count),
    )
    return steps, compute


def _compute_intervals(rows: RecordedRows, communication: NDArray[np.bool_], callers: NDArray[np.bool_]) -> Intervals:
    """When the rank computes: kernels of its device; without a device, ops but for those that wait for other ranks."""
    columns, on_device = rows.columns, device_rows(rows)
    if on_device.any():
        chosen = on_device & ~communication
        return Intervals(columns["start"][chosen], columns["end"][chosen])
    chosen = OP_KINDS[columns["kind"]] & ~communication & ~callers
    ops = Intervals(columns["start"][chosen], columns["end"][chosen])
    waiting = callers & (columns["kind"] != observer.SCOPE)
    return _without(ops, Intervals(columns["start"][waiting], columns["end"][waiting])) if waiting.any() else ops


def _without(all_of: Intervals, cut: Intervals) -> Intervals:
    """The moments of one set that are not in the other."""
    points = np.unique(np.concatenate([all_of.start, all_of.end, cut.start, cut.end]))
    left, right = points[:-1], points[1:]
    kept = (all_of.covered(left, right) == right - left) & (cut.covered(left, right) == 0)
    return Intervals(left[kept], right[kept])


def _memory_peaks(columns: Mapping[str, Numbers], begins: Numbers, ends: Numbers) -> Numbers:
    time, total = columns["mem_time"], columns["mem_total"]
    peaks = np.full(len(begins), -1, np.int64)
    if len(time):
        step = np.searchsorted(begins, time, side="right") - 1
        inside = (step >= 0) & (time < ends[-1])
        np.maximum.at(peaks, step[inside], total[inside])
    return peaks


def _elements(rows: RecordedRows, step_of: Numbers, count: int) -> Numbers:
    """Elements of the tensors that ops took, by step: what tells an unbalanced batch from a slow machine."""
    shapes = rows.columns["shapes"]
    known = (shapes >= 0) & (step_of >= 0)
    if not len(rows.input_dims) or not known.any():
        return np.full(count, -1, np.int64)
    sizes = np.array([min(_elements_of(dims), 1 << 40) for dims in rows.input_dims], np.int64)
    return _sums(step_of[known], sizes[shapes[known]], count)


def _elements_of(dims: Any) -> int:
    """Elements of the tensors and lists of tensors of one call."""
    total = 0
    for shape in dims:
        if not shape:
            continue
        total += prod(shape) if isinstance(shape[0], int) else _elements_of(shape)
    return total


def _ops(
    rows: RecordedRows, found: Collectives, step_of: Numbers, steps: int
) -> tuple[list[str], list[bool], OpTimes, Sketches]:
    columns = rows.columns
    device = device_rows(rows)
    host = (columns["device_type"] == 0) & OP_KINDS[columns["kind"]]
    chosen = device | host
    chosen[found.rows] = False
    duration = columns["end"] - columns["start"]
    self_ns = duration.copy()
    at = np.flatnonzero(host)
    parent = tree.parents(columns["tid"][at].astype(np.int32), columns["start"][at], columns["end"][at])
    self_ns[at] = np.maximum(duration[at] - tree.sums(parent, duration[at], len(at)), 0)
    at = np.flatnonzero(chosen & (step_of >= 0))
    # One number for each name on the host, and one for each on a device.
    both = columns["name"][at] * 2 + device[at]
    numbers, of_row = _largest(both, self_ns[at], 2 * len(rows.names))
    times = _op_times(of_row, step_of[at], self_ns[at], steps)
    bins = np.clip(np.ceil(np.log(np.maximum(duration[at], 1)) / LOG_GROWTH).astype(np.int64), 0, BINS - 1)
    counts = np.bincount(of_row * BINS + bins)
    places = np.flatnonzero(counts)
    names = [OTHERS if number < 0 else rows.names[number // 2][:_MOST_NAME] for number in numbers]
    return names, [number % 2 == 1 for number in numbers], times, Sketches(places // BINS, places % BINS, counts[places])


def _largest(keys: Numbers, self_ns: Numbers, most: int) -> tuple[list[int], Numbers]:
    """The keys with the most time in order of the key, -1 for all others together, and the place of each row in that list."""
    totals = np.bincount(keys, self_ns, minlength=most) if len(keys) else np.zeros(most)
    present = np.unique(keys)
    if len(present) > MOST_OPS:
        order = np.lexsort((present, -totals[present]))
        kept = np.sort(present[order[:MOST_OPS]])
    else:
        kept = present
    place = np.full(most, len(kept), np.int64)
    place[kept] = np.arange(len(kept))
    numbers = kept.tolist() + ([-1] if len(kept) < len(present) else [])
    return numbers, place[keys]


def _op_times(op: Numbers, step: Numbers, self_ns: Numbers, steps: int) -> OpTimes:
    cell = op * steps + step
    counts = np.bincount(cell)
    places = np.flatnonzero(counts)
    # Sums of whole numbers below 2**53 are exact in a float.
    sums = np.bincount(cell, self_ns).astype(np.int64)
    return OpTimes(places // steps, places % steps, counts[places], sums[places])


def _communications(columns: Mapping[str, Numbers], found: Collectives, compute: Intervals, step_of: Numbers) -> Communications:
    start, end = columns["start"][found.rows], columns["end"][found.rows]
    length = end - start
    hidden = compute.covered(start, end)
    exposed = (length - hidden) * EXPOSED_SCALE // np.maximum(length, 1)
    return _one_each(
        Communications(step_of[found.rows], found.kind, found.group, found.seq, start, length, exposed, found.size, found.peer)
    )


def _one_each(rows: Communications) -> Communications:
    """Communications of one number (coalesced ones) joined into one from the first begin to the last end."""
    keys = np.stack([rows.start, rows.peer, rows.seq, rows.kind, rows.group])
    order = np.lexsort(keys)
    same = np.append(False, (np.diff(keys[1:, order], axis=1) == 0).all(axis=0))
    if not same.any():
        return rows
    first = np.flatnonzero(~same)
    end = rows.start + rows.length
    joined = {part.name: getattr(rows, part.name)[order][first] for part in fields(rows)}
    joined["start"] = np.minimum.reduceat(rows.start[order], first)
    joined["length"] = np.maximum.reduceat(end[order], first) - joined["start"]
    joined["size"] = np.add.reduceat(rows.size[order], first)
    joined["exposed"] = np.maximum.reduceat(rows.exposed[order], first)
    in_time = np.argsort(joined["start"], kind="stable")
    return Communications(**{name: values[in_time] for name, values in joined.items()})


def _sums(place: Numbers, values: Numbers, count: int) -> Numbers:
    return np.bincount(place, values, minlength=count)[:count].astype(np.int64)
