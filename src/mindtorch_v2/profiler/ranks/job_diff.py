"""What changed between two jobs: steps, what fills them, ops, and ranks that became slower beside the others."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io.strict_json import dumps
from ..analysis.findings import duration, relative_changes
from .answered import JobAnswers
from .answers.peers import class_medians, peer_classes, spread

_LEAST = 0.02  # smaller changes are not named
_SIGMAS = 3.3  # a two-sided interval of 99.9 %
_FEWEST_STEPS = 3
_MOST = 20
_LEAST_SHARE = 0.002  # of a step, for an op to be compared
_RANK_SIGMAS = 6.0
_LEAST_RANK = 0.02


@dataclass(frozen=True)
class JobChange:
    """A figure in both jobs: medians over the steps, their ratio, and the interval of the ratio."""

    name: str
    before_ns: float
    after_ns: float
    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether it is slower or faster beyond doubt."""
        if not (math.isfinite(self.ratio) and self.low > 0):
            return "unclear"
        if self.low > 1 and self.ratio - 1 >= _LEAST:
            return "slower"
        return "faster" if self.high < 1 and 1 - self.ratio >= _LEAST else "no evidence"

    def __str__(self) -> str:
        bounds = (self.low, self.high) if self.low > 0 and math.isfinite(self.high) else ()
        change, *interval = relative_changes(self.ratio, *bounds)
        return (
            f"{self.name}: {duration(self.before_ns)} -> {duration(self.after_ns)} "
            f"({change}, {' to '.join(interval) or 'interval unknown'}), {self.verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields and the verdict as plain values."""
        values = {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}
        return {**values, "verdict": self.verdict}


@dataclass(frozen=True)
class RankChange:
    """A rank that is slower or faster beside its peers than it was."""

    rank: int
    before: float
    after: float


@dataclass(frozen=True)
class JobDiff:
    """The comparison of two jobs."""

    step: JobChange
    parts: list[JobChange]
    ops: list[JobChange]  # those with evidence of a change, largest first
    ops_in_all: int
    ranks: list[RankChange]
    notes: list[str]

    @property
    def slower(self) -> bool:
        """Whether a step became slower beyond doubt."""
        return self.step.verdict == "slower"

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values of bounded size."""
        return {
            "step": self.step.to_dict(),
            "parts": [change.to_dict() for change in self.parts],
            "ops": [change.to_dict() for change in self.ops[:_MOST]],
            "ops_compared": self.ops_in_all,
            "ranks": [asdict(change) for change in self.ranks[:_MOST]],
            "notes": self.notes,
        }

    def to_json(self) -> str:
        """The comparison as JSON."""
        return dumps(self.to_dict(), indent=1)

    def text(self) -> str:
        """The comparison in some lines."""
        lines = [str(self.step), *(f"  {change}" for change in self.parts)]
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"rank {one.rank}: {one.before:.3f} -> {one.after:.3f} times its peers" for one in self.ranks[:_MOST]]
        lines += [str(change) for change in self.ops[:_MOST]]
        lines.append(f"{self.ops_in_all - len(self.ops)} of {self.ops_in_all} ops without evidence of a change")
        return "\n".join(lines)


def compare(before: JobAnswers, after: JobAnswers) -> JobDiff:
    """Compare two jobs step by step: the steps of a job are its observations, each the median over its ranks."""
    a, b = before.job, after.job
    notes = []
    if len(a.ranks) != len(b.ranks):
        notes.append(f"{len(a.ranks)} ranks before, {len(b.ranks)} after")
    if min(len(a.step_numbers), len(b.step_numbers)) < _FEWEST_STEPS:
        notes.append(f"fewer than {_FEWEST_STEPS} steps: nothing can be told from noise")
    parts = [
        _change(name, np.median(x, axis=0), np.median(y, axis=0))
        for name, x, y in (
            ("computing", a.steps["computing"], b.steps["computing"]),
            ("exposed communication", a.steps["exposed"], b.steps["exposed"]),
            ("idle", a.idle, b.idle),
        )
    ]
    ops, compared = _ops(before, after)
    return JobDiff(_change("a step", before.step_ns, after.step_ns), parts, ops, compared, _ranks(before, after), notes)


def _change(name: str, before: NDArray[Any], after: NDArray[Any]) -> JobChange:
    x, y = np.asarray(before, np.float64), np.asarray(after, np.float64)
    a, b = float(np.median(x)), float(np.median(y))
    if a <= 0:
        return JobChange(name, a, b, math.inf if b > 0 else 1.0, 0.0, math.inf)
    ratio = b / a
    # The error of a median of n is 1.25 sigma / sqrt(n); with few steps nothing is certain.
    error = 1.2533 * math.hypot(_spread(x) / a / math.sqrt(len(x)), _spread(y) / max(b, 1.0) / math.sqrt(len(y)))
    wide = _SIGMAS * error if min(len(x), len(y)) >= _FEWEST_STEPS else math.inf
    return JobChange(name, a, b, ratio, ratio * (1 - wide) if wide < 1 else 0.0, ratio * (1 + wide))


def _spread(values: NDArray[np.float64]) -> float:
    return max(spread(values - np.median(values), 0.0), 1e-3 * float(np.median(values)))


def _ops(before: JobAnswers, after: JobAnswers) -> tuple[list[JobChange], int]:
    a, b = before.job, after.job
    least = _LEAST_SHARE * float(np.median(before.step_ns))
    places = {op: at for at, op in enumerate(b.ops)}
    changes = []
    for at, op in enumerate(a.ops):
        if op in places:
            x, y = np.median(a.op_ns[:, at], axis=0), np.median(b.op_ns[:, places[op]], axis=0)
            if max(float(np.median(x)), float(np.median(y))) >= least:
                changes.append(_change(op[0], x, y))
    found = [change for change in changes if change.verdict in ("slower", "faster")]
    return sorted(found, key=lambda change: (-abs(change.after_ns - change.before_ns), change.name)), len(changes)


def _ranks(before: JobAnswers, after: JobAnswers) -> list[RankChange]:
    """Ranks that are elsewhere among their peers than before; both jobs number them alike."""
    ratios = []
    for answers in (before, after):
        own = answers.job.own.astype(np.float64)
        usual = class_medians(own, peer_classes(answers.job))
        ratios.append(
            dict(zip(answers.job.ranks.tolist(), np.median(own / np.maximum(usual, 1), axis=1).tolist(), strict=True))
        )
    common = sorted(ratios[0].keys() & ratios[1].keys())
    moved = np.array([ratios[1][rank] - ratios[0][rank] for rank in common])
    least = max(_LEAST_RANK, _RANK_SIGMAS * spread(moved, 0.003))
    far = [rank for rank, by in zip(common, moved, strict=True) if abs(by) >= least]
    far.sort(key=lambda rank: -abs(ratios[1][rank] - ratios[0][rank]))
    return [RankChange(rank, round(ratios[0][rank], 4), round(ratios[1][rank], 4)) for rank in far]
