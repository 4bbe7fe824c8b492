"""Taking what was recorded off a recorder that goes on recording.

Threads add to their lists by single calls, which nothing can come between, so that the beginning of a list may be taken
away at any time. Nothing here makes a recorded thread wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..assembly import columns
from ..recording import allocations, module_calls
from ..recording.op_inputs import TOUCH_WIDTH
from ..recording.python_calls.stream import Piece
from ..recording.recorder import Recorder, ThreadRecording, changing

Table = NDArray[np.int64]


class Drained(NamedTuple):
    """What one thread has recorded since the last time."""

    tap: ThreadRecording
    rows: Table
    modules: Table
    calls: list[Piece]
    touched: Table


def take(recorder: Recorder) -> list[Drained]:
    """Everything that the threads have recorded so far; they no longer have it."""
    with changing:
        return [
            Drained(
                tap,
                pop_rows(tap.rows, tap.width),
                tap.modules.take() if tap.modules is not None else np.empty((0, module_calls.WIDTH), np.int64),
                [piece for window in tap.windows for piece in window.take()],
                pop_rows(tap.touched, TOUCH_WIDTH),
            )
            for tap in list(recorder.taps)
            if tap.ident  # one that has not arrived on its thread yet has nothing
        ]


def pop_rows(values: list[int], width: int, most: int | None = None) -> Table:
    """The whole rows of a flat list, or so many of them, which are taken out of it."""
    count = min(len(values) // width, len(values) if most is None else most) * width
    table = np.fromiter(values[:count], np.int64, count).reshape(-1, width)
    del values[:count]
    return table


class MemoryDrain:
    """Allocations and frees, with the bytes of each: a free is noted without, so what is allocated is remembered."""

    def __init__(self) -> None:
        # Rows of thread, time, bytes, address that came after the last moment at which all threads were looked at.
        self._waiting = np.empty((0, 4), np.int64)
        # Rows of address and bytes.
        self._alive = np.empty((0, 2), np.int64)

    def take(self, recorder: Recorder, last: bool) -> Table:
        """Rows of operating-system thread id, time, bytes (negative when freed) and address.

        last: nothing will come after it.
        """
        if recorder.memory is None:
            return self._waiting[:0]
        # Memory may be freed by another thread than it was allocated by. Whatever is freed up to this moment was
        # allocated, and noted, before it.
        until = recorder.clock()
        parts = [self._waiting]
        for ident, rows in list(recorder.memory.rows.items()):
            table = pop_rows(rows, allocations.WIDTH)
            parts.append(np.column_stack([np.full(len(table), ident), table]))
        table = np.concatenate(parts)
        done = np.ones(len(table), np.bool_) if last else table[:, 1] <= until
        table, self._waiting = table[done], table[~done]
        before = np.column_stack([np.full((len(self._alive), 2), -1), self._alive[:, ::-1]])
        whole = np.concatenate([before, table])
        kept, size = columns.of_this_recording(whole[:, 1:])
        self._alive = _alive_after(whole)
        kept[: len(before)] = False
        whole[:, 2] = size
        return whole[kept]


def _alive_after(table: Table) -> Table:
    """Address and bytes of what is allocated and not freed in rows of thread, time, bytes and address."""
    _, time, size, address = table.T
    order = np.lexsort((time, address))
    last = np.ones(len(order), np.bool_)
    last[:-1] = address[order[1:]] != address[order[:-1]]
    found = order[last]
    found = found[size[found] >= 0]
    return np.column_stack([address[found], size[found]])
