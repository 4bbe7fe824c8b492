"""Compares recordings by the time of ops per step: faster, slower, or no evidence of a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._io.terminal import cut, padded, width
from ...store.store import EventStore
from ..findings import duration, relative_change, relative_changes
from ..memory.diff import MemoryChange, memory_changes
from ..steps import per_step, time_between_events, training_steps
from .evidence import Evidence, balanced, from_recordings, from_steps, of_whole_step, typical
from .keys import WorkKey, work_keys

Verdict = Literal["faster", "slower", "no evidence", "new", "gone"]

Recordings = EventStore | Sequence[EventStore]

BETWEEN_EVENTS = WorkKey("(between events)", "", "", 0)  # a step's time in Python, in calls that are no ops, in waiting
FEWEST_STEPS = 5  # in each recording
_KNOWN_BY: dict[str, Callable[[EventStore], NDArray[np.int32]]] = {
    "shapes": lambda store: store.shapes,
    "modules": lambda store: store.module,
}
_SEED = 20240229  # the same files give the same result


@dataclass(frozen=True)
class Change:
    """One kind of work in both recordings: its typical time per step in nanoseconds and calls per step.

    `relative` is the ratio b/a divided by that of all ops (Diff.drift); low and high are its confidence interval, which
    decides the verdict.
    """

    key: WorkKey
    a_ns: float
    b_ns: float
    a_count: float
    b_count: float
    relative: float
    low: float
    high: float
    verdict: Verdict

    @property
    def ratio(self) -> float:
        """b / a as measured."""
        return self.b_ns / self.a_ns if self.a_ns else float("inf")

    @property
    def moved(self) -> str:
        """The relative change as text, to which the interval belongs; "" for what is new or gone."""
        return "" if self.verdict in ("new", "gone") else self._texts[0]

    @property
    def interval(self) -> str:
        """The interval as text, "unknown" if there is none."""
        return " to ".join(self._texts[1:]) or "unknown"

    @property
    def _texts(self) -> tuple[str, ...]:
        """The relative change and the ends of its interval, if it has one."""
        bounds = (self.low, self.high) if 0 < self.low <= self.high < float("inf") else ()
        return relative_changes(self.relative if self.a_ns else self.ratio, *bounds)


@dataclass(frozen=True)
class Diff:
    """All changes, the largest effect on a step first, and the step as a whole."""

    step: Change
    changes: Sequence[Change]
    drift: float
    a_steps: int
    b_steps: int
    confidence: float
    least: float
    recordings: tuple[int, int] = (1, 1)
    enough: bool = True  # whether every recording has enough steps for a verdict
    ignored: tuple[str, ...] = ()  # shapes or modules, if only some recordings have them
    memory: tuple[MemoryChange, ...] = ()  # empty unless all recordings have memory
    by_optimizer: bool = False  # whether steps are those from one step of an optimizer to the next, since nothing marks them

    @property
    def found(self) -> list[Change]:
        """The changes that there is evidence for."""
        return [change for change in self.changes if change.verdict != "no evidence"]

    @property
    def listed(self) -> list[Change]:
        """The changes to show: those with evidence, and of too few steps for any what differs by more than `least`."""
        if self.enough:
            return self.found
        most = np.log1p(self.least)
        return [change for change in self.changes if not change.moved or abs(np.log(change.relative)) > most]

    @property
    def of_recordings(self) -> str:
        """The text " of N and M recordings", or "" if there is one of each."""
        return "" if self.recordings == (1, 1) else f" of {self.recordings[0]} and {self.recordings[1]} recordings"

    @property
    def kind_of_steps(self) -> str:
        """A text that says what the steps are, where nothing marks them; else ""."""
        return ", from one step of an optimizer to the next" if self.by_optimizer else ""

    @property
    def taken_out(self) -> str:
        """What the changes of ops are told without: what moved all of them."""
        return f"all ops together moved by {relative_change(self.drift)}, which is taken out"

    @property
    def notes(self) -> list[str]:
        """Limits of the comparison that a reader of the figures must know."""
        text = (
            f"too few steps for any verdict: at least {FEWEST_STEPS} are needed in each recording, marked by profile.step(), "
            "as by mtprof run --schedule 2,2,10,1, or else those of an optimizer; what differs is listed as measured"
        )
        few = [] if self.enough else [text]
        moved = (
            [
                "with one recording on each side, what moved all ops may be the machine as well as the code: record several of "
                "each in turns"
            ]
            if self.enough and self.recordings == (1, 1) and abs(np.log(self.drift)) > np.log(1 + self.least)
            else []
        )
        return [*few, *moved] + [f"not every recording has {what}: ops are compared without" for what in self.ignored]

    def slower_by(self, change: Change, limit: float) -> bool:
        """Whether there is evidence for a slowdown, and it is more than `limit`, a part of the time; `least` does not count."""
        return self.enough and change.low > 1 and change.relative > 1 + limit

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values, for JSON."""
        return {
            "steps": {"a": self.a_steps, "b": self.b_steps},
            "recordings": {"a": self.recordings[0], "b": self.recordings[1]},
            "enough_steps": self.enough,
            "steps_by_optimizer": self.by_optimizer,
            "confidence": self.confidence,
            "drift": self.drift,
            "step": _plain(self.step),
            "changes": [_plain(change) for change in self.changes],
            "memory": [change.to_dict() for change in self.memory],
        }

    def __str__(self) -> str:
        return self.table()

    def table(self, limit: int = 20) -> str:
        """The step as a whole and what changed, as text: the largest `limit` changes, all of them if it is negative."""
        lines = [
            f"step: {duration(self.step.a_ns)} -> {duration(self.step.b_ns)}  ({self.step.moved}, "
            f"{self.confidence:.0%} interval {self.step.interval}): {self.step.verdict}",
            f"steps compared: {self.a_steps} and {self.b_steps}{self.of_recordings}{self.kind_of_steps}; "
            f"{self.taken_out} below",
        ]
        lines += [*map(str, self.memory), *self.notes]
        changes = self.listed
        if not changes:
            lines += ["no op changed by more than can be told from noise"] if self.enough else []
            return "\n".join(lines)
        rows = changes if limit < 0 else changes[:limit]
        names = [str(change.key) for change in rows]
        columns = min(60, max(map(width, names), default=0))
        lines.append(f"{'':{columns}}  {'a / step':>10}  {'b / step':>10}  {'change':>8}  {'interval':>18}  verdict")
        for change, text in zip(rows, names, strict=True):
            name = padded(text if width(text) <= columns else cut(text, columns - 3) + "...", columns, left=True)
            interval = change.interval if change.moved else ""
            lines.append(
                f"{name}  {duration(change.a_ns):>10}  {duration(change.b_ns):>10}  {change.moved:>8}  {interval:>18}  "
                f"{change.verdict}"
            )
        if len(changes) > len(rows):
            lines.append(f"... and {len(changes) - len(rows)} more")
        return "\n".join(lines)


