"""What recording itself cost, as a figure and as a range, and times without that cost.

Where a schedule leaves steps of the program unrecorded, the cost is measured: how much longer recorded steps took. Elsewhere it
is estimated: what the recording consists of, times what that costs on this machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..config import UNRECORDED_STEPS
from ..store import tree
from ..store.store import EventStore
from . import steps
from .findings import duration
from .recording_costs import hidden_calls, units

Floats = NDArray[np.float64]

# Recording an event takes longer the more has run since the last one of the same name: what it needs has left the caches, and
# the processor no longer foresees its branches. Up to the first period nothing is lost, from the second on everything.
WARM_NS, COLD_NS = 1.5e3, 50e3
# The range. How cold the caches were is known this well (1: not at all) and, apart from that, what an event cost within this
# factor: ops differ in their arguments, programs in what they call, and a machine in its speed from one second to the next.
# benchmarks/overhead_truth.py measures how often the truth lies in it.
_COLDNESS_ERROR = 0.3
_COST_FACTOR = 1.5
# Fewer steps without recording tell too little of how long one takes.
_FEWEST_STEPS = 3
# By how much of its time a step of the same work may differ between one part of a run and another, as the machine's speed does.
_DRIFT = 0.02

# What is said in table, report and `mtprof run` above that.
LARGE = (
    "The program took more than twice as long as without recording: record less, or look at times without its cost "
    "(mtprof table --corrected)"
)


class Calibration(NamedTuple):
    """Nanoseconds that recording adds, by the units of `recording_costs`.

    `inside` is the part of an event's cost between its own clock readings, `memory` that of an allocation or free. `cold` is
    the factor for an event whose like ran long ago, `spread` that between a typical measurement and a good or bad one.
    Negative: as `op` or `python`, not measured. Files of earlier versions have the first four.
    """

    op: float
    scope: float
    python: float
    inside: float
    memory: float = 0.0
    engine: float = 0.0
    module: float = 0.0
    nested: float = -1.0
    builtin: float = -1.0
    method: float = -1.0
    first: float = 0.0
    argument: float = 0.0
    numbers: float = 0.0
    inputs: float = 0.0
    inputs_argument: float = 0.0
    noted: float = 0.0
    listed: float = 0.0
    tensor: float = 0.0
    cold: float = 1.0
    spread: float = 2.0

    def of(self, unit: str) -> float:
        """The cost of a unit, or of what it stands in for."""
        cost: float = getattr(self, unit)
        return cost if cost >= 0 else self.op if unit == "nested" else self.python


@dataclass(frozen=True)
class Overhead:
    """The recorder's share of a recording.

    The true cost is the time of the program recorded less that of the program not recorded. low_ns to high_ns is meant to
    contain it in 19 of 20 recordings (benchmarks/overhead_truth.py measures how often it does); total_ns is the likeliest.
    `measured_on` is the number of steps without recording that recorded ones were compared with, 0 where the cost is estimated
    as events times the cost of one. duration_ns and self_ns are the recording's columns without the cost of the events in
    them, and without the compilation of ops at their first use.
    """

    calibration: Calibration
    events: int
    total_ns: int
    low_ns: int
    high_ns: int
    covered_ns: int
    duration_ns: NDArray[np.int64]
    self_ns: NDArray[np.int64]
    measured_on: int = 0

    @property
    def share(self) -> float:
        """The part of the covered time that was spent on recording, at most 1."""
        return min(1.0, self.total_ns / self.covered_ns) if self.covered_ns else 0.0

    @property
    def per_event_ns(self) -> float:
        """Nanoseconds per event, on average."""
        return self.total_ns / self.events if self.events else 0.0

    @property
    def is_large(self) -> bool:
        """Whether the recorded program took more than twice as long as it would have without recording."""
        return self.share > 0.5

    def __str__(self) -> str:
        text = (
            f"Profiler overhead: about {duration(self.total_ns)} ({duration(self.low_ns)} to {duration(self.high_ns)}) in "
            f"{self.events:,} events ({self.per_event_ns:.0f} ns each), {self.share:.1%} of the recorded time"
        )
        if self.measured_on:
            text += f", measured against {self.measured_on} steps without recording"
        return f"{text}. {LARGE}" if self.is_large else text


def calibration_of(store: EventStore) -> Calibration | None:
    """The calibration that a recording was saved with; None if it has none."""
    known = store.options.get("calibration")
    if not isinstance(known, Mapping):
        return None
    required = set(Calibration._fields) - set(Calibration._field_defaults)
    if not required <= set(known) <= set(Calibration._fields):
        return None
    return Calibration(**{name: float(value) for name, value in known.items()})


class _Cost(NamedTuple):
    """Nanoseconds: the likeliest and the range."""

    likely: float
    low: float
    high: float


def estimate(store: EventStore, calibration: Calibration) -> Overhead:
    """The overhead in a recording whose events cost what the calibration says, or what unrecorded steps say."""
    warm = _warm_costs(store, calibration)
    cold = _coldness(store)
    factor = _COST_FACTOR * max(1.0, calibration.spread)
    cost = _Cost(
        _total(store, calibration, warm, cold),
        _total(store, calibration, warm, np.maximum(cold - _COLDNESS_ERROR, 0.0)) / factor,
        _total(store, calibration, warm, np.minimum(cold + _COLDNESS_ERROR, 1.0)) * factor,
    )
    measured, measured_on, scale = measure(store), 0, 1.0
    if measured is not None and measured.likely > 0 and _is_better(measured, cost):
        # Shared out over events as the estimate has it.
        scale, measured_on = measured.likely / _total(store, calibration, warm, np.zeros(len(store))), len(unrecorded(store))
        cost = measured
    duration_ns, self_ns = _corrected(store, calibration, warm, scale)
    roots = (store.parent < 0) & (store.device_type == 0)
    return Overhead(
        calibration,
        int((warm > 0).sum()),
        round(cost.likely),
        round(cost.low),
        round(cost.high),
        int(store.duration[roots].sum()),
        duration_ns,
        self_ns,
        measured_on,
    )


def _is_better(measured: _Cost, estimated: _Cost) -> bool:
    """Whether a measured cost is known more exactly than an estimate, and goes with it.

    Where the two cannot both be right, the machine or the program was slower in one part of the steps than in the other.
    """
    is_narrower = measured.high - measured.low < estimated.high - estimated.low
    return is_narrower and measured.low <= estimated.high and estimated.low <= measured.high


def unrecorded(store: EventStore) -> list[int]:
    """Nanoseconds of each step that ran before the recording without being recorded, as far as they were noted."""
    return list(store.options.get(UNRECORDED_STEPS, ()))


def measure(store: EventStore) -> _Cost | None:
    """How much longer the recorded steps took than unrecorded ones; None where there are too few of either.

    The first recorded step, in which much is done for the first time, counts for itself, the others by their median.
    """
    without, recorded = unrecorded(store), steps.marked_steps(store)
    if len(without) < _FEWEST_STEPS or recorded is None:
        return None
    first, *others = recorded.duration.tolist()
    step, rest = _median(without), _median(others or [first])

    def added(rest: float, step: float) -> float:
        total: float = first - step + (rest - step) * len(others)
        return total

    drift = _DRIFT * step.likely * (1 + len(others))
    low, high = added(rest.low, step.high) - drift, added(rest.high, step.low) + drift
    return _Cost(added(rest.likely, step.likely), max(low, 0.0), high)


def _median(values: list[int]) -> _Cost:
    """The median and, by the ranks of the values, an interval that has that of all such values in 19 of 20 cases."""
    ranked = sorted(values)
    middle, reach = len(ranked) // 2, math.ceil(0.98 * math.sqrt(len(ranked)))
    low, high = ranked[max(middle - reach, 0)], ranked[min(middle + reach, len(ranked) - 1)]
    return _Cost(float(np.median(ranked)), low, high)


def _total(store: EventStore, calibration: Calibration, warm: Floats, cold: Floats) -> float:
    """What recording all rows cost, and what is not in their costs: allocations and frees, calls without a row."""
    factor = calibration.cold**cold
    mean = float(factor[warm > 0].mean()) if (warm > 0).any() else 1.0
    between = calibration.memory * len(store.mem_time) + calibration.python * hidden_calls(store)
    return float((warm * factor).sum()) + between * mean


def _corrected(
    store: EventStore, calibration: Calibration, warm: Floats, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Durations and self times without first uses and the cost of the events in them.

    Where that is estimated, it is the least that they cost: too little is taken away, rather than work.
    """
    cost = np.rint(warm * scale).astype(np.int64)
    each = np.full(len(store.mem_time), round(calibration.memory * scale), np.int64)
    between = tree.sums(store.mem_event, each, len(store)) + np.where(store.is_first_use, store.self_ns, 0)
    inside = np.minimum(cost, round(calibration.inside)) + between
    # A row's duration includes the whole cost of every event below it, and the inside part of its own.
    below = tree.subtree_sums(store.parent, cost + between) - cost - between
    corrected = np.maximum(store.duration - below - inside, 0)
    children = tree.children_sums(store.parent, corrected)
    return corrected, np.maximum(corrected - children, 0)


def _warm_costs(store: EventStore, calibration: Calibration) -> Floats:
    """What recording each row costs while all it needs is in the caches."""
    cost = np.zeros(len(store))
    for unit, counts in units(store).items():
        if calibration.of(unit):
            cost += calibration.of(unit) * counts
    return cost


def _coldness(store: EventStore) -> Floats:
    """From 0 to 1 by how long before each event the last one of the same name began on its thread; 1 where there was none.

    Python calls, whatever their names, are recorded by the same code.
    """
    name = np.where(store.kind == observer.PYTHON, -1, store.name)
    order = np.lexsort((store.start, name, store.kind, store.tid))
    group = np.stack([column[order] for column in (store.tid, store.kind, name)])
    period = np.full(len(store), COLD_NS)
    follows = np.append(False, (group[:, 1:] == group[:, :-1]).all(0)) if len(store) else np.zeros(0, np.bool_)
    period[follows] = np.diff(store.start[order], prepend=0)[follows]
    cold = np.empty(len(store))
    cold[order] = np.log(np.maximum(period, 1) / WARM_NS) / np.log(COLD_NS / WARM_NS)
    return np.clip(cold, 0.0, 1.0)
