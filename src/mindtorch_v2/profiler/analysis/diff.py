"""Two recordings compared, step by step: what became faster, what slower, and of what there is no evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._store import EventStore
from .findings import duration
from .keys import WorkKey, work_keys
from .steps import per_step, steps

Verdict = Literal["faster", "slower", "no evidence", "new", "gone"]

_FEWEST_STEPS = 5
_BOOTSTRAPS = 2000
_MOST_DRAWN = 4_000_000  # steps in all bootstraps of one op: long recordings are sure of their figures with fewer
_BLOCKS = 12
# What else runs on a machine only ever makes a step slower, so the faster steps tell more of the code than the median.
_TYPICAL = 0.25
_SEED = 20240229  # the same files give the same answer


@dataclass(frozen=True)
class Change:
    """One thing in both recordings: its typical time per step in nanoseconds, the ratio b/a and its confidence interval.

    `relative` is the ratio after what the whole machine changed by (Diff.drift) has been taken out; the interval is that
    of `relative`, and the verdict rests on it.
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

    @property
    def found(self) -> list[Change]:
        """What there is evidence for."""
        return [change for change in self.changes if change.verdict != "no evidence"]

    def slower_by(self, change: Change, limit: float) -> bool:
        """Whether a change is slower by more than a part `limit` of it, beyond doubt: also by less than `least`."""
        return min(self.a_steps, self.b_steps) >= _FEWEST_STEPS and change.low > 1 and change.relative > 1 + limit

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "steps": {"a": self.a_steps, "b": self.b_steps},
            "confidence": self.confidence,
            "drift": self.drift,
            "step": _plain(self.step),
            "changes": [_plain(change) for change in self.changes],
        }

    def __str__(self) -> str:
        return self.table()

    def table(self, limit: int = 20) -> str:
        """The step as a whole and what changed, as text: the largest `limit` changes, all of them if it is negative."""
        lines = [
            f"step: {duration(self.step.a_ns)} -> {duration(self.step.b_ns)}  ({_percent(self.step.ratio)}, "
            f"{self.confidence:.0%} interval {_percent(self.step.low)} to {_percent(self.step.high)}): {self.step.verdict}",
            f"steps compared: {self.a_steps} and {self.b_steps}; "
            f"all ops together moved by {_percent(self.drift)}, which is taken out below",
        ]
        found = self.found
        if not found:
            lines.append("no op changed by more than can be told from noise")
            return "\n".join(lines)
        shown = found if limit < 0 else found[:limit]
        width = min(60, max((len(str(change.key)) for change in shown), default=0))
        lines.append(f"{'':{width}}  {'a / step':>10}  {'b / step':>10}  {'change':>8}  {'interval':>18}  verdict")
        for change in shown:
            name = str(change.key)
            name = name if len(name) <= width else name[: width - 3] + "..."
            interval = "" if change.verdict in ("new", "gone") else f"{_percent(change.low)} to {_percent(change.high)}"
            moved = "" if change.verdict in ("new", "gone") else _percent(change.relative)
            lines.append(
                f"{name:{width}}  {duration(change.a_ns):>10}  {duration(change.b_ns):>10}  {moved:>8}  {interval:>18}  "
                f"{change.verdict}"
            )
        if len(found) > len(shown):
            lines.append(f"... and {len(found) - len(shown)} more")
        return "\n".join(lines)


def diff(a: EventStore, b: EventStore, *, confidence: float = 0.99, least: float = 0.05) -> Diff:
    """Compare the self times per step of two recordings.

    `confidence` holds for all ops together (each interval is widened for their number); changes smaller than `least`
    (a part of the op's time) are never called a change.
    """
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence}")
    if least < 0:
        raise ValueError(f"least must not be negative, got {least}")
    a_steps, b_steps = steps(a), steps(b)
    keys, (a_times, a_calls, b_times, b_calls) = _aligned(a, b)
    a_counts, b_counts = _typical(a_calls), _typical(b_calls)
    rng = np.random.default_rng(_SEED)
    enough = min(len(a_steps.start), len(b_steps.start)) >= _FEWEST_STEPS
    a_mid, b_mid = _typical(a_times), _typical(b_times)
    both = (a_mid > 0) & (b_mid > 0)
    # Also what runs in so few steps that its typical time is none.
    in_a, in_b = a_calls.sum(axis=1) > 0, b_calls.sum(axis=1) > 0
    ratio = np.divide(b_mid, a_mid, out=np.ones(len(keys)), where=both)
    # The median op says how much faster or slower everything was; with few ops it could be the change itself.
    drift = float(np.median(ratio[both])) if both.sum() >= 10 else 1.0
    noisy = both & _worth_it(a_mid, b_mid)
    low, high = _intervals(a_times, b_times, noisy, rng, 1 - (1 - confidence) / max(int(noisy.sum()), 1))
    changes = []
    for number, key in enumerate(keys):
        relative = float(ratio[number] / drift)
        bounds = (float(low[number] / drift), float(high[number] / drift)) if noisy[number] else (0.0, float("inf"))
        if not a_mid[number] and not b_mid[number]:
            continue
        if in_a[number] and in_b[number]:
            # On a machine with other work not all ops drift alike: one counts as changed only if it did so as measured too.
            known = enough and bool(both[number])
            verdict = _verdict(relative, bounds, least, known)
            if verdict != _verdict(float(ratio[number]), (float(low[number]), float(high[number])), least, known):
                verdict = "no evidence"
        else:
            verdict = "new" if in_b[number] else "gone"
        changes.append(
            Change(key, float(a_mid[number]), float(b_mid[number]), float(a_counts[number]), float(b_counts[number]),
                   relative, *bounds, verdict)
        )
    changes.sort(key=lambda change: -abs(change.b_ns / drift - change.a_ns))
    whole = _whole(a_steps.duration, b_steps.duration, rng, confidence, least, enough)
    return Diff(whole, changes, drift, len(a_steps.start), len(b_steps.start), confidence, least)