def diff(a: Recordings, b: Recordings, *, confidence: float = 0.99, least: float = 0.05) -> Diff:
    """Compare the self times per step of two recordings, or of several on each side.

    `confidence` holds for all ops together (each interval is widened for their number); changes smaller than `least`
    (a part of the op's time) are never called a change.
    """
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence}")
    if least < 0:
        raise ValueError(f"least must not be negative, got {least}")
    sides = [[side] if isinstance(side, EventStore) else list(side) for side in (a, b)]
    counts = (len(sides[0]), len(sides[1]))
    if counts != (1, 1) and min(counts) < 2:
        raise ValueError(f"one recording on each side, or at least two on each, got {counts[0]} and {counts[1]}")
    stores = [*sides[0], *sides[1]]
    # Where one recording lacks shapes or modules, its keys would match none of the others'.
    known = {what: all((column(store) >= 0).any() for store in stores) for what, column in _KNOWN_BY.items()}
    ignored = [what for what, column in _KNOWN_BY.items() if not known[what] and any((column(s) >= 0).any() for s in stores)]
    keys, all_times, all_calls = _aligned(stores, known)
    found = [training_steps(store) for store in stores]
    all_steps = [which.duration for which in found]
    enough = min(len(durations) for durations in all_steps) >= FEWEST_STEPS
    figures = _figures(all_times, all_calls, counts[0])
    rng = np.random.default_rng(_SEED)
    evidence = _evidence(all_times, figures, counts, rng, confidence)
    if not enough:
        evidence = evidence._replace(low=np.zeros(len(keys)), high=np.full(len(keys), np.inf))
    single = counts == (1, 1)
    changes = [
        _change(key, number, figures, evidence, _op_verdict(number, figures, evidence, least, enough, single))
        for number, key in enumerate(keys)
        if figures.timed[number]
    ]
    whole = _whole(all_steps, counts[0], rng, confidence, least, enough, evidence)
    between = [time_between_events(store, which) for store, which in zip(stores, found, strict=True)]
    if all(typical(times[None])[0] > 0 for times in between):
        changes.append(_beside_ops(_whole(between, counts[0], rng, confidence, least, enough, evidence), evidence.drift, least))
    changes.sort(key=lambda change: -abs(change.b_ns / evidence.drift - change.a_ns))
    a_steps, b_steps = (sum(map(len, side)) for side in (all_steps[: counts[0]], all_steps[counts[0] :]))
    memory = tuple(memory_changes(*sides))
    by_optimizer = any(which.by_optimizer for which in found)
    return Diff(
        whole,
        changes,
        evidence.drift,
        a_steps,
        b_steps,
        confidence,
        least,
        counts,
        enough,
        tuple(ignored),
        memory,
        by_optimizer,
    )


