"""One clock for all hosts, solved from the ends of collectives that they share.

All ranks leave a collective at the same moment but for some jitter, so the end of collective i on host h reads
    E[i, h] = t_i + a_h + b_h * (E[i, h] - middle) + jitter
The moments t_i are eliminated, and offsets a and rates b are found by least squares with Huber's weights. Hosts that no chain
of collectives connects cannot be compared: each part has a clock of its own, and that is said. A rank whose ends contradict
those of its own host is reported, and solved for by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .job import Job, Numbers
from .matching import Instances
from .runs import run_starts, sorted_within

Floats = NDArray[np.float64]

_ROUNDS = 8
_HUBER = 1.5  # standard deviations within which an observation counts fully
_MOST_OBSERVATIONS = 200_000
_DENSE = 48  # collectives with more clocks are summed as a matrix product, others pair by pair
_TOLERANCE, _MOST_ITERATIONS = 1e-13, 300  # of conjugate gradients; chains of many hosts are solved as a matrix
_PRODUCTS = 1 << 20  # computed at once, so that memory does not grow with the number of collectives
# Jitter is one-sided and correlated within a host, and its tails are heavier than a normal's: 95 % of hosts are to be within.
_COVERAGE = 2.6
_TO_SIGMA = 1.4826
_MEDIAN = 1.57  # the variance of a median of n is so many times that of their mean
_PRIOR_OFFSET_NS, _PRIOR_RATE = 1e12, 1e-4  # quartz is within 100 ppm; so wide that they decide only what nothing else does
_CONTRADICTION_NS = 50_000.0
_CONTRADICTION_SIGMAS = 12.0
_FEWEST_ENDS = 3


@dataclass(frozen=True)
class Contradiction:
    """A rank whose clock disagrees with that of its host, by how much and in how many collectives."""

    rank: int
    host: str
    by_ns: int
    collectives: int


@dataclass
class Clocks:
    """The clock of each rank in relation to that of its part's first rank.

    The moment on the reference clock of a reading w (wall time of the rank) is w - offset - rate * (w - middle).
    error_ns: within which a rank's clock is known, for 95 of 100.
    """

    part: Numbers  # of each rank: ranks of different parts cannot be compared
    offset_ns: Floats
    rate: Floats
    error_ns: Floats
    middle: int
    jitter_ns: float  # how far ends of one collective are apart on the solved clocks: a standard deviation
    collectives: int
    contradictions: list[Contradiction]
    clock_names: list[str]  # of each rank: its host, or "rank N" where that has a clock of its own

    @property
    def connected(self) -> bool:
        """Whether all ranks are on one clock."""
        return int(self.part.max(initial=0)) == 0

    def to_reference(self, rank: int, wall: Numbers) -> Numbers:
        """Wall times of a rank, by its index, on the reference clock of its part."""
        shift = self.offset_ns[rank] + self.rate[rank] * (wall - self.middle)
        moments: Numbers = wall - np.rint(shift).astype(np.int64)
        return moments

    def to_dict(self, most: int = 20) -> dict[str, Any]:
        """The clocks for JSON: hosts with the largest offsets first."""
        names, first = np.unique(np.array(self.clock_names), return_index=True)
        order = np.lexsort((names, -np.abs(self.offset_ns[first])))
        known = self.error_ns[np.isfinite(self.error_ns)]
        return {
            "connected": self.connected,
            "parts": int(self.part.max(initial=0)) + 1,
            "clocks_in_all": len(names),
            "collectives": self.collectives,
            "jitter_ns": round(self.jitter_ns),
            "error_ns": round(float(known.max())) if len(known) else None,
            "largest": [
                {
                    "clock": str(names[at]),
                    "part": int(self.part[first[at]]),
                    "offset_ns": round(float(self.offset_ns[first[at]])),
                    "rate_ppm": round(float(self.rate[first[at]]) * 1e6, 3),
                    "error_ns": round(float(self.error_ns[first[at]])) if np.isfinite(self.error_ns[first[at]]) else None,
                }
                for at in order[:most].tolist()
            ],
            "contradictions": [vars(one) for one in self.contradictions[:most]],
            "contradictions_in_all": len(self.contradictions),
        }


def solve_clocks(job: Job, instances: Instances) -> Clocks:
    """The clocks of a job."""
    names = [host or f"rank {rank}" for host, rank in zip(job.hosts, job.ranks.tolist(), strict=True)]
    contradictions: list[Contradiction] = []
    clocks = _solve(job, instances, names, contradictions)
    suspects = _contradictions(job, instances, clocks)
    if suspects:
        alone = {one.rank for one in suspects}
        names = [f"rank {rank}" if rank in alone else name for name, rank in zip(names, job.ranks.tolist(), strict=True)]
        clocks = _solve(job, instances, names, suspects)
    return clocks


def _wall_ends(job: Job, instances: Instances) -> Numbers:
    messages, rows = job.messages, instances.rows
    ends: Numbers = messages.start[rows] + messages.length[rows] + job.to_wall[messages.rank[rows]]
    return ends


def _solve(job: Job, instances: Instances, names: list[str], contradictions: list[Contradiction]) -> Clocks:
    clock_names, clock_of = np.unique(np.array(names), return_inverse=True)
    clock_of = clock_of.reshape(-1)
    # Clocks in the order of their first rank, so that the first is the reference.
    first_rank = np.full(len(clock_names), len(names))
    np.minimum.at(first_rank, clock_of, np.arange(len(names)))
    place = np.empty(len(clock_names), np.int64)
    place[np.argsort(first_rank, kind="stable")] = np.arange(len(clock_names))
    clock_of = place[clock_of]
    count = len(clock_names)
    ends, middle = _ends(job, instances)
    span = float(max(int(np.abs(ends).max(initial=0)), 1))
    observed = _observations(job, instances, clock_of, ends, count)
    part = _parts(observed, count)
    solution, covariance, jitter = _least_squares(observed, count, span, part)
    offset, rate = solution[:count], solution[count:] / span
    error = _errors(covariance)
    return Clocks(
        part=part[clock_of],
        offset_ns=offset[clock_of],
        rate=rate[clock_of],
        error_ns=_COVERAGE * error[clock_of],
        middle=middle,
        jitter_ns=jitter,
        collectives=len(np.unique(observed.instance)),
        contradictions=contradictions,
        clock_names=names,
    )


@dataclass
class _Observed:
    """Ends by instance and clock, sorted by instance; `end` counts from the middle of the recording. precision: of a median."""

    instance: Numbers
    clock: Numbers
    end: Floats
    precision: Floats

    def chosen(self, rows: NDArray[np.bool_]) -> _Observed:
        """Some of them."""
        return _Observed(self.instance[rows], self.clock[rows], self.end[rows], self.precision[rows])


def _ends(job: Job, instances: Instances) -> tuple[Numbers, int]:
    """The ends of all instances' rows from the middle of the recording, and that middle."""
    ends = _wall_ends(job, instances)
    if not len(ends):
        return ends, 0
    middle = int((int(ends.min()) + int(ends.max())) // 2)
    ends -= middle
    return ends, middle


def _observations(job: Job, instances: Instances, clock_of: Numbers, ends: Numbers, count: int) -> _Observed:
    """One end for each instance and clock: the median of the clock's ranks. Only instances of several clocks tell anything."""
    chosen = np.flatnonzero(instances.synchronous[instances.number]) if len(instances) else np.empty(0, np.int64)
    if not len(chosen):
        return _Observed(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    key = instances.number[chosen] * count + clock_of[job.messages.rank[instances.rows[chosen]]]
    key, ordered = sorted_within(key, ends[chosen])
    first = run_starts(key)
    number = np.diff(np.append(first, len(key)))
    end = (ordered[first + (number - 1) // 2] + ordered[first + number // 2]) / 2
    instance, clock = key[first] // count, key[first] % count
    several = np.bincount(instance, minlength=len(instances)) > 1
    precision = np.maximum(number / _MEDIAN, 1.0)
    observed = _Observed(instance, clock, end, precision).chosen(several[instance])
    if len(observed.end) > _MOST_OBSERVATIONS:
        # Instances are sorted by group, then by number: a stride leaves every group its share, evenly over the recording.
        numbers = np.unique(observed.instance)
        stride = -(-len(observed.end) // _MOST_OBSERVATIONS)
        observed = observed.chosen(np.isin(observed.instance, numbers[::stride]))
    return observed


def _parts(observed: _Observed, count: int) -> Numbers:
    """The part of each clock: clocks that a chain of instances connects have the same. Numbered by their first clock."""
    label = np.arange(count)
    if len(observed.instance):
        first = np.flatnonzero(np.append(True, np.diff(observed.instance) != 0))
        size = np.diff(np.append(first, len(observed.instance)))
        while True:
            before = label.copy()
            least = np.minimum.reduceat(label[observed.clock], first)
            np.minimum.at(label, observed.clock, np.repeat(least, size))
            label = np.minimum(label, label[label])
            if (label == before).all():
                break
    return np.unique(label, return_inverse=True)[1].reshape(-1)


def _least_squares(observed: _Observed, count: int, span: float, part: Numbers) -> tuple[Floats, Floats, float]:
    """Offsets and rates (times span) of all clocks, their variances and covariance (rows), and the deviation of an end.

    The first clock of each part is the reference: it has neither, and all others are relative to it.
    """
    prior = np.concatenate([np.full(count, _PRIOR_OFFSET_NS**-2), np.full(count, (_PRIOR_RATE * span) ** -2)])
    solution, covariance = np.zeros(2 * count), np.zeros((3, count))
    free = np.ones(count, np.bool_)
    free[np.unique(part, return_index=True)[1]] = False
    unknown = np.flatnonzero(np.concatenate([free, free]))
    if not len(observed.end) or not len(unknown):
        return solution, covariance, 0.0
    compact = np.unique(observed.instance, return_inverse=True)[1].reshape(-1)
    first = np.flatnonzero(np.append(True, np.diff(compact) != 0))
    size = np.diff(np.append(first, len(compact)))
    x = observed.end / span
    weight = observed.precision.copy()
    sigma = 1.0
    for _ in range(_ROUNDS):
        system = _System(observed, x, weight, first, compact, count, prior * sigma**2, np.concatenate([free, free]))
        if not system.solve(solution):
            solution[unknown] = np.linalg.solve(_matrix(system, size, unknown), system.right[unknown])
        modeled = observed.end - solution[observed.clock] - solution[count + observed.clock] * x
        residual = modeled - (np.add.reduceat(weight * modeled, first) / np.add.reduceat(weight, first))[compact]
        # A residual is what is left after an instance's mean is taken away.
        residual *= np.sqrt(observed.precision * (size / np.maximum(size - 1, 1))[compact])
        sigma = max(_TO_SIGMA * float(np.median(np.abs(residual))), 1.0)
        huber = np.minimum(1.0, _HUBER * sigma / np.maximum(np.abs(residual), 1e-9))
        weight = observed.precision * huber
    freedom = max(len(x) - len(first) - 2 * (count - 1), 1)
    variance = float((huber * residual**2).sum() / freedom) * len(x) / max(float(huber.sum()), 1.0)
    variance = max(variance, sigma**2)
    for values, found in zip(covariance, _inverse_diagonals(_matrix(system, size, unknown)), strict=True):
        values[free] = found * variance
    return solution, covariance, float(np.sqrt(variance))


class _System:
    """The normal equations with the moments of instances eliminated, without a matrix: their product with a vector."""

    def __init__(
        self,
        observed: _Observed,
        x: Floats,
        weight: Floats,
        first: Numbers,
        compact: Numbers,
        count: int,
        prior: Floats,
        free: NDArray[np.bool_],
    ) -> None:
        self.clock, self.x, self.weight, self.first, self.compact = observed.clock, x, weight, first, compact
        self.count, self.prior, self._free = count, prior, free
        self.total = np.add.reduceat(weight, first)
        self.right = self._sums(self._without_means(observed.end))

    def _without_means(self, values: Floats) -> Floats:
        means = np.add.reduceat(self.weight * values, self.first) / self.total
        centered: Floats = self.weight * (values - means[self.compact])
        return centered

    def _sums(self, values: Floats) -> Floats:
        return np.concatenate(
            [np.bincount(self.clock, values, self.count), np.bincount(self.clock, values * self.x, self.count)]
        )

    def product(self, vector: Floats) -> Floats:
        """The matrix times a vector that is zero for the references."""
        values = vector[self.clock] + vector[self.count + self.clock] * self.x
        product: Floats = np.where(self._free, self._sums(self._without_means(values)) + self.prior * vector, 0.0)
        return product

    def solve(self, solution: Floats) -> bool:
        """Improve a solution by conjugate gradients, with each clock's own two equations solved; False: it takes too long."""
        solve_own = self._own_inverse()
        right = np.where(self._free, self.right, 0.0)
        enough = _TOLERANCE * float(np.sqrt(right @ solve_own(right)))
        found = solution.copy()
        residual = right - self.product(found)
        step = solve_own(residual)
        direction, size = step, float(residual @ step)
        for _ in range(_MOST_ITERATIONS):
            if size <= enough**2:
                solution[:] = found
                return True
            product = self.product(direction)
            length = size / float(direction @ product)
            found += length * direction
            residual -= length * product
            step = solve_own(residual)
            before, size = size, float(residual @ step)
            direction = step + size / before * direction
        return False

    def _own_inverse(self) -> Callable[[Floats], Floats]:
        """Solves the equations of each clock as if the others were known."""
        count, clock = self.count, self.clock
        own = self.weight * (1 - self.weight / self.total[self.compact])
        a, b, d = (np.bincount(clock, values, count).astype(np.float64) for values in (own, own * self.x, own * self.x**2))
        a, d = a + self.prior[:count], d + self.prior[count:]
        determinant = a * d - b * b

        def solve_own(vector: Floats) -> Floats:
            offset, rate = vector[:count], vector[count:]
            solved: Floats = np.concatenate([d * offset - b * rate, a * rate - b * offset]) / np.tile(determinant, 2)
            return solved

        return solve_own


def _matrix(system: _System, size: Numbers, unknown: Numbers) -> Floats:
    """The matrix of the equations of some unknowns."""
    clock, x, weight, count = system.clock, system.x, system.weight, system.count
    first, compact, total = system.first, system.compact, system.total
    matrix = np.zeros((2 * count, 2 * count))
    for rows, values in ((clock, weight), (clock + count, weight * x)):
        for columns, factor in ((clock, 1.0), (clock + count, x)):
            np.add.at(matrix, (rows, columns), values * factor)
    u, v = weight, weight * x
    few = size <= _DENSE
    for length in np.unique(size[few]).tolist():
        start = first[size == length]
        at = start[:, None] + np.arange(length)
        _subtract_pairs(matrix, clock[at], u[at], v[at], total[compact[start]], count)
    for begin, length in zip(first[~few].tolist(), size[~few].tolist(), strict=True):
        part = slice(begin, begin + length)
        own = np.concatenate([clock[part], clock[part] + count])
        vector = np.concatenate([u[part], v[part]])
        matrix[np.ix_(own, own)] -= np.outer(vector, vector / total[compact[begin]])
    matrix[np.diag_indices(len(matrix))] += system.prior
    wanted: Floats = matrix[np.ix_(unknown, unknown)]
    return wanted


def _subtract_pairs(matrix: Floats, clock: Numbers, u: Floats, v: Floats, total: Floats, count: int) -> None:
    """Subtract the products of each instance's own sums; all instances here have the same number of clocks."""
    own = np.concatenate([clock, clock + count], axis=1)
    vector = np.concatenate([u, v], axis=1)
    share = vector / total[:, None]
    flat = matrix.reshape(-1)
    step = max(_PRODUCTS // own.shape[1] ** 2, 1)
    for begin in range(0, len(own), step):
        part = slice(begin, begin + step)
        places = own[part, :, None] * (2 * count) + own[part, None, :]
        np.subtract.at(flat, places.ravel(), (vector[part, :, None] * share[part, None, :]).ravel())


def _inverse_diagonals(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Of the inverse of [[A, B], [B', D]]: the diagonals of its first, last and upper right block.

    By blocks, which takes half the time of the whole inverse: the last is that of D - B'A⁻¹B.
    """
    half = len(matrix) // 2
    first = np.linalg.inv(matrix[:half, :half])
    between = first @ matrix[:half, half:]
    last = np.linalg.inv(matrix[half:, half:] - matrix[half:, :half] @ between)
    upper = between @ last
    return np.diagonal(first) + np.einsum("ij,ij->i", upper, between), np.diagonal(last), -np.diagonal(upper)


def _errors(covariance: Floats) -> Floats:
    """The standard error of each clock against the reference, at the worst moment of the recording."""
    offsets, rates, between = covariance
    errors: Floats = np.sqrt(np.maximum(offsets + 2 * np.abs(between) + rates, 0))
    return errors


def _contradictions(job: Job, instances: Instances, clocks: Clocks) -> list[Contradiction]:
    """Ranks whose ends are apart from those of their host's other ranks, time after time."""
    chosen = np.flatnonzero(instances.synchronous[instances.number]) if len(instances) else np.empty(0, np.int64)
    if not len(chosen):
        return []
    rank = job.messages.rank[instances.rows[chosen]].astype(np.int64)
    wall = _wall_ends(job, instances)[chosen]
    aligned = wall - np.rint(clocks.offset_ns[rank] + clocks.rate[rank] * (wall - clocks.middle)).astype(np.int64)
    number = instances.number[chosen]  # in order, so that only ends within an instance are to be sorted
    _, ordered = sorted_within(number, aligned)
    first = run_starts(number)
    size = np.diff(np.append(first, len(number)))
    residual = aligned - np.repeat(ordered[first + size // 2], size)
    del aligned, ordered, wall, number
    noise = max(_TO_SIGMA * float(np.median(np.abs(residual))), 1.0)
    rank, residual = sorted_within(rank, residual)
    begin = run_starts(rank)
    count = np.diff(np.append(begin, len(rank)))
    medians = residual[begin + count // 2]
    shared = np.unique(np.array(clocks.clock_names), return_inverse=True)[1].reshape(-1)
    several = np.bincount(shared)[shared] > 1
    far = np.abs(medians) > max(_CONTRADICTION_NS, _CONTRADICTION_SIGMAS * noise)
    return [
        Contradiction(int(job.ranks[at]), job.hosts[at], round(float(median)), int(ends))
        for at, median, ends in zip(rank[begin][far].tolist(), medians[far], count[far], strict=True)
        if several[at] and ends >= _FEWEST_ENDS
    ]
