"""Confidence intervals of changed times: from the steps of one recording on each side, or from several recordings.

Steps of one run show how much a step varies, but not how much a run does: a machine with other work runs the same code 5 to
40 % slower a second later, and not all ops alike. Only several recordings of each side show that.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BOOTSTRAPS = 500
_MOST_DRAWN = 4_000_000  # steps in all bootstraps of one op: long recordings need fewer bootstraps
_BLOCKS = 12
# Other work on a machine only makes steps slower, so this quantile says more about the code than the median.
_TYPICAL = 0.25
# The variance of an op between few recordings is uncertain itself: that of the median op counts as so many more recordings.
_PRIOR_RECORDINGS = 4
_MAD_TO_DEVIATION = 1.4826  # standard deviation of a normal distribution whose median absolute deviation is 1
_FEWEST_FOR_DRIFT = 10  # ops of several recordings: with fewer, their median could be the change itself
# In a single recording there is nothing else to tell the machine's speed by. The median of three ops is not that of the one
# that changed; with fewer, what a machine does from one run to the next has to be allowed for: a standard deviation of this.
_FEWEST_FOR_DRIFT_OF_STEPS = 3
_MACHINE_MOVES = 0.3
# How far unchanged ops moved apart between 40 pairs of runs on a machine with other work (standard deviations of 2 to 7 %),
# which stands for those that are missing where there are fewer ops than this.
_OPS_MOVE = 0.07
_ENOUGH_OPS = 10


class Evidence(NamedTuple):
    """The ratio b/a of all ops together (drift), and of each op the ratio divided by that, with its confidence interval.

    `told`: whether there were ops enough to tell the drift, which is 1 otherwise.
    """

    drift: float
    ratio: Floats
    low: Floats
    high: Floats
    told: bool = True


def typical(values: NDArray[np.int64] | Floats) -> Floats:
    """The lower quartile of the times per step, for every line."""
    quartile: Floats = np.quantile(values, _TYPICAL, axis=-1) if values.shape[-1] else np.zeros(values.shape[:-1])
    return quartile


def balanced(values: NDArray[np.int64], counted: NDArray[np.bool_]) -> Floats:
    """The time per step of every line, with the load of each step divided out: what slows a step down slows all of its ops.

    The load of a step is the median over the `counted` lines. Not for a single recording: if several ops changed in some of
    its steps, that would mislead.
    """
    if not values.shape[1] or counted.sum() < _FEWEST_FOR_DRIFT:
        return typical(values)
    usual = np.median(values, axis=1)
    load = np.median(values[counted] / np.maximum(usual[counted, None], 1), axis=0)
    times: Floats = np.median(values / np.maximum(load, 1e-9), axis=1) * np.quantile(load, _TYPICAL)
    return times


def from_steps(
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    selected: NDArray[np.bool_],
    both: NDArray[np.bool_],
    rng: np.random.Generator,
    confidence: float,
) -> Evidence:
    """Evidence from one recording on each side, a line of times per op; intervals only for the `selected` ones.

    An interval contains what the ratio is if the machine's speed changed by the drift, and what it is if it did not: one
    recording does not tell which.
    """
    a_mid, b_mid = typical(a), typical(b)
    ratio = np.divide(b_mid, a_mid, out=np.ones(len(a)), where=both)
    known = int(both.sum()) >= _FEWEST_FOR_DRIFT_OF_STEPS
    drift = float(np.median(ratio[both])) if known else 1.0
    each = _for_each(confidence, selected)
    low, high = intervals(a, b, selected, rng, each)
    if selected.any():
        wider = _between_runs(ratio[selected] / drift, each) if known else _MACHINE_MOVES * _two_sided(each)
        middle, width = np.sqrt(low[selected] * high[selected]), np.log(high[selected] / low[selected]) / 2
        width = np.hypot(width, wider)
        low[selected], high[selected] = middle * np.exp(-width), middle * np.exp(width)
    return Evidence(drift, ratio / drift, *_either_way(low, high, drift), known)


def of_whole_step(
    a: NDArray[np.int64], b: NDArray[np.int64], of_ops: Evidence, rng: np.random.Generator, confidence: float
) -> tuple[float, float]:
    """The interval of the ratio of whole steps from one recording on each side, as wide as those of its ops have to be."""
    low, high = intervals(a[None], b[None], np.ones(1, np.bool_), rng, confidence)
    wider = (_OPS_MOVE if of_ops.told else _MACHINE_MOVES) * _two_sided(confidence)
    middle, width = np.sqrt(low * high), np.hypot(np.log(high / low) / 2, wider)
    low, high = _either_way(middle * np.exp(-width), middle * np.exp(width), of_ops.drift)
    return float(low[0]), float(high[0])


def _either_way(low: Floats, high: Floats, drift: float) -> tuple[Floats, Floats]:
    """The intervals of ratios that contain both what was measured and that with the drift divided out."""
    return np.minimum(low, low / drift), np.maximum(high, high / drift)


def _between_runs(moved: Floats, confidence: float) -> float:
    """How far an op that did not change moves from one run to the next, more than the others do, as a logarithm.

    The steps do not show that, but the ops do: `moved` has how far each went, of which the median says what is usual, and
    those of a few ops count together with what was measured of many.
    """
    count = len(moved)
    deviation = _MAD_TO_DEVIATION * float(np.median(np.abs(np.log(moved))))
    missing = max(0, _ENOUGH_OPS - count)
    variance = (missing * _OPS_MOVE**2 + count * deviation**2) / (missing + count)
    # That of the drift itself, a median, comes on top.
    variance *= 1 + 1.57 / count
    return float(np.sqrt(variance)) * student_quantile((1 + confidence) / 2, missing + count)


def from_recordings(a: Floats, b: Floats, selected: NDArray[np.bool_], confidence: float) -> Evidence:
    """Evidence from several recordings on each side, a line of (balanced) times per recording.

    A moderated t-test on logarithms: the variance within the sides, drawn towards that of the median op for each op, says
    how much a difference between the sides is worth.
    """
    ratio, low, high = np.ones(a.shape[1]), np.zeros(a.shape[1]), np.full(a.shape[1], np.inf)
    if not selected.any():
        return Evidence(1.0, ratio, low, high)
    logs = np.log(np.concatenate([a, b])[:, selected])
    # How much slower a whole recording was than the others: the median over ops.
    moved = np.median(logs - logs.mean(axis=0), axis=1) if selected.sum() >= _FEWEST_FOR_DRIFT else np.zeros(len(logs))
    of_a, of_b = np.split(logs - moved[:, None], [len(a)])
    effect = of_b.mean(axis=0) - of_a.mean(axis=0)
    freedom = len(logs) - 2
    variance = (((of_a - of_a.mean(axis=0)) ** 2).sum(axis=0) + ((of_b - of_b.mean(axis=0)) ** 2).sum(axis=0)) / freedom
    prior = float(np.median(variance))
    moderated = (_PRIOR_RECORDINGS * prior + freedom * variance) / (_PRIOR_RECORDINGS + freedom)
    error = np.sqrt(moderated * (1 / len(a) + 1 / len(b)))
    width = error * student_quantile((1 + _for_each(confidence, selected)) / 2, freedom + _PRIOR_RECORDINGS)
    ratio[selected], low[selected], high[selected] = np.exp(effect), np.exp(effect - width), np.exp(effect + width)
    return Evidence(float(np.exp(moved[len(a) :].mean() - moved[: len(a)].mean())), ratio, low, high)


def _for_each(confidence: float, selected: NDArray[np.bool_]) -> float:
    """The confidence of each interval if all of them together are to have this one."""
    return 1 - (1 - confidence) / max(int(selected.sum()), 1)


def intervals(
    a: NDArray[np.int64], b: NDArray[np.int64], selected: NDArray[np.bool_], rng: np.random.Generator, confidence: float
) -> tuple[Floats, Floats]:
    """Bootstrap interval of the ratio of typical times; the same steps are drawn for every op."""
    low, high = np.zeros(len(a)), np.full(len(a), np.inf)
    if not selected.any() or not a.shape[1] or not b.shape[1]:
        return low, high
    times = max(200, min(_BOOTSTRAPS, _MOST_DRAWN // max(a.shape[1], b.shape[1])))
    a_draws, b_draws = _draws(a.shape[1], times, rng), _draws(b.shape[1], times, rng)
    for number in np.flatnonzero(selected).tolist():
        of_a, of_b = typical(a[number][a_draws]), typical(b[number][b_draws])
        spread = np.log(np.maximum(of_b, 1) / np.maximum(of_a, 1))
        # Far in the tails a normal interval is more stable than the few extreme draws.
        middle, width = float(np.mean(spread)), float(np.std(spread)) * _two_sided(confidence)
        low[number], high[number] = np.exp(middle - width), np.exp(middle + width)
    return low, high


def _two_sided(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _draws(count: int, times: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The steps that each bootstrap draws: blocks of neighbors, since a disturbance lasts for several steps."""
    length = max(1, count // _BLOCKS)
    starts = rng.integers(count, size=(times, -(-count // length)))
    drawn: NDArray[Any] = ((starts[:, :, None] + np.arange(length)) % count).reshape(times, -1)[:, :count]
    return drawn


def student_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t, by its expansion around the normal one: within 1 % up to p = 0.9999 from 6 degrees on."""
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** (power + 1) for power, term in enumerate(terms))
