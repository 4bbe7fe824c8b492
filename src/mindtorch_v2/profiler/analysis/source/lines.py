"""Time, memory and calls by line of the program's own code.

An event belongs to the innermost line of the program that was on the stack, whatever library is in between. Time of Python
itself is known between two calls: it belongs to the first loop between them, else to the first line between them, else to the
line of the later one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...config import SAMPLED_STACKS
from ...store import tree
from ...store.store import EventStore
from ..module_tree import in_backward
from .code import executable_lines
from .files import FOUND, MISSING, SourceFiles, SourceText
from .places import Frame, parsed

_MOST_OPS = 8  # of a line that are named
_BY_FUNCTION = (
    "The recording knows functions, not lines: figures stand where a function is defined, those of code outside of functions "
    "at the first line of its file."
)


@dataclass
class Line:
    """What one line did; nanoseconds and bytes.

    total_ns: while the line was on the stack. self_ns: while it was the innermost line of the program; python_ns is the part
    of it in the program's own Python code, some of which may be of the lines up to python_to. backward_ns: backward nodes of
    the ops of this line, which ran elsewhere. calls: those that the line made itself.
    """

    number: int
    calls: int = 0
    total_ns: int = 0
    self_ns: int = 0
    python_ns: int = 0
    python_to: int = 0
    backward_ns: int = 0
    device_ns: int = 0
    bytes: int = 0
    ops: dict[str, int] = field(default_factory=dict)  # self times by op, most first

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        return dict(vars(self))


@dataclass
class FileLines:
    """A file of the program with the lines on which something was recorded, by number."""

    name: str
    source: SourceText
    lines: dict[int, Line] = field(default_factory=dict)

    @property
    def self_ns(self) -> int:
        """Time in which the innermost line of the program was in this file."""
        return sum(line.self_ns for line in self.lines.values())

    def line(self, number: int) -> Line:
        """The figures of a line; they are added if there are none."""
        return self.lines.setdefault(number, Line(number))

    @property
    def note(self) -> str:
        """What there is to say of the file itself; "" if it is as it was."""
        if self.source.state == FOUND:
            return ""
        if self.source.state == MISSING:
            return "The file is not here, so its text is missing."
        return "The file has changed since it was recorded: lines may have moved."


class SourceLines(NamedTuple):
    """The files of a program, most self time first, and the time of events with no line of the program above them."""

    files: list[FileLines]
    elsewhere_ns: int
    has_memory: bool
    by_function: bool  # whether the recording knows functions only, as traces of PyTorch do
    sampled: str = ""  # of how many ops the stack is known, where stacks were sampled: only these have a line

    @property
    def limits(self) -> str:
        """What a reader of the figures must know of them."""
        told = [_BY_FUNCTION] if self.by_function else []
        told += [f"Only ops with a stack count: {self.sampled}."] if self.sampled else []
        return " ".join(told)


def source_lines(store: EventStore, folder: str | None = None) -> SourceLines:
    """The figures of every line of the program; no files where no stacks were recorded.

    folder: where to look for files, beside the recorded place and sys.path.
    """
    if not (store.stack >= 0).any() and not (store.kind == observer.PYTHON).any():
        return SourceLines([], 0, False, False)
    # Steps and named ranges are no calls: what is in them was called by the function that has them.
    called = np.flatnonzero((store.kind != observer.STEP) & (store.kind != observer.SCOPE))
    return _Lines(store._select_rows(called), SourceFiles(store, folder)).result()


class _Lines:
    def __init__(self, store: EventStore, sources: SourceFiles) -> None:
        self.store, self.sources = store, sources
        self.files: dict[str, FileLines] = {}
        self.functions = _Functions(sources)
        self._numbers: dict[tuple[str, int], int] = {}  # of lines
        self._host = np.flatnonzero((store.device_type == 0) & (store.kind != observer.MEMORY))
        self._sampled = str(store.metadata.get(SAMPLED_STACKS, ""))
        knows_lines = (store.stack[self._host] >= 0).any() and not store.options.get("stacks_by_function")
        self.by_function = not knows_lines and not self._sampled
        # Each stack's innermost line of the program, and its innermost frame of any kind if that is the program's.
        self._line_of_stack = np.array([*(self._innermost(stack) for stack in store.stacks), -1], np.int64)
        self._first_of_stack = np.array([*(self._first(stack) for stack in store.stacks), -1], np.int64)
        calls = {n: self._number(text) for n, text in enumerate(store.names) if parsed(text) is not None}
        self._line_of_name = np.array([calls.get(n, -1) for n in range(len(store.names))] or [-1], np.int64)

    def _number(self, text: str) -> int:
        """The number of the line in a frame's text; -1 if the file is not the program's."""
        frame = parsed(text)
        if frame is None or not self.sources.is_own(frame.file):
            return -1
        # The line of a function that ran before the recording began is the one it had come to.
        line = self.functions.defined(frame) if self.by_function else frame.line
        return self._numbers.setdefault((frame.file, line), len(self._numbers))

    def _innermost(self, stack: Sequence[str]) -> int:
        return next((number for text in stack if (number := self._number(text)) >= 0), -1)

    def _first(self, stack: Sequence[str]) -> int:
        return self._number(stack[0]) if stack else -1

    def result(self) -> SourceLines:
        store = self.store
        own_function = np.zeros(len(store), np.bool_)
        own_function[self._host] = (store.kind == observer.PYTHON)[self._host] & (
            self._line_of_name[store.name[self._host]] >= 0
        )
        line = self._lines_of_rows(own_function)
        # What compiles ops at their first use is no line's time.
        rest = self._host[~own_function[self._host] & ~store.is_first_use[self._host]]
        columns = {"total_ns": self._totals(line, rest)}  # first: it numbers lines that only lead to others
        count = len(self._numbers)
        columns["self_ns"] = self._sums(line[rest], store.self_ns[rest])
        self._place_python(own_function, line, columns)
        columns["calls"] = self._calls(line, own_function)
        backward = rest[in_backward(store)[rest]]
        origin = self._line_of_stack[store.call_stack[backward]]
        moved = origin != self._line_of_stack[store.stack[backward]]
        columns["backward_ns"] = self._sums(origin[moved], store.self_ns[backward[moved]])
        columns["device_ns"] = self._sums(line[self._host], store.self_device_ns[self._host])
        grown = np.flatnonzero((store.mem_bytes > 0) & (store.mem_event >= 0))
        columns["bytes"] = self._sums(line[store.mem_event[grown]], store.mem_bytes[grown])
        for (file, number), at in self._numbers.items():
            figures = {name: int(values[at]) for name, values in columns.items()}
            if any(figures.values()):
                vars(self._file(file).line(number)).update(figures)
        self._name_ops(line, rest, count)
        elsewhere = int(store.self_ns[rest[line[rest] < 0]].sum() + store.self_ns[store.is_first_use].sum())
        files = sorted(self.files.values(), key=lambda one: -one.self_ns)
        return SourceLines(files, elsewhere, bool(len(store.mem_time)), self.by_function, self._sampled)

    def _lines_of_rows(self, own_function: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The line that each row was called from; where no stack tells, that of what called it."""
        store = self.store
        line = self._line_of_stack[store.stack]
        known = (store.stack >= 0) | own_function
        above = tree.nearest_ancestor(store.parent, known)
        # Of a function of the program without a line in it, as in PyTorch's traces, the line where it is defined.
        inside = np.where(own_function, self._line_of_name[store.name], line)
        return np.where(store.stack >= 0, line, np.append(inside, -1)[above])

    def _sums(self, line: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
        return tree.sums(line, values, len(self._numbers))

    def _totals(self, line: NDArray[np.int64], rest: NDArray[np.intp]) -> NDArray[np.int64]:
        """Self times of rows, summed over all lines of the program on the stack of each."""
        store = self.store
        by_stack = tree.sums(store.stack[rest], store.self_ns[rest], len(store.stacks))
        used = np.flatnonzero(by_stack).tolist()
        lines_of = {number: {self._number(text) for text in store.stacks[number]} for number in used}
        totals = np.zeros(len(self._numbers), np.int64)
        for number, lines in lines_of.items():
            for at in lines:
                if at >= 0:
                    totals[at] += by_stack[number]
        without = rest[store.stack[rest] < 0]
        return totals + self._sums(line[without], store.self_ns[without])

    def _calls(self, line: NDArray[np.int64], own_function: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many calls each line made itself: not those that its calls made in turn."""
        store, host = self.store, self._host
        above = store.parent[host]
        outer = np.where(above >= 0, line[above], -1)
        first = (outer != line[host]) | ((above >= 0) & own_function[above])
        made = host[first & ~np.isin(store.kind[host], (observer.BACKWARD, observer.ENGINE, observer.FIRST_USE))]
        return self._sums(line[made], np.ones(len(made), np.int64))

    # ------------------------------------------------------------------ Python's own time

    def _place_python(
        self, own_function: NDArray[np.bool_], line: NDArray[np.int64], columns: dict[str, NDArray[np.int64]]
    ) -> None:
        """Add the self time of the program's functions to their lines, by the calls around each stretch of it."""
        store = self.store
        places = _Places(self)
        grown: dict[int, int] = {}
        until: dict[int, int] = {}
        totals: dict[int, int] = {}
        for (function, before, after, stack), spent in self._stretches(own_function).items():
            at, last = places.line(function, before, after)
            grown[at] = grown.get(at, 0) + spent
            until[at] = max(until.get(at, 0), last)
            # On the stack are the line itself and those that called the function.
            callers = {self._number(text) for text in store.stacks[stack]} if stack >= 0 else set()
            for on_stack in {at, *callers} - {-1}:
                totals[on_stack] = totals.get(on_stack, 0) + spent
        count = len(self._numbers)
        python, total, columns["python_to"] = (_filled(values, count) for values in (grown, totals, until))
        for name, values in columns.items():
            columns[name] = np.pad(values, (0, count - len(values)))
        columns["python_ns"] = python
        columns["self_ns"] += python
        columns["total_ns"] += total

    def _stretches(self, own_function: NDArray[np.bool_]) -> dict[tuple[int, int, int, int], int]:
        """Nanoseconds by (name of a function, line of the call before, line of the call after, stack of its caller).

        A line is -1 where there is no such call, or where its line is not known.
        """
        store = self.store
        functions = np.flatnonzero(own_function)
        children = self._host[(store.parent[self._host] >= 0)]
        children = children[own_function[store.parent[children]]]
        children = children[np.argsort(store.parent[children], kind="stable")]
        rows = np.concatenate([children, functions])  # a function itself stands for the stretch after its last call
        owner = np.concatenate([store.parent[children], functions])
        starts = np.concatenate([store.start[children], store.nested_end[functions]])
        ends = np.concatenate([store.nested_end[children], store.nested_end[functions]])
        lines = np.concatenate([self._first_of_stack[store.stack[children]], np.full(len(functions), -1)])
        is_end = np.arange(len(rows)) >= len(children)
        order = np.lexsort((starts, is_end, owner))
        owner, starts, ends, lines = owner[order], starts[order], ends[order], lines[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = owner[1:] != owner[:-1]
        previous = np.where(first, store.start[owner], np.roll(ends, 1))
        before = np.where(first, -1, np.roll(lines, 1))
        spent = np.maximum(starts - previous, 0)
        packed = np.stack([store.name[owner].astype(np.int64), before, lines, store.stack[owner].astype(np.int64)])
        distinct, which = np.unique(packed, axis=1, return_inverse=True)
        sums = tree.sums(which.reshape(-1), spent, distinct.shape[1])
        keys = zip(*distinct.tolist(), strict=True)
        return {key: value for key, value in zip(keys, sums.tolist(), strict=True) if value}

    # ------------------------------------------------------------------ ops

    def _name_ops(self, line: NDArray[np.int64], rest: NDArray[np.intp], count: int) -> None:
        """Give each line the names of the ops that took most of its self time."""
        store = self.store
        rows = rest[(line[rest] >= 0) & np.isin(store.kind[rest], (observer.OP, observer.BACKWARD, observer.ENGINE))]
        labels = len(store.labels)
        pairs, which = np.unique(line[rows] * labels + store.label[rows], return_inverse=True)
        sums = tree.sums(which, store.self_ns[rows], len(pairs))
        keys = {number: key for key, number in self._numbers.items()}
        for at in np.argsort(-sums, kind="stable").tolist():
            number, label = divmod(int(pairs[at]), labels)
            file, text = keys[number]
            ops = self._file(file).line(text).ops
            if len(ops) < _MOST_OPS and sums[at]:
                ops[store.labels[label]] = int(sums[at])

    def _file(self, name: str) -> FileLines:
        known = self.files.get(name)
        if known is None:
            known = self.files[name] = FileLines(name, self.sources.read(name))
        return known


class _Functions:
    """The functions of files, by the text of the files; of none where it is missing or is no Python."""

    def __init__(self, sources: SourceFiles) -> None:
        self._sources = sources
        self._code: dict[str, list[tuple[CodeType, list[int]]]] = {}
        self._loops: dict[str, frozenset[int]] = {}

    def lines(self, frame: Frame) -> list[int]:
        """The lines of a function that can run, in order."""
        found = self._find(frame)
        return [] if found is None else found[1]

    def defined(self, frame: Frame) -> int:
        """The line where a function is defined, as far as that is known; the first one for the code of the file itself."""
        found = self._find(frame)
        return frame.line if found is None else found[0].co_firstlineno

    def loops(self, file: str) -> frozenset[int]:
        """The lines where loops of a file begin."""
        self._read(file)
        return self._loops[file]

    def _find(self, frame: Frame) -> tuple[CodeType, list[int]] | None:
        """A function of that name that is defined at the frame's line, or else has it: it may have run before the recording."""
        named = [(code, lines) for code, lines in self._read(frame.file) if code.co_name == frame.function]
        exact = [each for each in named if each[0].co_firstlineno == frame.line]
        return next(iter(exact or (each for each in named if frame.line in each[1])), None)

    def _read(self, file: str) -> list[tuple[CodeType, list[int]]]:
        if file not in self._code:
            text = self._sources.read(file)
            self._code[file], self._loops[file] = executable_lines("\n".join(text.lines), text.path)
        return self._code[file]


class _Places:
    """Which line a stretch of Python time belongs to, by the source of the function where that can be read."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._texts = list(lines._numbers)

    def line(self, function: int, before: int, after: int) -> tuple[int, int]:
        """The number of the line, and the last line that the time may be of.

        Of the stretch are given the number of the function's name and those of the lines of the calls around it.
        """
        store, numbers, functions = self._lines.store, self._lines._numbers, self._lines.functions
        frame = parsed(store.names[function])
        assert frame is not None
        if self._lines.by_function:
            return self._lines._number(store.names[function]), 0
        file = frame.file
        a = self._texts[before][1] if before >= 0 else None
        b = self._texts[after][1] if after >= 0 else None
        between = _between(functions.lines(frame), a, b)
        if between:
            loops = functions.loops(file)
            number = next((line for line in between if line in loops), between[0])
        else:
            number = b if b is not None else a if a is not None else frame.line
        return numbers.setdefault((file, number), len(numbers)), between[-1] if len(between) > 1 else 0


def _filled(values: dict[int, int], count: int) -> NDArray[np.int64]:
    """A column of `count` numbers, 0 where there is none."""
    column = np.zeros(count, np.int64)
    column[list(values)] = list(values.values())
    return column


def _between(known: list[int], before: int | None, after: int | None) -> list[int]:
    """The lines that run after one call and before another."""
    if before is not None and after is not None and after <= before:
        return []  # a loop, or one line: the line of the later call
    low = bisect_right(known, before) if before is not None else 1  # the first is the line of the definition
    high = bisect_left(known, after) if after is not None else len(known)
    return known[low:high]
