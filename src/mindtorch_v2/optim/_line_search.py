"""A line search for the strong Wolfe conditions, with cubic interpolation between points already tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# How much of the promised decrease is enough, and how flat the slope has to become.
_DECREASE, _FLATNESS = 1e-4, 0.9
_LARGEST_COUNT = 25


@dataclass(slots=True)
class _Point:
    """A point on the line: where, the loss there, its gradient, and the slope along the line."""

    at: float
    loss: float
    grad: Any
    slope: Any


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes has its minimum, kept within bounds."""
    low, high = bounds if bounds is not None else (min(a.at, b.at), max(a.at, b.at))
    first, second = (a, b) if a.at <= b.at else (b, a)
    slope1, slope2 = float(first.slope), float(second.slope)
    d1 = slope1 + slope2 - 3 * (first.loss - second.loss) / (first.at - second.at)
    square = d1**2 - slope1 * slope2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    minimum = second.at - (second.at - first.at) * ((slope2 + d2 - d1) / (slope2 - slope1 + 2 * d2))
    return min(max(minimum, low), high)


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Any]],
    rate: float,
    direction: Any,
    loss: float,
    grad: Any,
    slope: Any,
    tolerance: float = 1e-9,
) -> tuple[float, Any, float, int]:
    """Loss, gradient and place of a point that satisfies the conditions, and how often it evaluated the loss.

    `evaluate(t)` gives loss and gradient at `t` along the direction; loss, grad and slope are those at 0.
    """
    length = direction.abs().max()
    origin = _Point(0.0, loss, grad.clone(), slope)

    def look(at: float) -> _Point:
        there, gradient = evaluate(at)
        return _Point(at, there, gradient.clone(), gradient.dot(direction))

    point = look(rate)
    count = 1
    previous = origin
    bracket: list[_Point] = []
    done = False
    tried = 0
    while tried < _LARGEST_COUNT:
        too_high = point.loss > origin.loss + _DECREASE * point.at * float(origin.slope)
        if too_high or (tried > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
            break
        if abs(float(point.slope)) <= -_FLATNESS * float(origin.slope):
            bracket, done = [point], True
            break
        if point.slope >= 0:
            bracket = [previous, point]
            break
        # Still going down: look further out.
        nearest, furthest = point.at + 0.01 * (point.at - previous.at), point.at * 10
        following = _cubic_minimum(previous, point, bounds=(nearest, furthest))
        previous, point = point, look(following)
        count += 1
        tried += 1
    else:
        bracket = [origin, point]
    best = bracket[0]
    if not done:
        best, spent = _zoom(look, bracket, origin, length, tolerance, _LARGEST_COUNT - tried)
        count += spent
    return best.loss, best.grad, best.at, count


def _zoom(
    look: Callable[[float], _Point], bracket: list[_Point], origin: _Point, length: Any, tolerance: float, left: int
) -> tuple[_Point, int]:
    """The end of a narrowing bracket that satisfies the conditions, and how many points it took."""
    stalled = False
    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    count = 0
    while count < left:
        if abs(bracket[1].at - bracket[0].at) * float(length) < tolerance:
            break
        at = _cubic_minimum(bracket[0], bracket[1])
        # A point too near to an end makes no progress; if that happens twice, step well inside.
        ends = min(p.at for p in bracket), max(p.at for p in bracket)
        margin = 0.1 * (ends[1] - ends[0])
        if min(ends[1] - at, at - ends[0]) < margin:
            if stalled or at >= ends[1] or at <= ends[0]:
                at = ends[1] - margin if abs(at - ends[1]) < abs(at - ends[0]) else ends[0] + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        point = look(at)
        count += 1
        too_high = point.loss > origin.loss + _DECREASE * at * float(origin.slope)
        if too_high or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            is_flat = abs(float(point.slope)) <= -_FLATNESS * float(origin.slope)
            if not is_flat and float(point.slope) * (bracket[high].at - bracket[low].at) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
            if is_flat:
                break
    return bracket[low], count
