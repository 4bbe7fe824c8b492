"""Moving what was recorded off a recorder's lists while it goes on recording.

In: the flat lists of each ThreadRecording. Out: the same as arrays. A thread appends each row by a single call, which no
other thread can interrupt, so that whole rows may be removed from the front of a list at any time: no recorded thread
ever waits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..assembly import columns
from ..recording import allocations, module_calls
from ..recording.python_calls.stream import CallSegmentPart
from ..recording.recorder import Recorder, ThreadRecording, recorders_lock
from ..recording.tensor_notes import TOUCH_WIDTH

Table = NDArray[np.int64]


class Drained(NamedTuple):
    """What one thread has recorded since the last drain."""

    recording: ThreadRecording
    rows: Table
    modules: Table
    calls: list[CallSegmentPart]
    touched: Table


def drain_threads(recorder: Recorder, into: list[Drained]) -> None:
    """Add everything that the threads have recorded since the last drain to a list, and remove it from theirs.

    If that fails (no memory), rows are in `into` or still with their thread.
    """
    with recorders_lock:
        ended = recorder.end_with_threads()
        # Without an id it has not started on its thread yet. One by one: what was drained before a failure is in the list.
        into.extend(_drain_thread(recording) for recording in list(recorder.thread_recordings) if recording.ident)
        recorder.forget(ended)
        if recorder.memory is not None and recorder.memory.ends:
            recorder.memory.ends.clear()  # no tree is made of drained rows
        if recorder.memory is not None and recorder.memory.moves:
            recorder.memory.moves.clear()


def _drain_thread(recording: ThreadRecording) -> Drained:
    rows, touched = rows_of(recording.rows, recording.width), rows_of(recording.touched, TOUCH_WIDTH)
    modules = recording.modules.drain() if recording.modules is not None else np.empty((0, module_calls.WIDTH), np.int64)
    calls = [part for window in recording.windows for part in window.drain()]
    del recording.rows[: rows.size], recording.touched[: touched.size]
    if recording.optimizers is not None:
        recording.optimizers.steps.clear()
    return Drained(recording, rows, modules, calls, touched)


def rows_of(values: list[int], width: int, most: int | None = None) -> Table:
    """Whole rows, at most `most` of them, at the front of a flat list, as a table."""
    count = min(len(values) // width, len(values) if most is None else most) * width
    return np.fromiter(values[:count], np.int64, count).reshape(-1, width)


def pop_rows(values: list[int], width: int, most: int | None = None) -> Table:
    """The same, removed from the list."""
    table = rows_of(values, width, most)
    del values[: table.size]
    return table


class MemoryDrain:
    """Drains allocations and frees. A free is recorded without its bytes, so the allocations that are alive are kept here."""

    def __init__(self) -> None:
        # Rows of thread, time, bytes and address that are newer than the last drain's time, see below.
        self._too_new = np.empty((0, 4), np.int64)
        self._latest: dict[int, int] = {}  # the time of each thread's last row
        # Rows of address and bytes.
        self._alive = np.empty((0, 2), np.int64)

    def drain(self, recorder: Recorder, last: bool) -> Table:
        """Rows of operating-system thread id, time, bytes (negative when freed) and address.

        last: the recording has ended, so that no row need be held back.
        """
        if recorder.memory is None:
            return self._too_new[:0]
        # A thread may free what another one allocated. What was freed by this time was allocated, and recorded, before it;
        # newer rows wait for the next drain, since the allocation that they belong to may not have been drained.
        until = recorder.clock()
        parts = [self._too_new]
        for ident, rows in list(recorder.memory.rows.items()):
            table = pop_rows(rows, allocations.WIDTH)
            if len(table):  # the clock may have gone back, see assembly.clock_order
                table[:, 0] = np.maximum.accumulate(np.maximum(table[:, 0], self._latest.get(ident, 0)))
                self._latest[ident] = int(table[-1, 0])
            parts.append(np.column_stack([np.full(len(table), ident), table]))
        table = np.concatenate(parts)
        done = np.ones(len(table), np.bool_) if last else table[:, 1] <= until
        table, self._too_new = table[done], table[~done]
        before = np.column_stack([np.full((len(self._alive), 2), -1), self._alive[:, ::-1]])
        whole = np.concatenate([before, table])
        known, size = columns.of_this_recording(whole[:, 1:])
        self._alive = _alive_after(whole)
        known[: len(before)] = False
        whole[:, 2] = size
        return whole[known]


def _alive_after(table: Table) -> Table:
    """Address and bytes of what rows of thread, time, bytes and address allocate and do not free."""
    _, time, size, address = table.T
    order = np.lexsort((time, address))
    last = np.ones(len(order), np.bool_)
    last[:-1] = address[order[1:]] != address[order[:-1]]
    newest = order[last]
    alive = newest[size[newest] >= 0]
    return np.column_stack([address[alive], size[alive]])
