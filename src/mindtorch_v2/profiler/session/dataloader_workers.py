"""DataLoader workers: each task that the parent sends while it records is recorded in the worker, and comes back.

The parent's clock is the worker's, too: both count from the machine's start.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..._dispatch import observer
from ..assembly.freeze import freeze
from ..recording.recorder import ForeignRows, Options, Recorder, active_recorders

FETCH = "DataLoader worker: fetch"


class WorkerTask:
    """Goes to a worker along with what it is to fetch. Made by the parent, begun and ended by the worker."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._recorder: Recorder | None = None
        self._span: observer.span | None = None
        self._worker = 0

    def begin(self, worker: int) -> None:
        """Record from now on."""
        self._worker = worker
        self._recorder = Recorder(self._options)
        self._recorder.start()
        self._span = observer.span(FETCH)
        self._span.__enter__()

    def end(self) -> WorkerRows:
        """Record no more; returns what goes back with the batch."""
        assert self._recorder is not None and self._span is not None
        self._span.__exit__(None, None, None)
        self._recorder.stop()
        store = freeze(self._recorder, release=True)
        names = ("name", "kind", "start", "end", "shapes", "stack", "module", "flops")
        columns = {name: np.array(getattr(store, name)) for name in names}
        tables = {name: list(getattr(store, name)) for name in ("names", "input_infos", "stacks", "modules")}
        return WorkerRows(ForeignRows(os.getpid(), f"DataLoader worker {self._worker} (pid {os.getpid()})", columns, tables))


class WorkerRows:
    """What a worker recorded, on its way to whoever records in the parent."""

    def __init__(self, rows: ForeignRows) -> None:
        self._rows = rows

    def deliver(self) -> None:
        """Hand it to every recording under way."""
        for recorder in list(active_recorders):
            recorder.foreign.append(self._rows)


def _task() -> Any:
    """What a worker is to record for everybody who records now; None if nobody does."""
    wanted = [recorder.options for recorder in active_recorders]
    if not wanted:
        return None
    flags = {name: any(getattr(options, name) for options in wanted) for name in Options._fields}
    return WorkerTask(Options(**{**flags, "profile_memory": False, "all_threads": False}))


observer.for_workers = _task