class _Figures(NamedTuple):
    """Typical times and calls of a step on both sides, one entry per key."""

    a_ns: NDArray[np.float64]
    b_ns: NDArray[np.float64]
    a_calls: NDArray[np.float64]
    b_calls: NDArray[np.float64]
    in_a: NDArray[np.bool_]  # whether any recording of the side has a call of it
    in_b: NDArray[np.bool_]
    timed: NDArray[np.bool_]  # whether its typical time is above 0 in some recording, or in all of them
    timed_in_all: NDArray[np.bool_]


def _figures(all_times: Sequence[NDArray[np.int64]], all_calls: Sequence[NDArray[np.int64]], a_count: int) -> _Figures:
    # One line per recording, one column per key.
    times, calls = (np.array([typical(table) for table in tables]) for tables in (all_times, all_calls))
    called = np.array([table.sum(axis=1) > 0 for table in all_calls])
    a_ns, b_ns, a_calls, b_calls = (_middle(side) for table in (times, calls) for side in np.split(table, [a_count]))
    in_a, in_b = np.any(called[:a_count], axis=0), np.any(called[a_count:], axis=0)
    return _Figures(a_ns, b_ns, a_calls, b_calls, in_a, in_b, np.any(times > 0, axis=0), np.all(times > 0, axis=0))


def _evidence(
    all_times: Sequence[NDArray[np.int64]],
    figures: _Figures,
    counts: tuple[int, int],
    rng: np.random.Generator,
    confidence: float,
) -> Evidence:
    selected = figures.timed_in_all & _worth_it(figures.a_ns, figures.b_ns)
    if counts == (1, 1):
        return from_steps(all_times[0], all_times[1], selected, figures.timed_in_all, rng, confidence)
    even = np.array([balanced(times, selected) for times in all_times])
    selected &= np.all(even > 0, axis=0)
    return from_recordings(even[: counts[0]], even[counts[0] :], selected, confidence)


def _change(key: WorkKey, number: int, figures: _Figures, evidence: Evidence, verdict: Verdict) -> Change:
    return Change(
        key,
        float(figures.a_ns[number]),
        float(figures.b_ns[number]),
        float(figures.a_calls[number]),
        float(figures.b_calls[number]),
        float(evidence.ratio[number]),
        float(evidence.low[number]),
        float(evidence.high[number]),
        verdict,
    )


def _op_verdict(number: int, figures: _Figures, evidence: Evidence, least: float, enough: bool, single: bool) -> Verdict:
    """The verdict on a key; `single`: from one recording on each side."""
    if not (figures.in_a[number] and figures.in_b[number]):
        return "new" if figures.in_b[number] else "gone"
    sure = enough and bool(figures.timed_in_all[number])
    ratio, low, high = (float(column[number]) for column in (evidence.ratio, evidence.low, evidence.high))
    verdict = _verdict(ratio, (low, high), least, sure)
    # The interval of a single recording holds with the drift and without it, and so must the size of the change.
    if single and verdict != _verdict(ratio * evidence.drift, (low, high), least, sure):
        return "no evidence"
    return verdict