def _aligned(a: EventStore, b: EventStore) -> tuple[list[WorkKey], list[NDArray[np.int64]]]:
    """The keys of both; times and calls of a, times and calls of b: one line per key, one column per step."""
    a_keys, a_rows = work_keys(a)
    b_keys, b_rows = work_keys(b)
    numbers = {key: number for number, key in enumerate(dict.fromkeys([*a_keys, *b_keys]))}
    found: list[NDArray[np.int64]] = []
    for store, keys, rows in ((a, a_keys, a_rows), (b, b_keys, b_rows)):
        moved = np.array([*(numbers[key] for key in keys), -1], np.int64)[rows]
        which = steps(store)
        found.append(per_step(store, which, moved, len(numbers), store.self_ns))
        found.append(per_step(store, which, moved, len(numbers), np.ones(len(store), np.int64)))
    return list(numbers), found


def _typical(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """The time per step that a quarter of the steps stay below, for every line."""
    found: NDArray[np.float64] = np.quantile(values, _TYPICAL, axis=1) if values.shape[1] else np.zeros(len(values))
    return found


def _worth_it(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Ops below a thousandth of the step make no difference worth naming, and their clock readings are mostly noise."""
    found: NDArray[np.bool_] = np.maximum(a, b) >= 1e-3 * max(a.sum(), b.sum(), 1.0)
    return found


def _intervals(a: NDArray[np.int64], b: NDArray[np.int64], wanted: NDArray[np.bool_], rng: np.random.Generator,
               confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bootstrap interval of the ratio of typical times; the same steps are drawn for every op."""
    low, high = np.zeros(len(a)), np.full(len(a), np.inf)
    if not wanted.any() or not a.shape[1] or not b.shape[1]:
        return low, high
    times = max(200, min(_BOOTSTRAPS, _MOST_DRAWN // max(a.shape[1], b.shape[1])))
    a_draws, b_draws = _draws(a.shape[1], times, rng), _draws(b.shape[1], times, rng)
    for number in np.flatnonzero(wanted).tolist():
        of_a, of_b = _typical(a[number][a_draws]), _typical(b[number][b_draws])
        spread = np.log(np.maximum(of_b, 1) / np.maximum(of_a, 1))
        # Far in the tails a normal interval of the same width is steadier than the few extreme draws.
        middle, width = float(np.mean(spread)), float(np.std(spread)) * _normal_quantile((1 + confidence) / 2)
        low[number], high[number] = np.exp(middle - width), np.exp(middle + width)
    return low, high


def _draws(count: int, times: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Which steps each bootstrap takes: runs of neighbours, since a disturbance lasts for several steps."""
    length = max(1, count // _BLOCKS)
    starts = rng.integers(count, size=(times, -(-count // length)))
    return ((starts[:, :, None] + np.arange(length)) % count).reshape(times, -1)[:, :count]


def _whole(a: NDArray[np.int64], b: NDArray[np.int64], rng: np.random.Generator, confidence: float, least: float,
           enough: bool) -> Change:
    low, high = _intervals(a[None], b[None], np.ones(1, np.bool_), rng, confidence)
    of_a, of_b = (float(_typical(one[None])[0]) for one in (a, b))
    ratio = of_b / of_a if of_a else 1.0
    bounds = (float(low[0]), float(high[0]))
    verdict = _verdict(ratio, bounds, least, enough and of_a > 0 and of_b > 0)
    return Change(WorkKey("step", "", "", 0), of_a, of_b, 1.0, 1.0, ratio, *bounds, verdict)


def _verdict(ratio: float, bounds: tuple[float, float], least: float, enough: bool) -> Verdict:
    if not enough:
        return "no evidence"
    if bounds[0] > 1 and ratio > 1 + least:
        return "slower"
    if bounds[1] < 1 and ratio < 1 / (1 + least):
        return "faster"
    return "no evidence"


def _normal_quantile(p: float) -> float:
    """Standard normal quantile."""
    return NormalDist().inv_cdf(p)


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f}%" if np.isfinite(ratio) else "?"


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
