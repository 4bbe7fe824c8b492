"""`profile(max_memory_mb=N, mode="ring")`: the newest events within a bound of memory, and a count of those that had to go."""

from __future__ import annotations

from collections import deque

import numpy as np

from ..._dispatch import observer
from ..recording import allocations
from ..recording.op_inputs import TOUCH_WIDTH
from ..recording.recorder import Recorder, ThreadRecording, changing
from .base import RetentionPolicy
from .drain import Table, pop_rows

# How often the recorder's lists, which take five times the room, are emptied.
_PAUSE_S = 0.05
# Rows are kept in blocks of one size, which are used again, so that memory is not torn to pieces. The oldest goes as a whole.
_BLOCKS = 256
_LARGEST_BLOCK = 1 << 20
_BYTES_PER_ENTRY = 36  # of a list of numbers: the pointer and the number
_COUNTED_PER_TURN = 1 << 15


class _Block:
    """Some rows of one thread."""

    def __init__(self, tap: ThreadRecording, table: Table) -> None:
        self.tap = tap
        self.table = table
        self.used = 0

    @property
    def until(self) -> int:
        """When the last of its rows ended."""
        return int(self.table[self.used - 1, 2])

    @property
    def rows(self) -> Table:
        return self.table[: self.used]


class Ring(RetentionPolicy):
    """Keeps the newest events of a window."""

    def __init__(self, max_memory_mb: float) -> None:
        super().__init__(_PAUSE_S)
        self._most = int(max_memory_mb * (1 << 20))
        self._block_bytes = min(max(self._most // _BLOCKS, 1 << 10), _LARGEST_BLOCK)
        self._blocks: dict[int, deque[_Block]] = {}  # by id() of the tap
        self._free: list[Table] = []
        self._count = 0  # blocks in use
        self._dropped = 0
        self._trimmed_to = 0

    @property
    def dropped_events(self) -> int:
        """Events of the window that had to go."""
        return self._dropped

    def opened(self) -> None:
        """Begin with nothing."""
        self._free += [block.table for blocks in self._blocks.values() for block in blocks]
        self._blocks.clear()
        self._count = self._dropped = self._trimmed_to = 0

    def keep(self) -> None:
        """Take the new rows, and let go of the oldest if all together are too many."""
        assert self.window is not None
        recorder = self.window.recorder
        with changing:
            for tap in list(recorder.taps):
                while True:
                    rows = pop_rows(tap.rows, tap.width, _COUNTED_PER_TURN)
                    self._add(tap, rows)
                    self._shrink(recorder)
                    if len(rows) < _COUNTED_PER_TURN:
                        break
                for window in tap.windows:
                    window.gather()
            self._shrink(recorder)

    def _add(self, tap: ThreadRecording, rows: Table) -> None:
        blocks = self._blocks.setdefault(id(tap), deque())
        while len(rows):
            if not blocks or blocks[-1].used == len(blocks[-1].table):
                blocks.append(_Block(tap, self._table(tap.width)))
                tap.kept.append(blocks[-1].rows)
            block = blocks[-1]
            count = min(len(rows), len(block.table) - block.used)
            block.table[block.used : block.used + count] = rows[:count]
            block.used += count
            tap.kept[-1] = block.rows
            rows = rows[count:]

    def _table(self, width: int) -> Table:
        self._count += 1
        while self._free:
            table = self._free.pop()
            if table.shape[1] == width:
                return table
        return np.empty((max(self._block_bytes // (8 * width), 16), width), np.int64)

    def _shrink(self, recorder: Recorder) -> None:
        while self._size(recorder) > self._most:
            oldest = min((blocks[0] for blocks in self._blocks.values() if blocks), key=lambda block: block.until, default=None)
            if oldest is None:
                begun, now = max(self._trimmed_to, recorder.clock_start_ns), recorder.clock()
                if now - begun < 2:
                    return
                self._trimmed_to = (begun + now) // 2  # there are only logs: the older half goes
                for tap in recorder.taps:
                    self._trim_thread(recorder, tap, self._trimmed_to)
                continue
            blocks, tap, until = self._blocks[id(oldest.tap)], oldest.tap, oldest.until
            blocks.popleft()
            del tap.kept[0]
            self._dropped += oldest.used
            self._count -= 1
            self._free.append(oldest.table)
            self._trim_thread(recorder, tap, until)
            self._trimmed_to = max(self._trimmed_to, until)
            self._trim_marks(recorder)

    def _size(self, recorder: Recorder) -> int:
        lists = sum(map(len, recorder.memory.rows.values())) if recorder.memory is not None else 0
        for tap in recorder.taps:
            lists += len(tap.touched) + sum(window.entries for window in tap.windows)
            lists += tap.modules.entries if tap.modules is not None else 0
        foreign: int = sum(values.nbytes for one in recorder.foreign for values in one.columns.values())
        return self._count * self._block_bytes + lists * _BYTES_PER_ENTRY + foreign

    def _trim_thread(self, recorder: Recorder, tap: ThreadRecording, until: int) -> None:
        """Let go of what a thread's logs have up to a moment."""
        for window in tap.windows:
            self._dropped += window.trim(until)
        if tap.modules is not None:
            calls = tap.modules.trim(until)
            self._dropped += calls if recorder.options.with_stack else 0
        _cut(tap.touched, TOUCH_WIDTH, until)
        if recorder.memory is not None and tap.ident in recorder.memory.rows:
            _cut(recorder.memory.rows[tap.ident], allocations.WIDTH, until)
        steps = [number for (_, kind), number in list(tap.spans.items()) if kind == observer.STEP]
        if len(steps) > _BLOCKS:
            kept = {number for table in tap.kept for number in np.unique(table[:, 0]).tolist()}
            tap.spans.forget({number for number in steps[:-2] if number not in kept})

    def _trim_marks(self, recorder: Recorder) -> None:
        """Let go of steps, pauses and rows of other processes that are older than everything that is kept."""
        assert self.window is not None
        oldest = min((int(blocks[0].table[0, 1]) for blocks in self._blocks.values() if blocks), default=self._trimmed_to)
        pauses, marks = self.window.gc_watch.pauses, recorder.steps
        del pauses[: sum(1 for _, end, _ in list(pauses) if end <= oldest)]
        del marks[: max(0, sum(1 for moment, _ in list(marks) if moment <= oldest) - 1)]
        while recorder.foreign and int(recorder.foreign[0].columns["end"].max(initial=0)) <= self._trimmed_to:
            self._dropped += len(recorder.foreign.pop(0).columns["start"])


def _cut(rows: list[int], width: int, until: int) -> None:
    """Take the rows up to a moment, which each row begins with, off a flat list."""
    times = rows[::width]
    count = next((at for at, time in enumerate(times) if time > until), len(times))
    del rows[: count * width]
