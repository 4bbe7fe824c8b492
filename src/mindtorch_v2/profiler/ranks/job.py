"""Job: the digests of all ranks side by side, as matrices of ranks x steps and one table of communications."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formats._recovery import TraceError
from ..retention.stats import BINS, Summary, duration_of
from .collectives import Group
from .digest import OTHERS, Steps
from .digest_file import Head, PartsReader, read_head

Numbers = NDArray[np.int64]
MOST_OPS = 64  # of a job, those that take longest
# Narrow columns: ten thousand ranks have three million communications, and as many sums of ops.
_DTYPES = {
    **dict.fromkeys(("rank", "step", "group", "peer", "op", "bin", "count"), np.int32),
    "kind": np.int8,
    "exposed": np.int16,
}
_STEP_COLUMNS = tuple(column.name for column in fields(Steps) if column.name != "number")


@dataclass(frozen=True, order=True)
class LeftOut:
    """A file that is not part of the job, and why."""

    source: str
    reason: str


@dataclass
class Messages:
    """The communications of all ranks, by rank and start; rank, step and group are indices of the job's own."""

    rank: NDArray[np.int32]
    step: NDArray[np.int32]
    kind: NDArray[np.int8]
    group: NDArray[np.int32]
    seq: Numbers
    start: Numbers
    length: Numbers
    exposed: NDArray[np.int16]
    size: Numbers
    peer: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rank)


@dataclass
class Job:
    """What the digests of a job say together. Matrices have a row for each rank and a column for each common step."""

    ranks: Numbers
    world_size: int
    hosts: list[str]  # of each rank
    sources: list[str]
    to_wall: Numbers
    events: int
    step_numbers: Numbers
    steps: dict[str, Numbers]  # by the columns of digest.Steps, each ranks x steps
    groups: list[Group]
    messages: Messages
    ops: list[tuple[str, bool]]  # name, whether it runs on a device
    op_ns: Numbers  # ranks x ops x steps
    op_calls: Numbers
    sketches: dict[tuple[str, bool], dict[int, int]]
    left_out: list[LeftOut]
    notes: list[str]

    @property
    def own(self) -> Numbers:
        """Time of each rank and step without exposed communication."""
        return self.steps["length"] - self.steps["exposed"]

    @property
    def idle(self) -> Numbers:
        """Time of each rank and step in which there is neither computing nor communication."""
        return self.own - self.steps["computing"]

    def summary(self, op: tuple[str, bool]) -> Summary:
        """How long single calls of an op took, on all ranks."""
        bins = self.sketches.get(op, {})
        if not bins:
            return Summary()
        low, high = min(bins), max(bins)
        total = sum(count * duration_of(number) for number, count in bins.items())
        return Summary(sum(bins.values()), round(total), round(duration_of(low)), round(duration_of(high)), dict(bins))


def merge(blocks: Iterable[bytes], left_out: Iterable[LeftOut] = ()) -> Job:
    """The job of some digests, in any order. Ranks that come twice, and what does not fit, are left out by name.

    Heads are read first: they tell what belongs to the job, and how large its columns are. Then one digest after another is
    unpacked into them, so that no digest is in memory beside the job.
    """
    gone = list(left_out)
    chosen: dict[int, tuple[Head, bytes]] = {}
    heads = ((read_head(block), block) for block in set(blocks))
    for head, block in sorted(heads, key=lambda pair: (pair[0].rank, pair[0].source, pair[1])):
        first, _ = chosen.setdefault(head.rank, (head, block))
        if first is not head:
            gone.append(LeftOut(head.source, f"rank {head.rank} is there already: {first.source}"))
    if not chosen:
        raise TraceError("there is no recording of a rank" + _reasons(gone))
    ordered, notes = _of_one_world([head for head, _ in chosen.values()], gone)
    numbers = _common_steps(ordered, notes)
    notes += [f"rank {head.rank} ({head.source}): {head.damage}" for head in ordered if head.damage]
    world = max([head.world_size for head in ordered] + [0])
    missing = sorted(set(range(world)) - {head.rank for head in ordered})
    if missing:
        notes.append(f"{len(missing)} of {world} ranks are missing: {_listed(missing)}")
    groups, group_of = _groups(ordered)
    every, op_of = _every_op(ordered)
    columns, reader = _JobColumns(ordered, numbers), PartsReader()
    for at, head in enumerate(ordered):
        columns.add(reader.read(chosen.pop(head.rank)[1], head.counts), head, group_of[at], op_of[at])
    ops, op_ns, op_calls, sketches = _op_matrices(columns, every, len(ordered))
    return Job(
        ranks=np.array([head.rank for head in ordered], np.int64),
        world_size=world or len(ordered),
        hosts=[head.host for head in ordered],
        sources=[head.source for head in ordered],
        to_wall=np.array([head.to_wall for head in ordered], np.int64),
        events=sum(head.events for head in ordered),
        step_numbers=numbers,
        steps=columns.steps,
        groups=groups,
        messages=Messages(**columns.messages.finished()),
        ops=ops,
        op_ns=op_ns,
        op_calls=op_calls,
        sketches=sketches,
        left_out=sorted(set(gone)),
        notes=notes,
    )


