"""`profile(max_memory_mb=N, mode="ring")`: the newest events within a bound of memory, and a count of those dropped.

Rows move from the recorder's lists into blocks, which `ThreadRecording.compacted` shares, so that `assembly.freeze` reads
the window as it reads any other. The oldest block of all threads is dropped first.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..._dispatch import observer
from ..recording import allocations
from ..recording.recorder import Recorder, ThreadRecording, recorders_lock
from ..recording.tensor_notes import TOUCH_WIDTH
from ..store.distinct import distinct_values
from .base import RetentionPolicy
from .drain import Table, pop_rows

# Time between two drains: the recorder's lists take five times the memory of the blocks.
_PAUSE_S = 0.05
# How many blocks share the memory. They are of one size and reused, so that memory is not fragmented.
_BLOCKS = 256
_LARGEST_BLOCK = 1 << 20
_BYTES_PER_ENTRY = 36  # of a list of numbers: the pointer and the number
_ROWS_PER_TURN = 1 << 15


class _Block:
    """A table of which the first `used` rows are filled, with rows of one thread."""

    def __init__(self, recording: ThreadRecording, table: Table) -> None:
        self.recording = recording
        self.table = table
        self.used = 0

    @property
    def until(self) -> int:
        """When its last row ended."""
        return int(self.table[self.used - 1, 2])

    @property
    def rows(self) -> Table:
        """The filled part of the table."""
        return self.table[: self.used]


class Ring(RetentionPolicy):
    """Keeps the newest events of a window."""

    def __init__(self, max_memory_mb: float) -> None:
        super().__init__(_PAUSE_S)
        self._most = int(max_memory_mb * (1 << 20))
        self._block_bytes = min(max(self._most // _BLOCKS, 1 << 10), _LARGEST_BLOCK)
        self._blocks: dict[int, deque[_Block]] = {}  # by id() of the ThreadRecording, oldest block first
        self._free: list[Table] = []
        self._count = 0  # blocks in use
        self._dropped = 0
        self._trimmed_to = 0

    @property
    def dropped_events(self) -> int:
        """How many events of the window were dropped because newer ones needed the memory."""
        return self._dropped

    def on_window_start(self) -> None:
        """Begin with no rows; the blocks of the window before are reused."""
        self._free += [block.table for blocks in self._blocks.values() for block in blocks]
        self._blocks.clear()
        self._count = self._dropped = self._trimmed_to = 0

    def drain(self) -> None:
        """Move the new rows into blocks, and drop the oldest while there are more bytes than max_memory_mb."""
        assert self.window is not None
        recorder = self.window.recorder
        with recorders_lock:
            ended = recorder.end_with_threads()
            for recording in list(recorder.thread_recordings):
                while True:
                    rows = pop_rows(recording.rows, recording.width, _ROWS_PER_TURN)
                    self._add(recording, rows)
                    self._shrink(recorder)
                    if len(rows) < _ROWS_PER_TURN:
                        break
                for window in recording.windows:
                    window.gather()
            self._shrink(recorder)
            gone = [recording for recording in ended if self._has_none_of(recording)]
            recorder.forget(gone)
            for recording in gone:
                self._blocks.pop(id(recording), None)

    def _has_none_of(self, recording: ThreadRecording) -> bool:
        """Whether everything that a thread recorded has been dropped."""
        calls = sum(window.entries for window in recording.windows)
        modules = recording.modules.entries if recording.modules is not None else 0
        return not self._blocks.get(id(recording)) and not recording.rows and not calls and not modules

    def _add(self, recording: ThreadRecording, rows: Table) -> None:
        blocks = self._blocks.setdefault(id(recording), deque())
        while len(rows):
            if not blocks or blocks[-1].used == len(blocks[-1].table):
                blocks.append(_Block(recording, self._table(recording.width)))
                recording.compacted.append(blocks[-1].rows)
            block = blocks[-1]
            count = min(len(rows), len(block.table) - block.used)
            block.table[block.used : block.used + count] = rows[:count]
            block.used += count
            recording.compacted[-1] = block.rows
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
                self._trimmed_to = (begun + now) // 2  # no rows, only logs: drop the older half of those
                for recording in recorder.thread_recordings:
                    self._trim_thread(recorder, recording, self._trimmed_to)
                self._trim_device(self._trimmed_to)
                continue
            blocks, recording, until = self._blocks[id(oldest.recording)], oldest.recording, oldest.until
            blocks.popleft()
            del recording.compacted[0]
            self._dropped += oldest.used
            self._count -= 1
            self._free.append(oldest.table)
            self._trim_thread(recorder, recording, until)
            self._trimmed_to = max(self._trimmed_to, until)
            self._trim_marks(recorder)

    def _size(self, recorder: Recorder) -> int:
        lists = sum(map(len, recorder.memory.rows.values())) if recorder.memory is not None else 0
        for recording in recorder.thread_recordings:
            lists += len(recording.touched) + sum(window.entries for window in recording.windows)
            lists += recording.modules.entries if recording.modules is not None else 0
        device = self.window.device if self.window is not None else None
        lists += 0 if device is None else device.nbytes // _BYTES_PER_ENTRY
        recorder.collect_communications()
        foreign: int = sum(values.nbytes for part in recorder.foreign for values in part.columns.values())
        return self._count * self._block_bytes + lists * _BYTES_PER_ENTRY + foreign

    def _trim_thread(self, recorder: Recorder, recording: ThreadRecording, until: int) -> None:
        """Drop the entries of a thread's logs up to a time."""
        for window in recording.windows:
            self._dropped += window.trim(until)
        if recording.modules is not None:
            calls = recording.modules.trim(until)
            self._dropped += calls if recorder.options.with_stack else 0
        _cut(recording.touched, TOUCH_WIDTH, until)
        if recording.optimizers is not None:
            recording.optimizers.forget(until)
        if recorder.memory is not None and recording.ident in recorder.memory.rows:
            _cut(recorder.memory.rows[recording.ident], allocations.WIDTH, until)
        steps = [number for (_, kind), number in list(recording.spans.items()) if kind == observer.STEP]
        if len(steps) > _BLOCKS:
            in_use = {number for table in recording.compacted for number in distinct_values(table[:, 0]).tolist()}
            recording.spans.forget({number for number in steps[:-2] if number not in in_use})

    def _trim_marks(self, recorder: Recorder) -> None:
        """Drop steps, garbage collections and rows of other processes that are older than every row left."""
        assert self.window is not None
        oldest = min((int(blocks[0].table[0, 1]) for blocks in self._blocks.values() if blocks), default=self._trimmed_to)
        pauses, marks = self.window.gc_log.pauses, recorder.steps
        del pauses[: sum(1 for _, end, _ in list(pauses) if end <= oldest)]
        del marks[: max(0, sum(1 for moment, _ in list(marks) if moment <= oldest) - 1)]
        self._trim_device(oldest)
        while recorder.foreign and int(recorder.foreign[0].columns["end"].max(initial=0)) <= self._trimmed_to:
            self._dropped += len(recorder.foreign.pop(0).columns["start"])

    def _trim_device(self, until: int) -> None:
        if self.window is not None and self.window.device is not None:
            self._dropped += self.window.device.drop_before(until)


def _cut(rows: list[int], width: int, until: int) -> None:
    """Remove the rows up to a time, which is the first number of each row, from a flat list."""
    times = rows[::width]
    count = next((at for at, time in enumerate(times) if time > until), len(times))
    del rows[: count * width]
