"""ExecutionTraceObserver: every op with its inputs, as the graph that replay and simulation tools read."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from .._core.storage import owner_of
from .._core.tensor import Tensor
from .._core.threads import ThreadState
from .._dispatch import observer
from ._freeze import freeze
from ._recorder import Options, Recorder, sites
from ._store import EventStore, InputInfo
from .exporters.files import write_file

_SCHEMA = "1.1.1-chakra.0.0.4"
_PROCESS = 1  # the first node's number
_ANNOTATION = 7
_SCOPES = (0, 1, 0, 7, 7)  # torch's scope number by observer kind
_NOTHING: dict[str, list[Any]] = {"values": [], "shapes": [], "types": [], "strides": []}


class ExecutionTraceObserver:
    """Writes an execution trace: register_callback(path), start(), stop(), unregister_callback().

    Pass it to profile(execution_trace_observer=...) to have it follow the profile's windows. The file is written
    when the observer is unregistered. Nodes have their inputs; outputs are not observed and stay empty.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._recorder: _IdentityRecorder | None = None
        self._finished: list[_IdentityRecorder] = []
        self._started_ns = 0
        self.extra_resources_collection = False

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer with a file in the temporary folder if ENABLE_PYTORCH_EXECUTION_TRACE is 1, else None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
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
            self._path = os.fspath(output_file_path)
            self._started_ns = time.monotonic_ns()
        return self

    def unregister_callback(self) -> None:
        """Write the file and have none."""
        if self._path is None:
            return
        self.stop()
        path, self._path = self._path, None
        stores = [(recorder, freeze(recorder)) for recorder in self._finished]
        self._finished = []
        write_file(path, _text(stores, self._started_ns))

    @property
    def is_registered(self) -> bool:
        """Whether it has a file to write."""
        return self._path is not None

    def get_output_file_path(self) -> str | None:
        """The file, None when not registered."""
        return self._path

    # ------------------------------------------------------------------ when

    def start(self) -> None:
        """Begin to observe the calling thread; nothing happens when not registered."""
        if self._path is not None and self._recorder is None:
            self._recorder = _IdentityRecorder()
            self._recorder.start()

    def stop(self) -> None:
        """Observe no more."""
        if self._recorder is not None:
            self._recorder.stop()
            self._finished.append(self._recorder)
            self._recorder = None

    def is_running(self) -> bool:
        """Whether it observes."""
        return self._recorder is not None

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
        if not self.extra_resources_collection or self._path is None:
            return None
        return self.get_resources_dir_for_et_path(self._path, create_dir=can_create)

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder that belongs to a trace file, None if it does not exist and is not to be made."""
        folder = os.path.splitext(trace_path)[0] + "_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None


class _IdentityRecorder(Recorder):
    """Records shapes, and beside them which tensors the inputs were."""

    def __init__(self) -> None:
        super().__init__(Options(record_shapes=True))
        # (start, end) of an op -> one entry per argument
        self.identities: dict[tuple[int, int], list[Any]] = {}

    def _attach(self, state: ThreadState) -> None:
        super()._attach(state)
        tap = self._by_state[id(state)]
        inner, identities = tap.detail, self.identities
        assert inner is not None

        def detail(op: int, start: int, end: int, sequence: int, args: tuple[Any, ...]) -> None:
            inner(op, start, end, sequence, args)
            identities[start, end] = [_identity(value) for value in args]

        tap.detail = detail
        sites[id(state)].connect()


def _identity(value: Any) -> Any:
    """[tensor, storage, offset, elements, bytes per element, device] of a tensor; of other values, themselves."""
    if isinstance(value, Tensor):
        tensor: Any = value
        array = tensor._array
        return [id(value), id(owner_of(array)), value.storage_offset(), array.size, array.itemsize, str(value.device)]
    if isinstance(value, list | tuple):
        return [_identity(one) for one in value]
    return value if isinstance(value, bool | int | float | str) else "<None>" if value is None else str(value)


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


def _text(recordings: list[tuple[_IdentityRecorder, EventStore]], started_ns: int) -> Iterator[bytes]:
    head = {"schema": _SCHEMA, "pid": os.getpid(), "time": time.strftime("%Y-%m-%d %H:%M:%S"),
            "start_ts": started_ns // 1000}
    nodes = [json.dumps(node) for node in _nodes(recordings)]
    body = ",\n    ".join(nodes)
    yield (f'{json.dumps(head)[:-1]},\n  "nodes": [\n    {body}\n  ],\n'
           f'  "finish_ts": {time.monotonic_ns() // 1000}\n}}\n').encode()


def _nodes(recordings: list[tuple[_IdentityRecorder, EventStore]]) -> Iterator[dict[str, Any]]:
    numbers = _Numbers()
    threads: dict[int, int] = {}
    rf_id = 0
    yield _node(_PROCESS, "[pytorch|profiler|execution_trace|process]", _PROCESS, _NOTHING, scope=_ANNOTATION)
    for recorder, store in recordings:
        for thread in store.threads:
            if thread.ident not in threads:
                threads[thread.ident] = numbers.next()
                yield _node(threads[thread.ident], "[pytorch|profiler|execution_trace|thread]", _PROCESS, _NOTHING,
                            scope=_ANNOTATION, tid=len(threads))
        node_of: list[int] = []
        for row, parent in enumerate(store.parent.tolist()):
            number = numbers.next()
            node_of.append(number)
            rf_id += 1
            tid = int(store.tid[row])
            op = int(store.op[row])
            above = node_of[parent] if parent >= 0 else threads[store.threads[tid].ident]
            identity = recorder.identities.get((int(store.start[row]), int(store.end[row])), [])
            info = store.input_infos[store.shapes[row]] if store.shapes[row] >= 0 else None
            kind = int(store.kind[row])
            schema = observer.op_schemas[op] if op >= 0 else None
            yield _node(
                number, store.names[store.name[row]], above, _inputs(info, identity, numbers), rf_id=rf_id,
                fw_parent=above if kind == observer.BACKWARD else 0, seq_id=int(store.seq[row]), scope=_SCOPES[kind],
                tid=tid + 1, fw_tid=int(store.fwd_tid[row]) + 1, op_schema=f"aten::{schema.text}" if schema else "",
            )


def _inputs(info: InputInfo | None, identity: list[Any], numbers: _Numbers) -> dict[str, list[Any]]:
    if info is None or len(identity) != len(info.types):
        return _NOTHING

    def numbered(value: Any) -> Any:
        if isinstance(value, list) and len(value) == 6 and isinstance(value[5], str):
            return [numbers[value[0]], numbers[value[1]], *value[2:]]
        return [numbered(one) for one in value] if isinstance(value, list) else value

    return {"values": [numbered(value) for value in identity], "shapes": list(info.dims),
            "types": [_type(text, value) for text, value in zip(info.types, identity, strict=True)],
            "strides": list(info.strides)}


def _type(text: str, value: Any) -> str:
    if text in ("Scalar", "ScalarList", "TensorList", ""):
        names = {bool: "Bool", int: "Int", float: "Double", str: "String"}
        if isinstance(value, list):
            return f"GenericList[{','.join(_type('', one) for one in value)}]"
        return "None" if value == "<None>" else names.get(type(value), "Device")
    return f"Tensor({text})"


def _node(number: int, name: str, above: int, inputs: dict[str, list[Any]], *, rf_id: int = 0, fw_parent: int = 0,
          seq_id: int = -1, scope: int = 0, tid: int = 0, fw_tid: int = 0, op_schema: str = "") -> dict[str, Any]:
    attributes = (
        ("rf_id", "uint64", rf_id), ("fw_parent", "uint64", fw_parent), ("seq_id", "int64", seq_id),
        ("scope", "uint64", scope), ("tid", "uint64", tid), ("fw_tid", "uint64", fw_tid),
        ("op_schema", "string", op_schema), ("kernel_backend", "string", ""), ("kernel_file", "string", ""),
        ("tensor_range", "string", ""),
    )
    return {"id": number, "name": name, "ctrl_deps": above, "inputs": inputs, "outputs": _NOTHING,
            "attrs": [{"name": key, "type": kind, "value": value} for key, kind, value in attributes]}
