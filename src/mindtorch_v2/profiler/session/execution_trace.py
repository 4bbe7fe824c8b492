"""ExecutionTraceObserver: every op with its inputs and outputs, as the graph that replay and simulation tools read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from ..._core.restoring import carry_out
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


class TraceObserver(Protocol):
    """What profile(execution_trace_observer=...) calls: start and stop with each window, cleanup at the end."""

    def start(self) -> None:
        """Begin to observe."""

    def stop(self) -> None:
        """Stop observing."""

    def cleanup(self) -> None:
        """Write and release what was observed."""


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
        self._finished: list[ObservedWindow] = []
        self._started_ns = 0
        self._process = os.getpid()
        self.extra_resources_collection = False

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """A copy of an observer that has no file to write; two that write one file would spoil each other's."""
        if self._path is not None:
            raise TypeError("an observer that is registered cannot be copied or pickled: unregister_callback() first")
        return super().__reduce_ex__(protocol)

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer with a file in the temporary folder if ENABLE_PYTORCH_EXECUTION_TRACE is 1, else None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        import tempfile  # here, because it imports a dozen modules

        number, path = tempfile.mkstemp(suffix=".et.json")
        os.close(number)
        trace_observer = ExecutionTraceObserver().register_callback(path)
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0") == "1":
            trace_observer.set_extra_resource_collection(True)
        return trace_observer

    # ------------------------------------------------------------------ the file

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Write to this file from now on; returns the observer."""
        if self._path is None:
            self._path = self._last_path = path_text(output_file_path)
            self._started_ns = time.monotonic_ns()
            self._process = os.getpid()
        return self

    def unregister_callback(self) -> None:
        """Stop, write the file and forget it; nothing happens when not registered."""
        if self._path is None:
            return
        self.stop()
        path, self._path = self._path, None
        if self._process != os.getpid():  # forked: the file is the parent's to write
            self._finished = []
            return
        windows, self._finished = self._finished, []
        write_file(path, _text(windows, self._started_ns))
        for window in windows:
            window.is_written()

    @property
    def is_registered(self) -> bool:
        """Whether there is a file to be written."""
        return self._path is not None

    def get_output_file_path(self) -> str | None:
        """The path last registered, also after the file is written; None before the first."""
        return self._last_path

    # ------------------------------------------------------------------ observing

    def start(self) -> None:
        """Begin to observe the calling thread; nothing happens when not registered."""
        if self._path is not None and self._running is None:
            recorder = Recorder(Options())
            tensor_io = TensorIoListener(recorder.clock)
            try:
                recorder.start()
                tensor_io.start()
                active.add(self)
            except BaseException:
                carry_out([partial(active.remove, self), recorder.stop, tensor_io.stop])
                raise
            self._running = recorder, tensor_io

    def stop(self) -> None:
        """Stop observing; what was observed is written when the observer is unregistered."""
        active.remove(self)
        if self._running is not None:
            recorder, tensor_io = self._running
            carry_out([recorder.stop, tensor_io.stop])
            window = ObservedWindow(recorder, tensor_io.calls, self.last_window)
            self._finished += (window,)
            self._running = None

    @property
    def last_window(self) -> ObservedWindow | None:
        """What was observed between the last start() and stop(); None after it is written."""
        return self._finished[-1] if self._finished else None

    def abandon(self) -> None:
        """Stop observing and write nothing, because the process was forked or ends."""
        self.stop()
        self._path, self._finished = None, []

    @property
    def _execution_trace_running(self) -> bool:
        return self._running is not None

    def is_running(self) -> bool:
        """Whether it is between start() and stop()."""
        return self._running is not None

    def cleanup(self) -> None:
        """torch's other name of unregister_callback()."""
        self.unregister_callback()

    # ------------------------------------------------------------------ further files

    def set_extra_resource_collection(self, val: bool) -> None:
        """Set whether to create a folder for further files beside the trace."""
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
        """The folder of a trace file; None if it does not exist and create_dir is False."""
        folder = os.path.splitext(trace_path)[0] + "_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None


