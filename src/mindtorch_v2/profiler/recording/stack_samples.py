"""Stacks of some ops: `with_stack="sampled"` notes where an op was called from, at most so many times a second.

In: the rows of a thread's ops as they end. Out: which ops have a stack, and the stacks as code objects and places in them,
which `assembly.sampled_stacks` turns into texts. Python calls are not traced, so that all other ops cost one Python call more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType

from .python_calls.stream import OUTERMOST

AppendRow = Callable[[tuple[int, ...]], None]

# A sample is followed by a rest of at least this many times what it took, so that deep stacks cost no more than a twentieth.
_REST = 20
WIDTH = 3  # op id, start, number of the stack


class StackSamples:
    """The sampled stacks of one thread."""

    def __init__(self, clock: Callable[[], int], per_second: float) -> None:
        """At most `per_second` samples a second of `clock`, which counts nanoseconds."""
        self.rows: list[int] = []  # of WIDTH numbers
        self.stacks: list[tuple[tuple[CodeType, int], ...]] = []  # code and place of each frame, innermost first
        self._numbers: dict[tuple[int, ...], int] = {}
        self._clock = clock
        self._interval = round(1e9 / per_second)
        self._due = 0

    def wrap_append_row(self, append_row: AppendRow) -> AppendRow:
        """A function that hands a row on, and notes the stack if it is time for the next sample. Called by entries of ops."""

        def append(row: tuple[int, ...]) -> None:
            append_row(row)
            if row[1] >= self._due:
                self._sample(row, sys._getframe(1))

        return append

    def _sample(self, row: tuple[int, ...], top: FrameType) -> None:
        began = self._clock()
        frames: list[tuple[CodeType, int]] = []
        frame: FrameType | None = top
        while frame is not None and frame.f_code not in OUTERMOST:
            frames.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        # Hashing a code object takes long, so stacks are told apart by id(); `stacks` keeps the codes alive.
        key = tuple([number for code, place in frames for number in (id(code), place)])
        number = self._numbers.get(key)
        if number is None:
            self.stacks.append(tuple(frames))
            number = self._numbers[key] = len(self.stacks) - 1
        self.rows += (row[0], row[1], number)
        now = self._clock()
        self._due = began + max(self._interval, _REST * (now - began))
