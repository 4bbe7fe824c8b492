"""Recording in DataLoader workers: a task that is sent while the parent records is recorded, and its rows come back.

Parent and worker share a clock (perf_counter_ns counts from the machine's start), so times need no conversion.
"""

from __future__ import annotations

import os

import numpy as np

from ..._dispatch import observer
from ..assembly.freeze import freeze
from ..recording.recorder import ForeignRows, Options, Recorder, active_recorders

FETCH = "DataLoader worker: fetch"


class WorkerTask:
    """Sent to a worker with each fetch: created by the parent, begun and ended by the worker."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._recorder: Recorder | None = None
        self._span: observer.span | None = None
        self._worker = 0

    def begin(self, worker: int) -> None:
        """Start a recorder in worker number `worker`."""
        self._worker = worker
        self._recorder = Recorder(self._options)
        self._recorder.start()
        self._span = observer.span(FETCH)
        self._span.__enter__()

    def end(self) -> WorkerRows:
        """Stop the recorder and return its rows, which go back with the batch."""
        assert self._recorder is not None and self._span is not None
        self._span.__exit__(None, None, None)
        self._recorder.stop()
        store = freeze(self._recorder, release=True)
        names = ("name", "kind", "start", "end", "shapes", "stack", "module", "flops")
        columns = {name: np.array(getattr(store, name)) for name in names}
        tables = {name: list(getattr(store, name)) for name in ("names", "input_infos", "stacks", "modules")}
        return WorkerRows(ForeignRows(os.getpid(), f"DataLoader worker {self._worker} (pid {os.getpid()})", columns, tables))


class WorkerRows:
    """What a worker recorded during one task, on its way to the recorders of the parent."""

    def __init__(self, rows: ForeignRows) -> None:
        self._rows = rows

    def deliver(self) -> None:
        """Append the rows to every recorder that is running, in the parent."""
        for recorder in list(active_recorders):
            recorder.foreign.append(self._rows)


def _task() -> WorkerTask | None:
    """A task with the options of all running recorders together; None if none is running."""
    options = [recorder.options for recorder in active_recorders]
    if not options:
        return None
    flags = {name: any(getattr(each, name) for each in options) for name in Options._fields}
    return WorkerTask(Options(**{**flags, "profile_memory": False, "all_threads": False}))


observer.for_workers = _task
