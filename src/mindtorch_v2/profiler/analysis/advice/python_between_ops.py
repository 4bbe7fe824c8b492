"""Python code of the user's takes the time, not the ops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.intervals import Intervals
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.line_times import line_times
from ..source.places import parsed
from ..steps import main_thread
from ._evidence import call_cost_ns, in_own_spans, passes, recorded_ns, share, typical_pieces_ns
from ._loops import loops
from .gc_pauses import COLLECT
from .host_sync import reading_lines

_LEAST_OF_LINE = 0.1  # of the recorded time
_LEAST = 0.3  # of the recorded time, for many lines together
_LEAST_OF_PASS_NS = 20_000  # less is what a few calls of small functions cost, and recording them as much again
_FEWEST_STEPS = 3  # without stacks
_LEAST_STRETCH_NS = 200_000
_FAR = 3  # times the median of what lies between a line and an op
_AROUND_OP = 5  # times the least cost of an op: what is between a line and an op that it calls


class _Line(NamedTuple):
    place: str
    ns: int
    after_line: int
    called: str


def rule(store: EventStore) -> list[Finding]:
    """Fires when a line of Python takes a tenth of the time, or all of them together three tenths; with stacks, by line.

    Data loaders, optimizers and loops of ops have rules of their own.
    """
    whole = recorded_ns(store)
    if not whole:
        return []
    least = _LEAST_OF_PASS_NS * passes(store).count
    lines, spent = _by_line(store) if store.is_python.any() else ([], _outside_of_ops(store))
    slow = [line for line in lines if line.ns >= max(_LEAST_OF_LINE * whole, least)]
    if not slow and spent < max(_LEAST * whole, least):
        return []
    shown = slow or lines[:3]
    gain = sum(line.ns for line in slow) if slow else spent
    return [
        Finding(
            "python_between_ops",
            "Python code between the ops takes the time",
            "While it runs, no op does. Do it once before the loop, with ops on whole tensors, or in a DataLoader's workers."
            + ("" if lines else " The lines are not known: record with --stack (with_stack=True)."),
            (
                f"{duration(spent)} of {duration(whole)} is Python between ops",
                *(_told(line, len(passes(store).steps.start)) for line in shown[:5]),
            ),
            shown[0].place if shown else None,
            gain,
            share(gain, store),
        )
    ]


def _told(line: _Line, rounds: int) -> str:
    where = line.place
    if line.after_line:
        frame = parsed(where)
        where = f"{where}, or after line {line.after_line}" if frame is not None else where
    return f"{duration(line.ns / max(rounds, 1))} a step at {where}" + (f", most of it in {line.called}" if line.called else "")


def _by_line(store: EventStore) -> tuple[list[_Line], int]:
    """The lines with most time, and the time of all."""
    pieces, found = line_times(store), passes(store)
    around = np.where(pieces.beside_op, _around_op_ns(store), 0)
    ns = np.maximum(pieces.usual_ns - around, 0)
    of_loops = {line for loop in loops(store) for line in loop.lines} | set(reading_lines(store))
    collecting = np.isin(store.name, [number for number, name in enumerate(store.names) if name == COLLECT])
    # Other threads may wait in their Python code, and the ops do not wait for them.
    others = in_own_spans(store) | collecting | (store.tid != main_thread(store))
    chosen = np.flatnonzero(pieces.is_python & ~others[pieces.row] & (found.at(pieces.start) >= 0) & (ns > 0))
    lines = []
    for number in np.unique(pieces.line[chosen]).tolist():
        place = pieces.lines[number] if number >= 0 else ""
        if not place or place in of_loops:
            continue
        of = chosen[pieces.line[chosen] == number]
        if not found.is_inner(found.at(pieces.start[of])).any():  # what surrounds the loop
            continue
        typical = found.typical(found.sums(pieces.start[of], ns[of])) * found.count
        after, which = np.unique(pieces.after_line[of], return_inverse=True)
        most = int(after[np.argmax(np.bincount(which, weights=ns[of]))])
        lines.append(_Line(place, round(typical), most, _called(store, pieces.row[of], ns[of])))
    lines.sort(key=lambda line: -line.ns)
    return lines, sum(line.ns for line in lines)


def _around_op_ns(store: EventStore) -> int:
    """What may lie between a line and an op without being the line's own: several times what does so in the middle."""
    pieces = line_times(store)
    beside = pieces.usual_ns[pieces.beside_op & pieces.is_python]
    return max(_AROUND_OP * call_cost_ns(store), _FAR * int(np.median(beside)) if len(beside) else 0)


def _called(store: EventStore, rows: NDArray[np.intp], ns: NDArray[np.int64]) -> str:
    """The builtin or library function in which most of a line's time was spent; "" if it was the line itself."""
    names, which = np.unique(store.name[rows], return_inverse=True)
    times = np.bincount(which, weights=ns)
    most = int(np.argmax(times))
    name = store.names[names[most]]
    frame = parsed(name)
    is_own = store.kind[rows[which == most][0]] != observer.PYTHON or (frame is not None and not name.startswith("<"))
    return name if times[most] > 0.5 * times.sum() and not is_own else ""


def _outside_of_ops(store: EventStore) -> int:
    """Without stacks: what steps and ranges do outside of ops while no other thread runs one and no garbage is collected.

    Short stretches do not count: what the framework does around ops is in them.
    """
    pieces, found = line_times(store), passes(store)
    chosen = np.flatnonzero(pieces.is_python & (pieces.usual_ns > _LEAST_STRETCH_NS))
    if found.count < _FEWEST_STEPS or not len(chosen):
        return 0
    own = main_thread(store)
    others = np.flatnonzero((store.tid != own) & (store.device_type == 0) & np.isin(store.kind, (observer.OP, observer.ENGINE)))
    pauses = np.array([pause[:2] for pause in store.options.get("gc_pauses") or ()], np.int64).reshape(-1, 2)
    meanwhile = Intervals(
        np.concatenate([store.start[others], pauses[:, 0]]), np.concatenate([store.end[others], pauses[:, 1]])
    )
    start = pieces.start[chosen]
    alone = (store.tid[pieces.row[chosen]] == own) & ~meanwhile.overlap(start, start + pieces.ns[chosen])
    return typical_pieces_ns(store, chosen[alone])