class _Filled:
    """Columns of a known number of rows at most, filled from the first on."""

    def __init__(self, names: Iterable[str], most: int) -> None:
        self.count = 0
        self._columns: dict[str, NDArray[Any]] = {name: np.empty(most, _DTYPES.get(name, np.int64)) for name in names}

    def add(self, count: int, values: dict[str, Any]) -> None:
        """Add rows; a number stands for a column of equal ones."""
        part = slice(self.count, self.count + count)
        for name, column in self._columns.items():
            column[part] = values[name]
        self.count += count

    def finished(self) -> dict[str, NDArray[Any]]:
        """The columns as far as they are filled."""
        return {name: column[: self.count] for name, column in self._columns.items()}


class _JobColumns:
    """The columns of a job, to which the digests of its ranks are added in order."""

    def __init__(self, heads: list[Head], numbers: Numbers) -> None:
        _, sent, times, sketched = (sum(counts) for counts in zip(*(head.counts for head in heads), strict=True))
        self.numbers = numbers
        self.steps = {name: np.empty((len(heads), len(numbers)), np.int64) for name in _STEP_COLUMNS}
        self.messages = _Filled((column.name for column in fields(Messages)), sent)
        self.times = _Filled(("rank", "op", "step", "count", "self_ns"), times)
        self.sketches = _Filled(("op", "bin", "count"), sketched)
        self._rank = 0
        self._own: Numbers | None = None

    def add(self, parts: dict[str, Any], head: Head, group_of: Numbers, op_of: Numbers) -> None:
        """Add the next rank; group_of, op_of: the job's numbers of its groups and ops."""
        own, numbers = head.step_numbers, self.numbers
        if self._own is None or not np.array_equal(own, self._own):
            self._own, self._places, self._found = own, _place(own, numbers), np.searchsorted(own, numbers)
        for name, matrix in self.steps.items():
            matrix[self._rank] = getattr(parts["steps"], name)[self._found]
        self._add_rows(self.messages, parts["communications"], {"group": group_of} if len(group_of) else {})
        self._add_rows(self.times, parts["op_times"], {"op": op_of})
        sketches = vars(parts["sketches"])
        self.sketches.add(len(sketches["op"]), {**sketches, "op": op_of[sketches["op"]]})
        self._rank += 1

    def _add_rows(self, filled: _Filled, part: Any, renumbered: dict[str, Numbers]) -> None:
        """Add the rows of common steps, with numbers of the job's own."""
        values: dict[str, Any] = dict(vars(part))
        values["step"] = self._places[values["step"]]
        if len(values["step"]) and int(values["step"].min()) < 0:
            kept = values["step"] >= 0
            values = {name: column[kept] for name, column in values.items()}
        for name, number in renumbered.items():
            values[name] = number[values[name]]
        filled.add(len(values["step"]), {**values, "rank": self._rank})


def _reasons(gone: list[LeftOut]) -> str:
    shown = "; ".join(f"{entry.source}: {entry.reason}" for entry in sorted(gone)[:3])
    return f"; {len(gone)} files were left out ({shown})" if gone else ""


def _listed(numbers: list[int], most: int = 8) -> str:
    text = ", ".join(map(str, numbers[:most]))
    return text + (", ..." if len(numbers) > most else "")


