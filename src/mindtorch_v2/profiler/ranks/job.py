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
from .digest import NO_COMMUNICATIONS, OTHERS, Digest, Steps
from .digest_file import decode

Numbers = NDArray[np.int64]
MOST_OPS = 64  # of a job, those that take longest
# Narrow columns: ten thousand ranks have three million communications, and as many sums of ops.
_DTYPES = {
    **dict.fromkeys(("rank", "step", "group", "peer", "op", "bin", "count"), np.int32),
    "kind": np.int8,
    "exposed": np.int16,
}


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
    """The job of some digests, in any order. Ranks that come twice, and what does not fit, are left out by name."""
    gone = list(left_out)
    digests: dict[int, Digest] = {}
    for digest in sorted((_narrowed(decode(block)) for block in set(blocks)), key=lambda digest: (digest.rank, digest.source)):
        first = digests.setdefault(digest.rank, digest)
        if first is not digest:
            gone.append(LeftOut(digest.source, f"rank {digest.rank} is there already: {first.source}"))
    if not digests:
        raise TraceError("there is no recording of a rank" + _reasons(gone))
    ordered = [digests[rank] for rank in sorted(digests)]
    ordered, notes = _of_one_world(ordered, gone)
    numbers = _common_steps(ordered, notes)
    notes += [f"rank {digest.rank} ({digest.source}): {digest.damage}" for digest in ordered if digest.damage]
    world = max([digest.world_size for digest in ordered] + [0])
    missing = sorted(set(range(world)) - {digest.rank for digest in ordered})
    if missing:
        notes.append(f"{len(missing)} of {world} ranks are missing: {_listed(missing)}")
    groups, group_of = _groups(ordered)
    messages = _messages(ordered, group_of, numbers)
    for digest in ordered:
        digest.communications = NO_COMMUNICATIONS  # most of its memory
    ops, op_of = _ops(ordered)
    op_ns, op_calls, sketches = _op_matrices(ordered, ops, op_of, numbers)
    return Job(
        ranks=np.array([digest.rank for digest in ordered], np.int64),
        world_size=world or len(ordered),
        hosts=[digest.host for digest in ordered],
        sources=[digest.source for digest in ordered],
        to_wall=np.array([digest.to_wall for digest in ordered], np.int64),
        events=sum(digest.events for digest in ordered),
        step_numbers=numbers,
        steps={column.name: _matrix(ordered, column.name, numbers) for column in fields(Steps) if column.name != "number"},
        groups=groups,
        messages=messages,
        ops=ops,
        op_ns=op_ns,
        op_calls=op_calls,
        sketches=sketches,
        left_out=sorted(set(gone)),
        notes=notes,
    )


def _narrowed(digest: Digest) -> Digest:
    """A digest whose columns take no more memory than they need."""
    for part in (digest.communications, digest.op_times, digest.sketches):
        for column in fields(part):
            if column.name in _DTYPES:
                setattr(part, column.name, getattr(part, column.name).astype(_DTYPES[column.name]))
    return digest


def _reasons(gone: list[LeftOut]) -> str:
    shown = "; ".join(f"{entry.source}: {entry.reason}" for entry in sorted(gone)[:3])
    return f"; {len(gone)} files were left out ({shown})" if gone else ""


def _listed(numbers: list[int], most: int = 8) -> str:
    text = ", ".join(map(str, numbers[:most]))
    return text + (", ..." if len(numbers) > most else "")


def _of_one_world(digests: list[Digest], gone: list[LeftOut]) -> tuple[list[Digest], list[str]]:
    """The digests of the world size that most have: recordings of another job in the folder are left out."""
    sizes = [digest.world_size for digest in digests if digest.world_size]
    if not sizes or min(sizes) == max(sizes):
        return digests, []
    values, counts = np.unique(sizes, return_counts=True)
    usual = int(values[np.argmax(counts)])
    gone += [
        LeftOut(digest.source, f"of a job of {digest.world_size} ranks; the others are of {usual}")
        for digest in digests
        if digest.world_size not in (0, usual)
    ]
    return [digest for digest in digests if digest.world_size in (0, usual)], []


def _common_steps(digests: list[Digest], notes: list[str]) -> Numbers:
    """The steps that all ranks have; ranks that have none of the usual ones are an error, fewer are a note."""
    counts: dict[int, int] = {}
    for digest in digests:
        for number in digest.steps.number.tolist():
            counts[number] = counts.get(number, 0) + 1
    common = np.array(sorted(number for number, count in counts.items() if count == len(digests)), np.int64)
    if not len(common):
        few = min(digests, key=lambda digest: (len(digest.steps.number), digest.rank))
        raise TraceError(
            f"the ranks have no step in common: rank {few.rank} has the steps {_listed(few.steps.number.tolist())}, "
            f"rank {digests[0].rank} {_listed(digests[0].steps.number.tolist())}"
        )
    others = [digest.rank for digest in digests if len(digest.steps.number) != len(common)]
    if others:
        notes.append(f"steps do not match: {len(common)} are on all ranks; ranks with others: {_listed(others)}")
    return common


