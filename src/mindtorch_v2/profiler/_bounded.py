"""`profile(max_memory_mb=N, mode="ring")`: the newest events within a bound of memory, and a count of those that had to go."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from .._dispatch import observer
from . import _alloc
from ._capture import TOUCH_WIDTH
from ._drain import Table, taken_from
from ._keeper import Keeper
from ._recorder import Recorder, Tap, changing

# How often the recorder's lists, which take five times the room, are emptied.
_PAUSE_S = 0.05
# The oldest events go in slices; a slice is at most this part of what is kept, or so.
_SLICES = 32
_BYTES_PER_ENTRY = 36  # of a list of numbers: the pointer and the number


class _Slice(NamedTuple):
    """The rows of all threads up to a moment, beginning where the slice before ends."""

    until: int
    rows: list[tuple[Tap, Table]]

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for _, table in self.rows)


class Ring(Keeper):
    """Keeps the newest events of a window."""

    def __init__(self, max_memory_mb: float) -> None:
        super().__init__(_PAUSE_S)
        self._most = int(max_memory_mb * (1 << 20))
        self._slices: deque[_Slice] = deque()
        self._dropped = 0

    @property
    def dropped_events(self) -> int:
        """Events of the window that had to go."""
        return self._dropped

    def opened(self) -> None:
        """Begin with nothing."""
        self._slices.clear()
        self._dropped = 0

    def keep(self) -> None:
        """Take the new rows, and let go of the oldest if all together are too many."""
        assert self.window is not None
        recorder = self.window.recorder
        with changing:
            now = recorder.clock()
            taken = [(tap, taken_from(tap.rows, tap.width)) for tap in list(recorder.taps)]
            for tap, _ in taken:
                for window in tap.windows:
                    window.gather()
            self._add([(tap, table) for tap, table in taken if len(table)], now)
            self._shrink(recorder)

    def _add(self, rows: list[tuple[Tap, Table]], now: int) -> None:
        size, most = sum(table.nbytes for _, table in rows), self._most // _SLICES
        last = self._slices[-1] if self._slices else None
        if last is not None and last.nbytes + size <= most:
            for tap, table in rows:
                if last.rows and tap.kept and any(table_ is tap.kept[-1] for _, table_ in last.rows):
                    table = np.concatenate([tap.kept.pop(), table])
                tap.kept.append(table)
            touched = {id(tap) for tap, _ in rows}
            kept = [(tap, tap.kept[-1] if id(tap) in touched else table) for tap, table in last.rows]
            present = {id(tap) for tap, _ in kept}
            kept += [(tap, tap.kept[-1]) for tap, _ in rows if id(tap) not in present]
            self._slices[-1] = _Slice(now, kept)
            return
        for until, part in _split(rows, now, -(-size // max(most, 1)) or 1):
            for tap, table in part:
                tap.kept.append(table)
            self._slices.append(_Slice(until, part))

    def _shrink(self, recorder: Recorder) -> None:
        if self._size(recorder) <= self._most:
            return
        # A little more than needed goes, so that logs are not trimmed again and again.
        while self._slices and self._size(recorder) > self._most * (1 - 1 / _SLICES):
            oldest = self._slices.popleft()
            for tap, table in oldest.rows:
                assert tap.kept[0] is table
                del tap.kept[0]
                self._dropped += len(table)
            self._dropped += self._trim_logs(recorder, oldest.until)

    def _size(self, recorder: Recorder) -> int:
        lists = sum(map(len, recorder.memory.rows.values())) if recorder.memory is not None else 0
        for tap in recorder.taps:
            lists += len(tap.touched) + sum(window.entries for window in tap.windows)
            lists += tap.modules.entries if tap.modules is not None else 0
        return sum(one.nbytes for one in self._slices) + lists * _BYTES_PER_ENTRY

    def _trim_logs(self, recorder: Recorder, until: int) -> int:
        """Let go of what the logs have up to a moment; returns how many events that would have become."""
        assert self.window is not None
        gone = 0
        for tap in recorder.taps:
            gone += sum(window.trim(until) for window in tap.windows)
            if tap.modules is not None:
                calls = tap.modules.trim(until)
                gone += calls if recorder.options.with_stack else 0
            _cut(tap.touched, TOUCH_WIDTH, until)
            kept = {number for table in tap.kept for number in np.unique(table[:, 0]).tolist()}
            newest = tap.spans.first + tap.spans.made - 2
            tap.spans.forget({number for (_, kind), number in list(tap.spans.items())
                              if kind == observer.STEP and number not in kept and number < newest})
        if recorder.memory is not None:
            for rows in list(recorder.memory.rows.values()):
                _cut(rows, _alloc.WIDTH, until)
        pauses = self.window.gc_watch.pauses
        del pauses[: sum(1 for _, end, _ in list(pauses) if end <= until)]
        marks = recorder.steps
        del marks[: max(0, sum(1 for moment, _ in list(marks) if moment <= until) - 1)]
        return gone


def _split(rows: list[tuple[Tap, Table]], now: int, count: int) -> list[tuple[int, list[tuple[Tap, Table]]]]:
    """The rows of all threads cut at the same moments into so many parts of about the same size."""
    if count == 1 or not rows:
        return [(now, rows)] if rows else []
    ends = np.sort(np.concatenate([table[:, 2] for _, table in rows]))
    moments = [*ends[np.arange(1, count) * len(ends) // count].tolist(), now]
    made: list[tuple[int, list[tuple[Tap, Table]]]] = []
    place = [0] * len(rows)
    # Rows are noted when they end, so their ends are in order; a clock that was read early makes no difference here.
    ordered = [np.maximum.accumulate(table[:, 2]) for _, table in rows]
    for moment in moments:
        part = []
        for at, (tap, table) in enumerate(rows):
            until = len(table) if moment == now else int(np.searchsorted(ordered[at], moment, side="right"))
            if until > place[at]:
                part.append((tap, table[place[at] : until].copy()))
                place[at] = until
        if part:
            made.append((moment, part))
    return made


def _cut(rows: list[int], width: int, until: int) -> None:
    """Take the rows up to a moment, which each row begins with, off a flat list."""
    times = rows[::width]
    count = next((at for at, time in enumerate(times) if time > until), len(times))
    del rows[: count * width]