def _aligned(
    stores: Sequence[EventStore], known: dict[str, bool]
) -> tuple[list[WorkKey], list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """The keys of all recordings; of each its times and its calls: one line per key, one column per step."""
    keyed = [work_keys(store, **known) for store in stores]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(key for keys, _ in keyed for key in keys))}
    times, calls = [], []
    for store, (keys, rows) in zip(stores, keyed, strict=True):
        group = np.array([*(numbers[key] for key in keys), -1], np.int64)[rows]
        which = training_steps(store)
        times.append(per_step(store, which, group, len(numbers), store.work_ns))
        calls.append(per_step(store, which, group, len(numbers), np.ones(len(store), np.int64)))
    return list(numbers), times, calls


def _middle(recordings: NDArray[np.float64]) -> NDArray[np.float64]:
    """The geometric mean of several recordings, one line each; 0 where one of them is 0."""
    logs = np.log(np.where(recordings > 0, recordings, 1.0))
    mean: NDArray[np.float64] = np.exp(logs.mean(axis=0)) * (recordings > 0).all(axis=0)
    return mean


def _worth_it(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether an op takes a thousandth of the step or more on either side; the times of shorter ones are mostly noise.

    Of that side's own step: where one op became so slow that all others are nothing beside it, they still tell what is usual.
    """
    large: NDArray[np.bool_] = (a >= 1e-3 * max(a.sum(), 1.0)) | (b >= 1e-3 * max(b.sum(), 1.0))
    return large


def _whole(
    all_steps: Sequence[NDArray[np.int64]],
    a_count: int,
    rng: np.random.Generator,
    confidence: float,
    least: float,
    enough: bool,
    of_ops: Evidence,
) -> Change:
    """The change of the step itself, as measured; the interval of a single recording holds with and without the drift."""
    mids = np.array([typical(durations[None]) for durations in all_steps])
    sure = enough and bool((mids > 0).all())
    of_a, of_b = (float(_middle(side)[0]) for side in np.split(mids, [a_count]))
    if not sure:
        bounds = 0.0, float("inf")
    elif len(all_steps) == 2:
        bounds = of_whole_step(all_steps[0], all_steps[1], of_ops, rng, confidence)
    else:
        across = from_recordings(mids[:a_count], mids[a_count:], np.ones(1, np.bool_), confidence)
        bounds = float(across.low[0]), float(across.high[0])
    ratio = of_b / of_a if of_a > 0 and of_b > 0 else 1.0
    verdict = _verdict(ratio, bounds, least, sure)
    return Change(WorkKey("step", "", "", 0), of_a, of_b, 1.0, 1.0, ratio, *bounds, verdict)


def _beside_ops(measured: Change, drift: float, least: float) -> Change:
    """The change of the time between events as a line beside those of ops, whose drift is divided out.

    Python slows down with the machine as ops do, and a sleep does not: there is evidence only for what holds either way.
    """
    bounds = min(measured.low, measured.low / drift), max(measured.high, measured.high / drift)
    relative = measured.ratio / drift
    with_drift, without = (_verdict(ratio, bounds, least, enough=True) for ratio in (relative, measured.ratio))
    verdict = with_drift if with_drift == without else "no evidence"
    return replace(measured, key=BETWEEN_EVENTS, relative=relative, low=bounds[0], high=bounds[1], verdict=verdict)


def _verdict(ratio: float, bounds: tuple[float, float], least: float, enough: bool) -> Verdict:
    if not enough:
        return "no evidence"
    if bounds[0] > 1 and ratio > 1 + least:
        return "slower"
    if bounds[1] < 1 and ratio < 1 / (1 + least):
        return "faster"
    return "no evidence"


def _plain(change: Change) -> dict[str, Any]:
    return {
        **change.key._asdict(),
        "a_ns": change.a_ns,
        "b_ns": change.b_ns,
        "a_count": change.a_count,
        "b_count": change.b_count,
        "ratio": change.ratio if change.a_ns else None,
        "relative": change.relative,
        "interval": [change.low, change.high if np.isfinite(change.high) else None],
        "verdict": change.verdict,
    }
