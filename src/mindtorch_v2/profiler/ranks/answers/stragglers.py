"""Slow ranks and why, pauses, and whether the rank that the others wait for stays the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..digest import OTHERS
from ..job import Job, Numbers
from ..matching import Instances
from .critical_path import CriticalPath
from .peers import FEWEST, class_medians, peer_classes, spread

LEAST_SLOW = 0.025  # a rank is named if it takes so much longer than its peers, and
_LEAST_SIGMAS = 6.0  # that is so far from their spread
_LEAST_PAUSE = 0.05  # of a step
_PAUSE_SIGMAS = 8.0
_LEAST_SPREAD = 0.003
_LEAST_LOST = 0.05  # of all time, for stragglers that move
MOST_PAUSES = 100
_MOST_OF_IT = 0.5  # of an excess, for its cause to be one thing
_LEAST_WORK = 0.01


@dataclass(frozen=True)
class SlowRank:
    """A rank whose own time is longer than its peers', step after step.

    ratio: its own time over theirs. sigmas: how far that is from their spread. cause: computing, more work, data loader, idle.
    op: the op that explains most of it, "" if all of them are slower alike. lost_ns: what the others waited for it.
    """

    rank: int
    host: str
    ratio: float
    sigmas: float
    excess_ns: int  # in a step
    cause: str
    op: str
    op_ratio: float
    work_ratio: float
    lost_ns: int

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Pause:
    """A step in which a rank took much longer than it usually does beside its peers."""

    rank: int
    host: str
    step: int
    excess_ns: int
    cause: str
    op: str

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Waiting:
    """What all ranks waited for late ones, and whether the rank that a step waits for stays the same.

    pattern: "stays", "moves" or "none". lost: the part of all time in which ranks waited; unexplained: without steps that a
    named rank led. leading: a named rank on each step's critical path, else that with the most work on it; shares: its part.
    """

    pattern: str
    lost: float
    unexplained: float
    leading: list[int]
    shares: list[float]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Stragglers:
    """The answer, largest first."""

    slow: list[SlowRank]
    pauses: list[Pause]
    pauses_in_all: int
    waiting: Waiting
    charged: Numbers  # ns that others waited, ranks x steps


def stragglers(job: Job, instances: Instances, paths: list[CriticalPath]) -> Stragglers:
    """Name ranks that are slow, steps in which one paused, and say whether late ranks move. paths: of all steps."""
    classes = peer_classes(job)
    own = job.own.astype(np.float64)
    usual = class_medians(own, classes)
    ratio = np.median(own / np.maximum(usual, 1), axis=1)
    sigma = spread(ratio - class_medians(ratio[:, None], classes)[:, 0], _LEAST_SPREAD)
    charged = _charged(job, instances)
    slow_at = _slow(ratio, sigma, own, usual, classes)
    causes = _Causes(job, classes)
    slow = [causes.slow_rank(int(at), float(ratio[at]), sigma, own, usual, int(charged[at].sum())) for at in slow_at]
    excess = own - ratio[:, None] * usual
    noise = spread(excess, 1.0)
    places = np.argwhere(excess >= np.maximum(_PAUSE_SIGMAS * noise, _LEAST_PAUSE * usual))
    places = places[np.lexsort((places[:, 0], -excess[places[:, 0], places[:, 1]]))] if len(places) else places
    if len(job.step_numbers) < FEWEST:
        places = places[:0]  # nothing tells a pause from a slow rank
    places = _causing(places, excess)
    pauses = [causes.pause(int(at), int(step), round(float(excess[at, step]))) for at, step in places[:MOST_PAUSES]]
    waiting = _waiting(job, charged, paths, slow, pauses)
    return Stragglers(sorted(slow, key=lambda one: (-one.lost_ns, one.rank)), pauses, len(places), waiting, charged)


def _slow(
    ratio: NDArray[np.float64], sigma: float, own: NDArray[np.float64], usual: NDArray[np.float64], classes: Numbers
) -> Numbers:
    if len(ratio) >= FEWEST:
        chosen: Numbers = np.flatnonzero((ratio - 1 >= LEAST_SLOW) & (ratio - 1 >= _LEAST_SIGMAS * sigma))
        return chosen
    if len(ratio) < 2 or own.shape[1] < FEWEST:
        return np.empty(0, np.int64)
    # Of two ranks neither is usual: the slower one is named if it is slower in nearly every step.
    difference = (own[0] - own[1]) / np.minimum(own[0], own[1])
    typical = float(np.median(difference))
    noise = spread(difference - typical, _LEAST_SPREAD) / np.sqrt(len(difference))
    if abs(typical) < LEAST_SLOW or abs(typical) < _LEAST_SIGMAS * noise:
        return np.empty(0, np.int64)
    return np.array([0 if typical > 0 else 1])


def _causing(places: Numbers, excess: NDArray[np.float64]) -> Numbers:
    """Pauses of a step that most ranks have are the job's, not a rank's."""
    if not len(places):
        return places
    often = np.bincount(places[:, 1], minlength=excess.shape[1])
    kept: Numbers = places[often[places[:, 1]] <= max(1, excess.shape[0] // 4)]
    return kept


def _charged(job: Job, instances: Instances) -> Numbers:
    """What others waited for each rank in each step, where it came last."""
    charged = np.zeros((len(job.ranks), len(job.step_numbers)), np.int64)
    if len(instances):
        lost = np.add.reduceat(instances.exposed_wait, instances.first)
        rank = job.messages.rank[instances.rows[instances.last]]
        np.add.at(charged, (rank, instances.step), lost)
    return charged


def _waiting(job: Job, charged: Numbers, paths: list[CriticalPath], slow: list[SlowRank], pauses: list[Pause]) -> Waiting:
    """By the critical paths: one late rank delays its neighbors, which come late elsewhere without fault of their own."""
    whole = max(int(job.steps["length"].sum()), 1)
    lost = charged.sum(axis=0)
    named, paused = {one.rank for one in slow}, {(one.rank, one.step) for one in pauses}
    leading, explained = [], []
    for path in paths:
        own = path.by_rank()
        guilty = [rank for rank in own if rank in named or (rank, path.step) in paused]
        explained.append(bool(guilty))
        leading.append((guilty or [*own, -1])[0])
    shares = [path.by_rank().get(rank, 0) / max(path.length_ns, 1) for path, rank in zip(paths, leading, strict=True)]
    rest = float(lost[~np.array(explained, np.bool_)].sum() / whole)
    often = max((leading.count(rank) for rank in set(leading)), default=0)
    stays = "stays" if 2 * often > len(leading) else "moves"
    pattern = stays if lost.sum() / whole >= _LEAST_LOST else "none"
    return Waiting(pattern, round(float(lost.sum() / whole), 4), round(rest, 4), leading, [round(share, 4) for share in shares])


def moves(waiting: Waiting) -> bool:
    """Whether so much is lost to ranks that change from step to step that it is worth a word."""
    return waiting.pattern == "moves" and waiting.unexplained >= _LEAST_LOST


class _Causes:
    """Splits what a rank takes beyond its peers into computing, work, data loader and idle time."""

    def __init__(self, job: Job, classes: Numbers) -> None:
        self._job = job
        self._classes = classes
        self._device = any(device for _, device in job.ops)

    def slow_rank(
        self, at: int, ratio: float, sigma: float, own: NDArray[np.float64], usual: NDArray[np.float64], lost: int
    ) -> SlowRank:
        """The slow rank with its cause, from the medians over its steps."""
        every = np.arange(own.shape[1])
        excess = float(np.median(own[at] - usual[at]))
        cause, op, op_ratio, work = self._cause(at, every, excess)
        job = self._job
        return SlowRank(
            rank=int(job.ranks[at]),
            host=job.hosts[at],
            ratio=round(ratio, 4),
            sigmas=round((ratio - 1) / sigma, 1),
            excess_ns=round(excess),
            cause=cause,
            op=op,
            op_ratio=op_ratio,
            work_ratio=work,
            lost_ns=lost,
        )

    def pause(self, at: int, step: int, excess: int) -> Pause:
        """The pause with its cause."""
        job = self._job
        cause, op, _, _ = self._cause(at, np.array([step]), excess)
        return Pause(int(job.ranks[at]), job.hosts[at], int(job.step_numbers[step]), excess, cause, op)

    def _cause(self, at: int, steps: Numbers, excess: float) -> tuple[str, str, float, float]:
        beyond = {name: self._beyond(self._job.steps[name], at, steps) for name in ("computing", "loader")}
        work = self._work(at, steps)
        if beyond["loader"] >= _MOST_OF_IT * excess:
            return "data loader", "", 1.0, work
        if beyond["computing"] >= _MOST_OF_IT * excess:
            op, op_ratio = self._op(at, steps)
            time = self._relative(self._job.steps["computing"], at, steps) - 1
            more = work - 1 >= max(_LEAST_WORK, _MOST_OF_IT * time)
            return "more work" if more else "computing", op, op_ratio, work
        return "idle", "", 1.0, work

    def _beyond(self, matrix: Numbers, at: int, steps: Numbers) -> float:
        values = matrix[:, steps].astype(np.float64)
        return float(np.median(values[at] - class_medians(values, self._classes)[at]))

    def _relative(self, matrix: Numbers, at: int, steps: Numbers) -> float:
        values = matrix[:, steps].astype(np.float64)
        return float(np.median(values[at] / np.maximum(class_medians(values, self._classes)[at], 1)))

    def _work(self, at: int, steps: Numbers) -> float:
        """Elements, or else floating point operations, beside those of the peers; 1 if neither was recorded."""
        for name in ("elements", "flops"):
            matrix = self._job.steps[name]
            if (matrix[:, steps] > 0).all():
                return round(self._relative(matrix, at, steps), 4)
        return 1.0

    def _op(self, at: int, steps: Numbers) -> tuple[str, float]:
        """The op that explains more than half of what computing takes longer, and its ratio."""
        job = self._job
        members = np.flatnonzero(self._classes == self._classes[at])
        times = job.op_ns[members][:, :, steps].astype(np.float64).mean(axis=2)
        usual = np.median(times, axis=0)
        chosen = np.array([device == self._device and name != OTHERS for name, device in job.ops], np.bool_)
        beyond = np.where(chosen, times[np.searchsorted(members, at)] - usual, 0.0)
        largest = int(np.argmax(beyond))
        total = float(np.maximum(beyond, 0).sum())
        if not chosen.any() or total <= 0 or beyond[largest] < _MOST_OF_IT * total:
            return "", 1.0
        return job.ops[largest][0], round(float((usual[largest] + beyond[largest]) / max(usual[largest], 1.0)), 4)