def _matrix(digests: list[Digest], column: str, numbers: Numbers) -> Numbers:
    matrix = np.empty((len(digests), len(numbers)), np.int64)
    for at, digest in enumerate(digests):
        values = getattr(digest.steps, column)
        same = len(values) == len(numbers)
        matrix[at] = values if same else values[np.searchsorted(digest.steps.number, numbers)]
    return matrix


def _groups(digests: list[Digest]) -> tuple[list[Group], list[Numbers]]:
    """All groups, sorted, and the number of each digest's own among them."""
    every = sorted({group for digest in digests for group in digest.groups})
    number = {group: at for at, group in enumerate(every)}
    return every, [np.array([number[group] for group in digest.groups], np.int64) for digest in digests]


def _ops(digests: list[Digest]) -> tuple[list[tuple[str, bool]], list[Numbers]]:
    """The ops that take longest on all ranks, sorted by name, and the number of each digest's own among them."""
    totals: dict[tuple[str, bool], int] = {}
    for digest in digests:
        sums = np.bincount(digest.op_times.op, digest.op_times.self_ns, minlength=len(digest.ops)).astype(np.int64)
        for name, device, ns in zip(digest.ops, digest.device_ops, sums.tolist(), strict=True):
            totals[name, device] = totals.get((name, device), 0) + ns
    kept = sorted(sorted(totals, key=lambda op: (-totals[op], op))[:MOST_OPS])
    if len(kept) < len(totals) and (OTHERS, False) not in kept:
        kept.append((OTHERS, False))
    number = {op: at for at, op in enumerate(kept)}
    rest = number.get((OTHERS, False), 0)
    places = [
        np.array([number.get(op, rest) for op in zip(digest.ops, digest.device_ops, strict=True)], np.int64)
        for digest in digests
    ]
    return kept, places


def _op_matrices(
    digests: list[Digest], ops: list[tuple[str, bool]], op_of: list[Numbers], numbers: Numbers
) -> tuple[Numbers, Numbers, dict[tuple[str, bool], dict[int, int]]]:
    shape = (len(ops), len(numbers))
    self_ns = np.zeros((len(digests), *shape), np.int64)
    calls = np.zeros((len(digests), *shape), np.int64)
    counts = np.zeros((len(ops), BINS), np.int64)
    for at, (digest, place) in enumerate(zip(digests, op_of, strict=True)):
        times = digest.op_times
        step = _place(digest.steps.number, numbers)[times.step]
        known = step >= 0
        where = (place[times.op[known]], step[known])
        np.add.at(self_ns[at], where, times.self_ns[known])
        np.add.at(calls[at], where, times.count[known])
        np.add.at(counts, (place[digest.sketches.op], digest.sketches.bin), digest.sketches.count)
    sketches = {op: {int(b): int(row[b]) for b in np.flatnonzero(row)} for op, row in zip(ops, counts, strict=True)}
    return self_ns, calls, sketches


def _place(own: Numbers, numbers: Numbers) -> Numbers:
    """The index among `numbers` of each of a rank's own steps, -1 for those that are not common; one more at -1."""
    at = np.searchsorted(numbers, own)
    found = np.minimum(at, len(numbers) - 1)
    return np.append(np.where(numbers[found] == own, found, -1), -1)


def _messages(digests: list[Digest], group_of: list[Numbers], numbers: Numbers) -> Messages:
    steps = [_place(digest.steps.number, numbers)[digest.communications.step] for digest in digests]
    kept = [step >= 0 for step in steps]
    columns: dict[str, Any] = {
        "rank": np.repeat(np.arange(len(digests), dtype=np.int32), [int(chosen.sum()) for chosen in kept]),
        "step": _joined("step", (step[chosen] for step, chosen in zip(steps, kept, strict=True))),
    }
    for column in ("kind", "group", "seq", "start", "length", "exposed", "size", "peer"):
        parts = (getattr(digest.communications, column)[chosen] for digest, chosen in zip(digests, kept, strict=True))
        if column == "group":
            parts = (own[part] if len(own) else part for own, part in zip(group_of, parts, strict=True))
        columns[column] = _joined(column, parts)
    return Messages(**columns)


def _joined(name: str, parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    dtype = _DTYPES.get(name, np.int64)
    return np.concatenate([np.empty(0, dtype), *(part.astype(dtype, copy=False) for part in parts)], dtype=dtype)
