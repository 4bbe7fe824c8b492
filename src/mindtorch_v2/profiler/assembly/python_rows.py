"""Rows of Python calls, with start, end and name, and the stack at any moment.

In: the CallSegments of a thread. Out: PythonRows. Frames of this runtime's inside are hidden, and with them what they call in
NumPy and the standard library: rows show the user's functions, and the layers, optimizers and loaders that those call. The
frames of Python's import system are hidden, too. Every import has a row, but for those of the profiler itself.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._io.working_folder import absolute
from ..recording.python_calls.code_origin import ENTRY, IMPORT_PREFIX, IMPORT_SYSTEM, INSIDE, LIBRARY, classify
from ..recording.python_calls.stream import WIDTH, Called, CallSegment, OpenFrame
from ..store import tree as _tree
from .clock_order import going_forward

RETURN, FRAME, BUILTIN = 0, 1, 2
_ROOT = -1  # the empty stack


class SavedCode(NamedTuple):
    """What is needed of a code object of another process, read from a file."""

    co_name: str
    co_firstlineno: int
    places: tuple[tuple[int, int], ...]  # (from this bytecode offset on, this line)

    def co_lines(self) -> Iterator[tuple[int, int, int]]:
        """(start, end, line) as CodeType.co_lines(); the end is not known and not needed."""
        for start, line in self.places:
            yield start, start, line


_PROFILER = "mindtorch_v2/profiler/"


class Target(NamedTuple):
    """A function or builtin that was called, or RETURN, which stands for every return."""

    kind: int
    text: str
    code: CodeType | SavedCode | None
    inside: bool  # part of this runtime's inside, or of Python's import system: hidden
    library: bool  # hidden when called from the inside
    file: str = ""


class PythonRows(NamedTuple):
    """The visible calls of one thread, in order of end, and what `stack_at` needs."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: NDArray[np.int64]  # index into names
    caller: NDArray[np.int64]  # index into stacks: the stack that made the call, _ROOT for the empty stack
    names: list[str]
    times: NDArray[np.int64]
    stack_after: NDArray[np.int64]  # index into stacks after each event, _ROOT for the empty stack
    stacks: list[tuple[str, ...]]
    hidden: int  # calls inside of this runtime, which have no rows but were recorded; without the profiler's own

    def stack_at(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """The index of the thread's stack at each moment, -1 for the empty stack."""
        if not len(self.times):
            return np.full(len(moments), _ROOT, np.int64)
        before = np.searchsorted(self.times, moments, side="right") - 1
        return np.where(before < 0, _ROOT, self.stack_after[before])


def python_rows(segments: list[CallSegment], end: int, most_frames: int | None = None) -> PythonRows:
    """The rows of a thread's segments. A call that did not return ends with its segment, or at `end`.

    most_frames: ValueError if all stacks together have more than that; eight characters of text count as one.
    """
    objects, offsets, moments, end = _one_stream(segments, end)
    times = going_forward(np.fromiter(moments, np.int64, len(objects)))
    end = max(end, int(times[-1])) if len(times) else end
    target_of, targets = _targets(objects)
    kinds = np.array([t.kind for t in targets], np.int8)[target_of] if targets else np.empty(0, np.int8)
    calls = np.flatnonzero(kinds != RETURN)
    places = np.fromiter(offsets, np.int64, len(objects))[calls]
    depth = np.cumsum(np.where(kinds == RETURN, -1, 1))
    returned = _tree.matching_ends(kinds != RETURN)
    tree = _Tree(targets, target_of[calls], depth[calls], calls, places)
    returns_at = returned[calls]
    ends = np.where(returns_at >= 0, times[returns_at], end)

    visible = np.flatnonzero(~tree.hidden)
    # Inner calls first where two end together.
    order = visible[np.lexsort((-depth[calls[visible]], ends[visible]))]
    texts: dict[str, int] = {}
    name_of = np.array([texts.setdefault(t.text, len(texts)) for t in targets], np.int64)

    # After a call the new frame is on top; after a return the stack is what it was when the call was made.
    stack_after = np.empty(len(objects), np.int64)
    stack_after[calls] = tree.inner()
    done = np.flatnonzero(returns_at >= 0)
    stack_after[returns_at[done]] = tree.outer[done]
    return PythonRows(
        start=times[calls[order]],
        end=ends[order],
        name=name_of[target_of[calls[order]]] if len(order) else np.empty(0, np.int64),
        caller=tree.outer[order],
        names=list(texts),
        times=times,
        stack_after=stack_after,
        stacks=tree.stacks(most_frames),
        hidden=int((tree.hidden & ~tree.of_profiler).sum()),
    )


def _one_stream(segments: list[CallSegment], end: int) -> tuple[list[Called | Target], list[int], list[int], int]:
    """What, place and time of all segments, with calls for the frames that are open at a start and returns at an end.

    And the end of the last one, without such returns: at `end`, or where a pause that nothing ended began.
    """
    objects: list[Called | Target] = []
    places: list[int] = []
    times: list[int] = []
    still_open, ended = 0, end
    for segment in segments:
        objects += [None] * still_open
        places += [-1] * still_open
        times += [ended] * still_open
        objects += segment.opened
        places += segment.opened_places
        times += [segment.start] * len(segment.opened)
        what = segment.events[0::WIDTH]
        objects += what
        places += segment.events[1::WIDTH]
        times += segment.events[2::WIDTH]
        still_open = len(segment.opened) + len(what) - 2 * what.count(None)
        ended = segment.end if segment.end is not None else end
    return objects, places, times, ended


def _targets(objects: Sequence[Called | Target]) -> tuple[NDArray[np.int64], list[Target]]:
    """The index of each object's Target, and the Targets; objects are told apart by id()."""
    idents = np.fromiter(map(id, objects), np.int64, len(objects))
    _, first, number = np.unique(idents, return_index=True, return_inverse=True)
    shorten = Shortener()
    return number.astype(np.int64), [target_of(objects[i], shorten) for i in first.tolist()]


def target_of(what: Called | Target, shorten: Shortener) -> Target:
    """The Target of an entry of a stream: None, a text, a code object, an open frame, or a Target itself."""
    if what is None:
        return Target(RETURN, "", None, False, False)
    if isinstance(what, str):
        return Target(BUILTIN, what, None, False, not what.startswith(IMPORT_PREFIX))
    if isinstance(what, Target):
        return what
    code, line = what if isinstance(what, OpenFrame) else (what, what.co_firstlineno)
    origin = classify(code.co_filename)
    file = shorten(code.co_filename)
    inside = origin in (INSIDE, ENTRY) or code.co_filename.startswith(IMPORT_SYSTEM)
    return Target(FRAME, f"{file}({line}): {code.co_name}", code, inside, origin == LIBRARY, file)


class Shortener:
    """Shortens file names as torch does: relative to the folder of sys.path that they are in."""

    def __init__(self) -> None:
        folders = {whole.rstrip(os.sep) + os.sep for path in [*sys.path, "."] if (whole := absolute(path)) is not None}
        self._folders = sorted(folders, key=len, reverse=True)
        self._known: dict[str, str] = {}

    def __call__(self, filename: str) -> str:
        """The shortened name; unchanged if the file is in no folder of sys.path."""
        short = self._known.get(filename)
        if short is None:
            folder = next((f for f in self._folders if filename.startswith(f)), "")
            short = self._known[filename] = filename[len(folder) :]
        return short


class _Tree:
    """Which call made which, which are hidden, and the stack at each call, computed depth by depth.

    A stack is a number: _nodes[number] is (number of the outer stack, target on top, bytecode offset in it).
    """

    def __init__(
        self,
        targets: list[Target],
        target: NDArray[np.int64],
        depth: NDArray[np.int64],
        calls: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> None:
        n = len(calls)
        self._targets = targets
        self._target = target
        inside = np.array([t.inside for t in targets], np.bool_)
        library = np.array([t.library for t in targets], np.bool_)
        imports = np.array([t.kind == BUILTIN and not t.library for t in targets], np.bool_)
        profiler = np.array([t.inside and _PROFILER in t.text for t in targets], np.bool_)
        self.parent = np.full(n, -1, np.int64)
        self.of_profiler = np.zeros(n, np.bool_)  # its functions, and what they call up to a visible call, such as the script's
        self.hidden = np.zeros(n, np.bool_)
        self.outer = np.full(n, _ROOT, np.int64)
        self._numbers: dict[int, int] = {}
        self._nodes: list[tuple[int, int, int]] = []
        by_depth = np.argsort(depth, kind="stable")
        levels, firsts = np.unique(depth[by_depth], return_index=True)
        above = np.empty(0, np.int64)
        for rows in np.split(by_depth, firsts[1:]) if len(levels) else ():
            own = target[rows]
            self.hidden[rows] = inside[own]
            self.of_profiler[rows] = profiler[own]
            if len(above):
                parent = self.parent[rows] = above[np.searchsorted(above, rows) - 1]
                self.hidden[rows] |= library[own] & self.hidden[parent]
                self.hidden[rows] |= imports[own] & self.of_profiler[parent]
                self.of_profiler[rows] |= self.of_profiler[parent] & self.hidden[rows]
                # A hidden caller adds no frame: the stack is what it was when the caller was called.
                self.outer[rows] = self.outer[parent]
                visible = ~self.hidden[parent]
                caller = parent[visible]
                self.outer[rows[visible]] = self._push(self.outer[caller], target[caller], places[rows[visible]])
            above = rows

    def inner(self) -> NDArray[np.int64]:
        """The stack just after each call, with the called frame at its first line if it is visible."""
        stack = self.outer.copy()
        visible = np.flatnonzero(~self.hidden)
        stack[visible] = self._push(self.outer[visible], self._target[visible], np.full(len(visible), -1))
        return stack

    def _push(self, above: NDArray[np.int64], target: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the stacks that have (target, place) on top of `above`."""
        limit = (1 << 20) - 1
        key = (above + 1) << 40 | target << 20 | np.minimum(place + 1, limit)
        distinct, inverse = np.unique(key, return_inverse=True)
        numbers = np.empty(len(distinct), np.int64)
        for i, packed in enumerate(distinct.tolist()):
            number = self._numbers.get(packed)
            if number is None:
                number = self._numbers[packed] = len(self._nodes)
                self._nodes.append(((packed >> 40) - 1, packed >> 20 & limit, (packed & limit) - 1))
            numbers[i] = number
        return numbers[inverse]

    def stacks(self, most_frames: int | None = None) -> list[tuple[str, ...]]:
        """Every stack as texts, innermost frame first; ValueError if they have more than `most_frames`."""
        frames = 0
        lines = LineNumbers()
        stacks: list[tuple[str, ...]] = []
        for above, target, place in self._nodes:  # a stack comes after the one above it
            text, code = self._targets[target].text, self._targets[target].code
            if code is not None:
                text = f"{self._targets[target].file}({lines(code, place)}): {code.co_name}"
            stacks.append((text, *stacks[above]) if above != _ROOT else (text,))
            frames += len(stacks[-1]) + len(text) // 8
            if most_frames is not None and frames > most_frames:
                raise ValueError("stacks are too large")
        return stacks


class LineNumbers:
    """Line numbers of bytecode offsets; the table of a code object is built once."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[list[int], list[int]]] = {}

    def __call__(self, code: CodeType | SavedCode, place: int) -> int:
        """The line of an offset; that of the function itself for -1."""
        if place < 0:
            return code.co_firstlineno
        table = self._tables.get(id(code))
        if table is None:
            known = [(start, line) for start, _, line in code.co_lines() if line is not None]
            table = self._tables[id(code)] = ([start for start, _ in known], [line for _, line in known])
        at = bisect_right(table[0], place) - 1
        return table[1][at] if at >= 0 else code.co_firstlineno
