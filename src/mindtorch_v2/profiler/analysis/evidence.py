"""How sure one can be that times changed: from the steps of one recording on each side, or from several recordings.

Steps of one run tell how much a step varies, but not how much a run does: a machine with other work runs the same code 5 to
40 % slower a second later, and not all ops alike. Only several recordings of each side show that.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BOOTSTRAPS = 2000
_MOST_DRAWN = 4_000_000  # steps in all bootstraps of one op: long recordings are sure of their figures with fewer
_BLOCKS = 12
# What else runs on a machine only ever makes a step slower, so the faster steps tell more of the code than the median.
_TYPICAL = 0.25
# The spread of an op between few recordings is a guess itself: that of the median op counts for as many recordings more.
_PRIOR_RECORDINGS = 4
_MAD_TO_DEVIATION = 1.4826  # the standard deviation of normal numbers whose median absolute deviation is 1
_FEWEST_FOR_DRIFT = 10  # ops: with fewer, their median could be the change itself


class Evidence(NamedTuple):
    """What all ops moved by, and for each its ratio b/a after that was taken out, with its confidence interval."""

    drift: float
    ratio: Floats
    low: Floats
    high: Floats


def typical(values: NDArray[np.int64]) -> Floats:
    """The time per step that a quarter of the steps stay below, for every line."""
    found: Floats = np.quantile(values, _TYPICAL, axis=-1) if values.shape[-1] else np.zeros(values.shape[:-1])
    return found


def evened(values: NDArray[np.int64], counted: NDArray[np.bool_]) -> Floats:
    """The time per step of every line, after the steps were evened out: what slowed a step down slowed all of it.

    By how much, the median of the `counted` lines says. One recording is not judged by it: where several ops changed in some
    of its steps, it would mislead.
    """
    if not values.shape[1] or counted.sum() < _FEWEST_FOR_DRIFT:
        return typical(values)
    usual = np.median(values, axis=1)
    load = np.median(values[counted] / np.maximum(usual[counted, None], 1), axis=0)
    found: Floats = np.median(values / np.maximum(load, 1e-9), axis=1) * np.quantile(load, _TYPICAL)
    return found


def from_steps(
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    both: NDArray[np.bool_],
    rng: np.random.Generator,
    confidence: float,
) -> Evidence:
    """Of one recording on each side, a line of times per op; intervals only for those `wanted`."""
    a_mid, b_mid = typical(a), typical(b)
    ratio = np.divide(b_mid, a_mid, out=np.ones(len(a)), where=both)
    drift = float(np.median(ratio[both])) if both.sum() >= _FEWEST_FOR_DRIFT else 1.0
    confidence = _for_each(confidence, wanted)
    low, high = intervals(a, b, wanted, rng, confidence)
    if wanted.sum() >= _FEWEST_FOR_DRIFT:
        # Ops that did not change still moved apart, by what the machine did to one run and not to the other. Steps do not
        # tell of that, but the median op does, and no op is surer of its ratio than that.
        apart = _MAD_TO_DEVIATION * float(np.median(np.abs(np.log(ratio[wanted] / drift)))) * _two_sided(confidence)
        middle, width = np.sqrt(low[wanted] * high[wanted]), np.log(high[wanted] / low[wanted]) / 2
        wider = np.exp(np.hypot(width, apart))
        low[wanted], high[wanted] = middle / wider, middle * wider
    return Evidence(drift, ratio / drift, low / drift, high / drift)


def from_recordings(a: Floats, b: Floats, wanted: NDArray[np.bool_], confidence: float) -> Evidence:
    """Of several recordings on each side, a line of (evened) times per recording: how they differ on one side shows what a
    difference between the sides is worth.

    A moderated t-test on logarithms: the variance of each op is drawn towards that of the median op.
    """
    ratio, low, high = np.ones(a.shape[1]), np.zeros(a.shape[1]), np.full(a.shape[1], np.inf)
    if not wanted.any():
        return Evidence(1.0, ratio, low, high)
    logs = np.log(np.concatenate([a, b])[:, wanted])
    # What a whole recording was slower by than the others: the median op says.
    moved = np.median(logs - logs.mean(axis=0), axis=1) if wanted.sum() >= _FEWEST_FOR_DRIFT else np.zeros(len(logs))
    of_a, of_b = np.split(logs - moved[:, None], [len(a)])
    effect = of_b.mean(axis=0) - of_a.mean(axis=0)
    freedom = len(logs) - 2
    variance = (((of_a - of_a.mean(axis=0)) ** 2).sum(axis=0) + ((of_b - of_b.mean(axis=0)) ** 2).sum(axis=0)) / freedom
    prior = float(np.median(variance))
    moderated = (_PRIOR_RECORDINGS * prior + freedom * variance) / (_PRIOR_RECORDINGS + freedom)
    error = np.sqrt(moderated * (1 / len(a) + 1 / len(b)))
    width = error * student_quantile((1 + _for_each(confidence, wanted)) / 2, freedom + _PRIOR_RECORDINGS)
    ratio[wanted], low[wanted], high[wanted] = np.exp(effect), np.exp(effect - width), np.exp(effect + width)
    return Evidence(float(np.exp(moved[len(a) :].mean() - moved[: len(a)].mean())), ratio, low, high)


def _for_each(confidence: float, wanted: NDArray[np.bool_]) -> float:
    """The confidence of each of several intervals that are to hold together."""
    return 1 - (1 - confidence) / max(int(wanted.sum()), 1)


def intervals(
    a: NDArray[np.int64], b: NDArray[np.int64], wanted: NDArray[np.bool_], rng: np.random.Generator, confidence: float
) -> tuple[Floats, Floats]:
    """Bootstrap interval of the ratio of typical times; the same steps are drawn for every op."""
    low, high = np.zeros(len(a)), np.full(len(a), np.inf)
    if not wanted.any() or not a.shape[1] or not b.shape[1]:
        return low, high
    times = max(200, min(_BOOTSTRAPS, _MOST_DRAWN // max(a.shape[1], b.shape[1])))
    a_draws, b_draws = _draws(a.shape[1], times, rng), _draws(b.shape[1], times, rng)
    for number in np.flatnonzero(wanted).tolist():
        of_a, of_b = typical(a[number][a_draws]), typical(b[number][b_draws])
        spread = np.log(np.maximum(of_b, 1) / np.maximum(of_a, 1))
        # Far in the tails a normal interval of the same width is steadier than the few extreme draws.
        middle, width = float(np.mean(spread)), float(np.std(spread)) * _two_sided(confidence)
        low[number], high[number] = np.exp(middle - width), np.exp(middle + width)
    return low, high


def _two_sided(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _draws(count: int, times: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Which steps each bootstrap takes: runs of neighbours, since a disturbance lasts for several steps."""
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
