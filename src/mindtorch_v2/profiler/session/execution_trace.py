"""ExecutionTraceObserver: every op with its inputs and outputs, as the graph that replay and simulation tools read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.files import path_text, write_file
from .._io.strict_json import dumps
from ..assembly.freeze import freeze
from ..recording import active
from ..recording.recorder import Options, Recorder
from ..store import tree
from ..store.store import EventStore
from .tensor_io import Call, TensorIoListener, Value

_SCHEMA = "1.1.1-chakra.0.0.4"
_PROCESS = 1  # the first node's number
_ANNOTATION = 7
_SCOPES = (0, 1, 0, 7, 7)  # torch's scope number by observer kind


class ExecutionTraceObserver:
    """Writes an execution trace: register_callback(path), start(), stop(), unregister_callback().

    Pass it to profile(execution_trace_observer=...) to have it follow the profile's windows; a node's `rf_id` is then the
    "Record function id" of the same call in the profile's Chrome trace. The file is written when the observer is
    unregistered. Ops have their inputs and outputs; backward nodes and ranges have none.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._last_path: str | None = None
        self._running: tuple[Recorder, TensorIoListener] | None = None
        self._finished: list[Window] = []
        self._started_ns = 0
        self._process = os.getpid()
        self.extra_resources_collection = False

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer with a file in the temporary folder if ENABLE_PYTORCH_EXECUTION_TRACE is 1, else None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        import tempfile  # here, because it brings a dozen modules along

        number, path = tempfile.mkstemp(suffix=".et.json")
        os.close(number)
        made = ExecutionTraceObserver().register_callback(path)
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0") == "1":
            made.set_extra_resource_collection(True)
        return made

    # ------------------------------------------------------------------ where to

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Write to this file from now on; returns the observer."""
        if self._path is None:
            self._path = self._last_path = path_text(output_file_path)
            self._started_ns = time.monotonic_ns()
            self._process = os.getpid()
        return self

    def unregister_callback(self) -> None:
        """Write the file and have none."""
        if self._path is None:
            return
        self.stop()
        path, self._path = self._path, None
        if self._process != os.getpid():  # a fork of the one that the file belongs to
            self._finished = []
            return
        windows, self._finished = self._finished, []
        write_file(path, _text(windows, self._started_ns))
        for window in windows:
            window.is_written()

    @property
    def is_registered(self) -> bool:
        """Whether it has a file to write."""
        return self._path is not None

    def get_output_file_path(self) -> str | None:
        """The file, also once it is written; None before the first."""
        return self._last_path

    # ------------------------------------------------------------------ when

    def start(self) -> None:
        """Begin to observe the calling thread; nothing happens when not registered."""
        if self._path is not None and self._running is None:
            recorder = Recorder(Options())
            witness = TensorIoListener(recorder.clock)
            recorder.start()
            witness.start()
            self._running = recorder, witness
            active.opened(self)

    def stop(self) -> None:
        """Observe no more."""
        active.closed(self)
        if self._running is not None:
            recorder, witness = self._running
            witness.stop()
            recorder.stop()
            self._finished.append(Window(recorder, witness.calls, self.last_window))
            self._running = None

    @property
    def last_window(self) -> Window | None:
        """What was observed between the last start() and stop(); None once it is written."""
        return self._finished[-1] if self._finished else None

    def abandon(self) -> None:
        """Observe no more and write nothing: the process was forked, or ends."""
        self.stop()
        self._path, self._finished = None, []

    def is_running(self) -> bool:
        """Whether it observes."""
        return self._running is not None

    def cleanup(self) -> None:
        """Stop, write, unregister."""
        self.unregister_callback()

    # ------------------------------------------------------------------ further files

    def set_extra_resource_collection(self, val: bool) -> None:
        """Whether there is to be a folder for further files beside the trace."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The folder for further files, None unless asked for by set_extra_resource_collection(True)."""
        if not self.extra_resources_collection or self._last_path is None:
            return None
        return self.get_resources_dir_for_et_path(self._last_path, create_dir=can_create)

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder that belongs to a trace file, None if it does not exist and is not to be made."""
        folder = os.path.splitext(trace_path)[0] + "_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None


class Window:
    """One stretch of observing: what ran, and by row what it was given and gave back."""

    def __init__(self, recorder: Recorder, calls: list[Call], before: Window | None) -> None:
        self._recorder: Recorder | None = recorder
        self._calls = calls
        self._before = before

    @cached_property
    def store(self) -> EventStore:
        """What ran."""
        assert self._recorder is not None
        return freeze(self._recorder)

    @cached_property
    def first(self) -> int:
        """How many rows the windows before it have: rf_id counts on from there."""
        return 0 if self._before is None else self._before.first + len(self._before.store)

    def calls(self) -> dict[int, Call]:
        """By row: what an op was given and gave back."""
        assert self._recorder is not None
        store = self.store
        thread_of = {id(tap.state): tid for tid, tap in enumerate(self._recorder.taps)}
        tid = np.array([thread_of[id(call.thread)] for call in self._calls], np.int32)
        moment = np.array([call.moment for call in self._calls], np.int64)
        # At that moment the innermost row is the op's own.
        rows = tree.enclosing(store.tid, store.start, store.end, store.parent, tid, moment)
        return {
            row: call for row, call in zip(rows.tolist(), self._calls, strict=True) if row >= 0 and store.op[row] == call.op
        }

    def is_written(self) -> None:
        """Let go of what only writing needed. `store` and `first`, which were made for it, stay."""
        self._recorder, self._calls, self._before = None, [], None

    def record_function_ids(self, store: EventStore) -> NDArray[np.int64]:
        """The rf_id of each row of another recording of the same time; 0 where nothing of it was observed here."""
        known: dict[tuple[int, int, int, str], list[int]] = {}
        for number, key in enumerate(_keys(self.store), self.first + 1):
            known.setdefault(key, []).insert(0, number)
        return np.array([known[key].pop() if known.get(key) else 0 for key in _keys(store)], np.int64)


def _keys(store: EventStore) -> Iterator[tuple[int, int, int, str]]:
    """Thread, times and name of every row. Recordings of one thread share the readings of the clock."""
    columns = (store.tid, store.start, store.end, store.name)
    for tid, start, end, name in zip(*(column.tolist() for column in columns), strict=True):
        yield store.threads[tid].ident, start, end, store.names[name]


class _Numbers(dict[int, int]):
    """Small numbers for tensors, storages and nodes, each given once."""

    def __init__(self) -> None:
        self.last = _PROCESS

    def next(self) -> int:
        self.last += 1
        return self.last

    def __missing__(self, key: int) -> int:
        number = self[key] = self.next()
        return number


def _text(windows: list[Window], started_ns: int) -> Iterator[bytes]:
    head = {"schema": _SCHEMA, "pid": os.getpid(), "time": time.strftime("%Y-%m-%d %H:%M:%S"), "start_ts": started_ns // 1000}
    nodes = [dumps(node) for node in _nodes(windows)]
    body = ",\n    ".join(nodes)
    yield (f'{dumps(head)[:-1]},\n  "nodes": [\n    {body}\n  ],\n  "finish_ts": {time.monotonic_ns() // 1000}\n}}\n').encode()


def _nodes(windows: list[Window]) -> Iterator[dict[str, Any]]:
    numbers = _Numbers()
    threads: dict[int, int] = {}
    yield _node(_PROCESS, "[pytorch|profiler|execution_trace|process]", _PROCESS, scope=_ANNOTATION)
    for window in windows:
        store, calls = window.store, window.calls()
        for thread in store.threads:
            if thread.ident not in threads:
                threads[thread.ident] = numbers.next()
                yield _node(
                    threads[thread.ident],
                    "[pytorch|profiler|execution_trace|thread]",
                    _PROCESS,
                    scope=_ANNOTATION,
                    tid=len(threads),
                )
        node_of: list[int] = []
        for row, parent in enumerate(store.parent.tolist()):
            number = numbers.next()
            node_of.append(number)
            tid = int(store.tid[row])
            op = int(store.op[row])
            above = node_of[parent] if parent >= 0 else threads[store.threads[tid].ident]
            kind = int(store.kind[row])
            schema = observer.op_schemas[op] if op >= 0 else None
            call = calls.get(row)
            # The engine's call around a backward node is no part of the graph that the numbers are about.
            engine = kind == observer.ENGINE
            yield _node(
                number,
                store.names[store.name[row]],
                above,
                inputs=_listed(call.inputs, numbers) if call else None,
                outputs=_listed(call.outputs, numbers) if call else None,
                rf_id=window.first + row + 1,
                fw_parent=above if kind == observer.BACKWARD else 0,
                seq_id=-1 if engine else int(store.seq[row]),
                scope=_SCOPES[kind],
                tid=tid + 1,
                fw_tid=0 if engine else int(store.fwd_tid[row]) + 1,
                op_schema=f"aten::{schema.text.removeprefix('aten::')}" if schema else "",
            )


def _listed(values: list[Value], numbers: _Numbers) -> dict[str, list[Any]]:
    def numbered(value: Any) -> Any:
        if isinstance(value, tuple):
            tensor, storage, *rest = value
            return [numbers[tensor], numbers[storage], *rest]
        return [numbered(one) for one in value] if isinstance(value, list) else value

    return {
        "values": [numbered(one.value) for one in values],
        "shapes": [one.shape for one in values],
        "types": [one.type for one in values],
        "strides": [one.stride for one in values],
    }


def _node(
    number: int,
    name: str,
    above: int,
    *,
    inputs: dict[str, list[Any]] | None = None,
    outputs: dict[str, list[Any]] | None = None,
    rf_id: int = 0,
    fw_parent: int = 0,
    seq_id: int = -1,
    scope: int = 0,
    tid: int = 0,
    fw_tid: int = 0,
    op_schema: str = "",
) -> dict[str, Any]:
    attributes = (
        ("rf_id", "uint64", rf_id),
        ("fw_parent", "uint64", fw_parent),
        ("seq_id", "int64", seq_id),
        ("scope", "uint64", scope),
        ("tid", "uint64", tid),
        ("fw_tid", "uint64", fw_tid),
        ("op_schema", "string", op_schema),
        ("kernel_backend", "string", ""),
        ("kernel_file", "string", ""),
        ("tensor_range", "string", ""),
    )
    nothing = _listed([], _Numbers())
    return {
        "id": number,
        "name": name,
        "ctrl_deps": above,
        "inputs": inputs or nothing,
        "outputs": outputs or nothing,
        "attrs": [{"name": key, "type": kind, "value": value} for key, kind, value in attributes],
    }