def _of_one_world(heads: list[Head], gone: list[LeftOut]) -> tuple[list[Head], list[str]]:
    """The heads of the world size that most have: recordings of another job in the folder are left out."""
    sizes = [head.world_size for head in heads if head.world_size]
    if not sizes or min(sizes) == max(sizes):
        return heads, []
    values, counts = np.unique(sizes, return_counts=True)
    usual = int(values[np.argmax(counts)])
    gone += [
        LeftOut(head.source, f"of a job of {head.world_size} ranks; the others are of {usual}")
        for head in heads
        if head.world_size not in (0, usual)
    ]
    return [head for head in heads if head.world_size in (0, usual)], []


def _common_steps(heads: list[Head], notes: list[str]) -> Numbers:
    """The steps that all ranks have; ranks that have none of the usual ones are an error, fewer are a note."""
    counts: dict[int, int] = {}
    for head in heads:
        for number in head.step_numbers.tolist():
            counts[number] = counts.get(number, 0) + 1
    common = np.array(sorted(number for number, count in counts.items() if count == len(heads)), np.int64)
    if not len(common):
        few = min(heads, key=lambda head: (len(head.step_numbers), head.rank))
        raise TraceError(
            f"the ranks have no step in common: rank {few.rank} has the steps {_listed(few.step_numbers.tolist())}, "
            f"rank {heads[0].rank} {_listed(heads[0].step_numbers.tolist())}"
        )
    others = [head.rank for head in heads if len(head.step_numbers) != len(common)]
    if others:
        notes.append(f"steps do not match: {len(common)} are on all ranks; ranks with others: {_listed(others)}")
    return common


def _groups(heads: list[Head]) -> tuple[list[Group], list[Numbers]]:
    """All groups, sorted, and the number of each head's own among them."""
    every = sorted({group for head in heads for group in head.groups})
    number = {group: at for at, group in enumerate(every)}
    return every, [np.array([number[group] for group in head.groups], np.int64) for head in heads]


def _every_op(heads: list[Head]) -> tuple[list[tuple[str, bool]], list[Numbers]]:
    """All ops, sorted, and the number of each head's own among them."""
    own = [tuple(zip(head.ops, head.device_ops, strict=True)) for head in heads]
    distinct = set(own)  # most ranks have the same
    every = sorted({op for ops in distinct for op in ops})
    number = {op: at for at, op in enumerate(every)}
    places = {ops: np.array([number[op] for op in ops], np.int64) for ops in distinct}
    return every, [places[ops] for ops in own]


def _op_matrices(
    columns: _JobColumns, every: list[tuple[str, bool]], ranks: int
) -> tuple[list[tuple[str, bool]], Numbers, Numbers, dict[tuple[str, bool], dict[int, int]]]:
    """The ops that take longest on all ranks, sorted by name, their time and calls by rank and step, and their sketches."""
    times, drawn = columns.times.finished(), columns.sketches.finished()
    totals = np.zeros(len(every), np.int64)
    np.add.at(totals, times["op"], times["self_ns"])
    kept = sorted(every[at] for at in np.argsort(-totals, kind="stable")[:MOST_OPS].tolist())
    if len(kept) < len(every) and (OTHERS, False) not in kept:
        kept.append((OTHERS, False))
    number = {op: at for at, op in enumerate(kept)}
    rest = number.get((OTHERS, False), 0)
    place = np.array([number.get(op, rest) for op in every], np.int64)
    shape = (ranks, len(kept), len(columns.numbers))
    self_ns, calls = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    cell = (times["rank"].astype(np.int64) * shape[1] + place[times["op"]]) * shape[2] + times["step"]
    np.add.at(self_ns.reshape(-1), cell, times["self_ns"])
    np.add.at(calls.reshape(-1), cell, times["count"])
    counts = np.zeros((len(kept), BINS), np.int64)
    np.add.at(counts.reshape(-1), place[drawn["op"]] * BINS + drawn["bin"], drawn["count"].astype(np.int64))
    sketches = {op: {int(b): int(row[b]) for b in np.flatnonzero(row)} for op, row in zip(kept, counts, strict=True)}
    return kept, self_ns, calls, sketches


def _place(own: Numbers, numbers: Numbers) -> Numbers:
    """The index among `numbers` of each of a rank's own steps, -1 for those that are not common; one more at -1."""
    at = np.searchsorted(numbers, own)
    found = np.minimum(at, len(numbers) - 1)
    return np.append(np.where(numbers[found] == own, found, -1), -1)