class ObservedWindow:
    """What was observed between a start() and its stop(): rows, and the inputs and outputs of ops."""

    def __init__(self, recorder: Recorder, calls: list[Call], before: ObservedWindow | None) -> None:
        self._recorder: Recorder | None = recorder
        self._calls = calls
        self._before = before

    @cached_property
    def store(self) -> EventStore:
        """The rows, as a store."""
        assert self._recorder is not None
        return freeze(self._recorder)

    @cached_property
    def first(self) -> int:
        """How many rows the windows before have: rf_id counts on from there."""
        return 0 if self._before is None else self._before.first + len(self._before.store)

    def calls(self) -> dict[int, Call]:
        """The inputs and outputs of ops, by row of the store."""
        assert self._recorder is not None
        store = self.store
        thread_of = {id(recording.state): tid for tid, recording in enumerate(self._recorder.thread_recordings)}
        tid = np.array([thread_of[id(call.thread)] for call in self._calls], np.int32)
        moment = np.array([call.moment for call in self._calls], np.int64)
        # At the time of the call, the innermost row is the op's own.
        rows = tree.enclosing(store.tid, store.start, store.end, store.parent, tid, moment)
        return {
            row: call for row, call in zip(rows.tolist(), self._calls, strict=True) if row >= 0 and store.op[row] == call.op
        }

    def is_written(self) -> None:
        """Free what only writing needs; `store` and `first` stay."""
        self._recorder, self._calls, self._before = None, [], None

    def record_function_ids(self, store: EventStore) -> NDArray[np.int64]:
        """The rf_id of each row of another recording of the same time; 0 for a row that was not observed here."""
        known: dict[tuple[int, int, int, str], list[int]] = {}
        for number, key in enumerate(_keys(self.store), self.first + 1):
            known.setdefault(key, []).insert(0, number)
        numbers = np.array([known[key].pop() if known.get(key) else 0 for key in _keys(store)], np.int64)
        return np.where(store.is_first_use, 0, numbers)


def _keys(store: EventStore) -> Iterator[tuple[int, int, int, str]]:
    """Thread, times and name of every row, which are equal in all recordings of a thread: they share clock readings."""
    columns = (store.tid, store.start, store.end, store.name)
    for tid, start, end, name in zip(*(column.tolist() for column in columns), strict=True):
        yield store.threads[tid].ident, start, end, store.names[name]


class _Numbers(dict[int, int]):
    """Numbers tensors, storages and nodes from 2 on; 1 is the process node."""

    def __init__(self) -> None:
        self.last = _PROCESS

    def next(self) -> int:
        self.last += 1
        return self.last

    def __missing__(self, key: int) -> int:
        number = self[key] = self.next()
        return number


def _text(windows: list[ObservedWindow], started_ns: int) -> Iterator[bytes]:
    head = {"schema": _SCHEMA, "pid": os.getpid(), "time": time.strftime("%Y-%m-%d %H:%M:%S"), "start_ts": started_ns // 1000}
    nodes = [dumps(node) for node in _nodes(windows)]
    body = ",\n    ".join(nodes)
    yield (f'{dumps(head)[:-1]},\n  "nodes": [\n    {body}\n  ],\n  "finish_ts": {time.monotonic_ns() // 1000}\n}}\n').encode()


def _nodes(windows: list[ObservedWindow]) -> Iterator[dict[str, Any]]:
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
            if store.is_first_use[row]:  # no call that could be replayed
                node_of.append(node_of[parent] if parent >= 0 else threads[store.threads[int(store.tid[row])].ident])
                continue
            number = numbers.next()
            node_of.append(number)
            tid = int(store.tid[row])
            op = int(store.op[row])
            above = node_of[parent] if parent >= 0 else threads[store.threads[tid].ident]
            kind = int(store.kind[row])
            schema = observer.op_schemas[op] if op >= 0 else None
            call = calls.get(row)
            # The engine's row around a backward node is not a node of the autograd graph, so it has no sequence number.
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
        return [numbered(item) for item in value] if isinstance(value, list) else value

    return {
        "values": [numbered(each.value) for each in values],
        "shapes": [each.shape for each in values],
        "types": [each.type for each in values],
        "strides": [each.stride for each in values],
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
