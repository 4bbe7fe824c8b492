"""Self times by the user's line: those of ops and calls, and the Python code between them.

What a row did itself belongs to the line of the user's code that called it. The time of a function of the user's between two
calls that it makes belongs to the lines between those; `sources` tells which of these it was if the file is at hand.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store import tree
from ...store.store import EventStore
from ..overhead import calibration_of, estimate
from ..recording_costs import OWN_SPANS
from .code import source_of
from .places import Frame, is_framework, is_users, parsed, user_frame

_IMPORTS = ("<frozen importlib", observer.IMPORT_PREFIX)
_USER, _FRAMEWORK = 1, 2
_SEVERAL = 4  # pieces of one place
_FAR = 3  # times their median: longer ones were held up, if
_FEW = 0.25  # of the pieces of the place, or fewer, are; otherwise its work differs from call to call
_STAYS = 0.25  # of a recorded self time, whatever recording is said to have cost


class LineTimes(NamedTuple):
    """Pieces of self time. `lines` are texts such as "train.py(12)"; a piece of line -1 belongs to no line that is known."""

    lines: list[str]
    row: NDArray[np.intp]
    start: NDArray[np.int64]  # when the piece begins, or the row of which it is all self time
    line: NDArray[np.int64]
    ns: NDArray[np.int64]
    # Python code of the user's: in a function of the user's, or in a builtin or library that such a function called.
    is_python: NDArray[np.bool_]
    # Where only the calls before and after are known: the line of the one before, if it is another; else 0.
    after_line: NDArray[np.int64]
    # Before or after an op, module or range, so that what the framework does around those is part of the piece.
    beside_op: NDArray[np.bool_]
    # `ns`, but not far above the median of the same place: what held up one of many on a busy machine is left out.
    usual_ns: NDArray[np.int64]

    def by_line(self, chosen: NDArray[np.bool_]) -> list[tuple[str, int, int]]:
        """(line, nanoseconds, pieces) of the chosen pieces, most time first, without those of no known line."""
        of = np.flatnonzero(chosen & (self.line >= 0))
        ns = np.bincount(self.line[of], weights=self.ns[of], minlength=len(self.lines)).astype(np.int64)
        count = np.bincount(self.line[of], minlength=len(self.lines))
        order = np.argsort(-ns, kind="stable")[: int((count > 0).sum())]
        return [(self.lines[at], int(ns[at]), int(count[at])) for at in order.tolist() if count[at]]


_known: WeakKeyDictionary[EventStore, LineTimes] = WeakKeyDictionary()


def line_times(store: EventStore) -> LineTimes:
    """The self times of all host rows of a recording, in pieces; without the cost of recording where that was measured."""
    known = _known.get(store)
    if known is None:
        known = _known[store] = _line_times(store)
    return known


def _line_times(store: EventStore) -> LineTimes:
    numbers: dict[str, int] = {}
    lines_of_stacks = _lines_of_stacks(store, numbers)
    self_ns = own_self_ns(store)
    origin = _origin(store)
    is_python = origin == _USER
    host = (store.device_type == 0) & (store.kind != observer.MEMORY)
    split = np.flatnonzero(host & _has_code(store))
    whole = np.flatnonzero(host & ~_has_code(store))
    stack = np.where(store.call_stack[whole] >= 0, store.call_stack[whole], store.stack[whole])
    gaps = _gaps(store, split)
    shrunk = np.divide(self_ns[gaps.row], np.maximum(store.self_ns[gaps.row], 1))
    line, after = _lines_of_gaps(store, gaps, numbers)
    kinds = np.append(store.kind, np.int8(observer.PYTHON))
    # Between the nodes of a backward pass is the engine.
    in_engine = (kinds[gaps.before] == observer.ENGINE) & (kinds[gaps.after] == observer.ENGINE)
    ns = np.concatenate([self_ns[whole], np.rint(gaps.ns * np.minimum(shrunk, 1)).astype(np.int64)])
    return LineTimes(
        list(numbers),
        np.concatenate([whole, gaps.row]),
        np.concatenate([store.start[whole], gaps.start]),
        np.concatenate([np.append(lines_of_stacks, -1)[stack], line]),
        ns,
        np.concatenate([is_python[whole] & _is_call(store)[whole], is_python[gaps.row] & ~in_engine]),
        np.concatenate([np.zeros(len(whole), np.int64), after]),
        np.concatenate(
            [
                np.zeros(len(whole), np.bool_),
                (kinds[gaps.before] != observer.PYTHON) | (kinds[gaps.after] != observer.PYTHON),
            ]
        ),
        _usual(ns, _places_of(store, whole, stack, gaps)),
    )


def _places_of(store: EventStore, whole: NDArray[np.intp], stack: NDArray[np.int32], gaps: _Gaps) -> NDArray[np.int64]:
    """A number for the place of each piece: the op or call with its stack and inputs, and for a stretch what is beside it."""
    name = np.append(store.name, np.int32(-1)).astype(np.int64)
    at = np.append(store.stack, np.int32(-1)).astype(np.int64)
    inputs = store.shapes[whole].astype(np.int64)
    of_rows = np.stack([name[whole], stack.astype(np.int64), inputs, np.full(len(whole), -2)])
    of_gaps = np.stack([name[gaps.before], at[gaps.before], name[gaps.after], at[gaps.after]])
    _, place = np.unique(np.concatenate([of_rows, of_gaps], axis=1), axis=1, return_inverse=True)
    return place.reshape(-1).astype(np.int64)


def _usual(ns: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times, at most three times the median of their place where there are several and few are longer than that."""
    order = np.lexsort((ns, place))
    _, first, counts = np.unique(place[order], return_index=True, return_counts=True)
    if not len(first):
        return ns.copy()
    in_order = ns[order]
    most = _FAR * in_order[first + counts // 2]
    longer = np.add.reduceat((in_order > np.repeat(most, counts)).astype(np.int64), first)
    most = np.where((counts >= _SEVERAL) & (longer <= _FEW * counts), most, np.iinfo(np.int64).max)
    usual = np.empty_like(ns)
    usual[order] = np.minimum(in_order, np.repeat(most, counts))
    return usual


def own_self_ns(store: EventStore) -> NDArray[np.int64]:
    """Self times without the cost of recording, where the recording says what that is.

    A part of each stays: costs that were measured while the machine was slower would take all of what lies between short ops.
    """
    calibration = calibration_of(store)
    if calibration is None:
        return store.self_ns
    return np.maximum(estimate(store, calibration).self_ns, (_STAYS * store.self_ns).astype(np.int64))


def _is_call(store: EventStore) -> NDArray[np.bool_]:
    """Whether a row is a call of a Python function or builtin."""
    calls: NDArray[np.bool_] = store.kind == observer.PYTHON
    return calls


def _has_code(store: EventStore) -> NDArray[np.bool_]:
    """Whether the code of a row is the user's: a function, or a range or step around such code."""
    of_name = np.zeros(len(store.names), np.bool_)
    is_range = np.zeros(len(store.names), np.bool_)
    for number, name in enumerate(store.names):
        frame = parsed(name)
        of_name[number] = frame is not None and is_users(frame.file)
        is_range[number] = not name.startswith(OWN_SPANS)
    functions = (store.kind == observer.PYTHON) & of_name[store.name]
    ranges = np.isin(store.kind, (observer.SCOPE, observer.STEP)) & is_range[store.name]
    result: NDArray[np.bool_] = functions | ranges
    return result


def _origin(store: EventStore) -> NDArray[np.int8]:
    """Whose code each row is part of: that of the nearest function, op or range around it that tells."""
    of_name = np.zeros(len(store.names), np.int8)
    for number, name in enumerate(store.names):
        frame = parsed(name)
        if frame is not None and is_users(frame.file):
            of_name[number] = _USER
        elif name.startswith((*OWN_SPANS, *_IMPORTS)) or (frame is not None and is_framework(frame.file)):
            of_name[number] = _FRAMEWORK
    own = np.where(np.isin(store.kind, (observer.PYTHON, observer.SCOPE)), of_name[store.name], 0)
    runtime = (observer.OP, observer.BACKWARD, observer.ENGINE, observer.MODULE, observer.RUNTIME, observer.FIRST_USE)
    own[np.isin(store.kind, runtime)] = _FRAMEWORK
    above = tree.nearest_ancestor(store.parent, own != 0)
    known = np.append(own, np.int8(0))
    origin: NDArray[np.int8] = np.where(own != 0, own, known[above]).astype(np.int8)
    # Without Python calls, what is outside of every op and range is the user's.
    if not (store.kind == observer.PYTHON).any():
        origin[(origin == 0) & np.isin(store.kind, (observer.SCOPE, observer.STEP))] = _USER
    return origin


class _Gaps(NamedTuple):
    """Stretches of rows outside of their children: the row, start and length, and the children before and after or -1."""

    row: NDArray[np.intp]
    start: NDArray[np.int64]
    ns: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


def _gaps(store: EventStore, rows: NDArray[np.intp]) -> _Gaps:
    """The stretches of rows that no child covers."""
    chosen = np.zeros(len(store) + 1, np.bool_)
    chosen[rows] = True
    children = np.flatnonzero(chosen[store.parent] & (store.kind != observer.MEMORY) & (store.parent >= 0))
    children = children[np.argsort(store.parent[children], kind="stable")]
    parent = store.parent[children]
    first = np.append(True, parent[1:] != parent[:-1]) if len(children) else np.empty(0, np.bool_)
    before = np.where(first, -1, np.append(-1, children[:-1]))[: len(children)]
    begun = np.where(first, store.start[parent], store.nested_end[before])
    last_child = np.full(len(store), -1, np.int64)
    last_child[parent] = children
    last = last_child[rows]
    ended = np.where(last >= 0, store.nested_end[last], store.start[rows])
    gaps = _Gaps(
        np.concatenate([parent, rows]).astype(np.intp),
        np.concatenate([begun, ended]),
        np.concatenate([store.start[children] - begun, store.nested_end[rows] - ended]),
        np.concatenate([before, last]),
        np.concatenate([children, np.full(len(rows), -1)]),
    )
    some = gaps.ns > 0
    return _Gaps(*(column[some] for column in gaps))


def _lines_of_gaps(store: EventStore, gaps: _Gaps, numbers: dict[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The line of each stretch as a number, and the line before it where the stretch may be anywhere between the two."""
    at = np.append(_called_from(store), -1)  # of each row the number of the frame it was called from
    frames = [parsed(stack[0]) if stack else None for stack in store.stacks]
    keys = np.stack([_own_name(store, gaps.row), at[gaps.before], at[gaps.after], at[gaps.row]])
    distinct, which = np.unique(keys, axis=1, return_inverse=True)
    line, after = np.full(distinct.shape[1], -1, np.int64), np.zeros(distinct.shape[1], np.int64)
    for column, (name, previous, following, around) in enumerate(distinct.T.tolist()):
        own = parsed(store.names[name]) if name >= 0 else frames[around] if around >= 0 else None
        place = _between(own, *(frames[each] if each >= 0 else None for each in (previous, following)))
        if place is not None:
            line[column] = numbers.setdefault(place[0].place, len(numbers))
            after[column] = place[1]
    which = which.reshape(-1)
    return line[which], after[which]


def _called_from(store: EventStore) -> NDArray[np.int64]:
    """The stack of where each row was called, not that of a forward op; -1 where it is not known."""
    return store.stack.astype(np.int64)


def _own_name(store: EventStore, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """The name of a row that is a function, which tells its first line; -1 of ranges."""
    return np.where(store.kind[rows] == observer.PYTHON, store.name[rows], -1).astype(np.int64)


def _between(own: Frame | None, before: Frame | None, after: Frame | None) -> tuple[Frame, int] | None:
    """The line between two calls of a function, and the line of the first if it may be any between; None if unknown."""
    known = own or before or after
    if known is None or not is_users(known.file):
        return None
    known, before, after = (
        each if each is not None and (each.file, each.function) == (known.file, known.function) else None
        for each in (known, before, after)
    )
    assert known is not None
    source = source_of(known.file)
    if before is None and after is None and source is not None:  # a function that calls nothing
        last = source.functions.get((known.line, known.function))
        return (known if last is None else known._replace(line=source.line_between(known.line, last + 1))), 0
    first = before or known
    if after is None:
        last = None if source is None else source.functions.get((known.line, known.function))
        following = first.line if last is None else last + 1
        if last is None or source is None:
            return first, 0
        line = source.line_between(first.line, following)
        return first._replace(line=first.line if line == following else line), 0
    line = after.line if source is None else source.line_between(first.line, after.line)
    return after._replace(line=line), first.line if line == after.line and first.line < line else 0


def _lines_of_stacks(store: EventStore, numbers: dict[str, int]) -> NDArray[np.int64]:
    """For each stack the number of the user's innermost line in it, -1 if there is none."""
    found = np.full(len(store.stacks), -1, np.int64)
    for number, stack in enumerate(store.stacks):
        place = user_frame(stack)
        if place is not None:
            found[number] = numbers.setdefault(place, len(numbers))
    return found
