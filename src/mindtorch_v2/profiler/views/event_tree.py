"""kineto_results.experimental_event_tree(): a recording as a tree of typed events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.device import device as Device
from ..._core.dtype import DTYPES, dtype
from ..._core.memory_format import layout, sparse_coo, strided
from ..._dispatch import observer
from .._io.terminal import shown
from ..config import RecordScope
from ..recording.tensor_notes import NO_NOTES, SPARSE, TensorNote, TensorNotes
from ..store import tree
from ..store.store import MEMORY_EVENT_NAME, EventStore
from .event_factory import EventFactory
from .tensor_ids import NOBODY, Identity, TensorIds

_DTYPES = {kind.cpp_name: kind for kind in DTYPES.values()}
_FRAME = re.compile(r"(.*)\((\d+)\): (.*)", re.DOTALL)
_MODULE = re.compile(r"nn\.Module: ((.*)_\d+)", re.DOTALL)
_CPU = Device("cpu")
_OPTIMIZER_STEP = ": _optimizer_step_code"


class _EventType(Enum):
    """Kind of an event of the tree; its extra_fields are an _ExtraFields_ of the same name."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    PyCall = 5
    PyCCall = 6
    Kineto = 7

    def __int__(self) -> int:
        return int(self.value)


@dataclass(frozen=True)
class _TensorMetadata:
    """A tensor among an op's inputs, or of a module or optimizer. dtype is None in a list of tensors, where it is not recorded.

    impl_ptr is the tensor's address and storage_data_ptr that of its memory. `allocation_id` is shared by all views of one
    memory until it is freed, `id` also by the memory that the tensor gets instead, by `resize_` or `set_`. The four are None
    for inputs of ops unless the profile has both record_shapes and profile_memory.
    """

    sizes: list[int]
    strides: list[int]
    dtype: dtype | None
    layout: layout = strided
    device: Device | None = _CPU
    impl_ptr: int | None = None
    storage_data_ptr: int | None = None
    id: int | None = None
    allocation_id: int | None = None

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)


@dataclass(frozen=True)
class _PyFrameState:
    """A Python function and the line where it begins."""

    file_name: str
    function_name: str
    line_number: int


@dataclass(frozen=True)
class _NNModuleInfo:
    """The nn.Module of a call. `parameters` has (name, parameter, gradient or None), as at the module's first call."""

    cls_name: str
    self_ptr: int = 0
    cls_ptr: int = 0
    parameters: list[tuple[str, _TensorMetadata, _TensorMetadata | None]] = field(default_factory=list)


@dataclass(frozen=True)
class _OptimizerInfo:
    """The optimizer of a step. `parameters` has (parameter, gradient or None, [(name, state), ...]), as after its first one."""

    self_ptr: int
    parameters: list[tuple[_TensorMetadata, _TensorMetadata | None, list[tuple[str, _TensorMetadata]]]]


@dataclass(frozen=True)
class _ExtraFields_TorchOp:
    """Of an op, a backward node or a label. `inputs` needs record_shapes."""

    name: str
    inputs: list[Any]
    scope: RecordScope
    sequence_number: int
    allow_tf32_cublas: bool = False


@dataclass(frozen=True)
class _ExtraFields_Allocation:
    """Of an allocation, or with a negative size a free; the two of one block share `allocation_id`.

    `id` is that of the tensors that had the memory, None if none was seen.
    """

    ptr: int
    alloc_size: int
    total_allocated: int
    device: Device
    allocation_id: int
    id: int | None = None
    total_reserved: int = 0


@dataclass(frozen=True)
class _ExtraFields_PyCall:
    """Of a call of a Python function or module. callsite is the function, caller the one around it.

    `optimizer` is there in the call that ends an optimizer's step.
    """

    callsite: _PyFrameState | None
    caller: _PyFrameState | None
    module: _NNModuleInfo | None
    optimizer: _OptimizerInfo | None = None


@dataclass(frozen=True)
class _ExtraFields_PyCCall:
    """Of a call of a function that is not written in Python."""

    caller: _PyFrameState | None


@dataclass(frozen=True)
class _ExtraFields_Kineto:
    """Of what ran on a device, and of calls of its runtime: nothing further."""


_ExtraFields = _ExtraFields_TorchOp | _ExtraFields_Allocation | _ExtraFields_PyCall | _ExtraFields_PyCCall | _ExtraFields_Kineto


class EventTree:
    """The events of a recording by number: rows first, then allocations and frees."""

    def __init__(self, store: EventStore, notes: TensorNotes | None = None) -> None:
        self.store = store
        self._notes = NO_NOTES if notes is None else notes
        self._tensors = TensorIds(store, self._notes)
        self.rows = EventFactory(store, whole=True)
        self._fields: dict[int, _ExtraFields] = {}
        self.size = len(store)
        # Memory outside every event has a row of its own, which the allocation or free itself stands in for here.
        stray = store.kind == observer.MEMORY
        above = np.append(stray, False)
        owner = np.where(above[store.mem_event], -1, store.mem_event)
        self.parent = np.concatenate([store.parent, owner]).astype(np.int64)
        self.start = np.concatenate([store.start, store.mem_time])
        self.order = np.argsort(self.start, kind="stable")
        self.order = self.order[~np.append(stray, np.zeros(len(owner), np.bool_))[self.order]]

    def roots(self) -> list[_ProfilerEvent]:
        """Events without a parent, in order of start."""
        return self.below(-1)

    def below(self, number: int) -> list[_ProfilerEvent]:
        """Direct children in order of start."""
        return [_ProfilerEvent(self, child) for child in self._children.get(number, ())]

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {}
        for number, parent in zip(self.order.tolist(), self.parent[self.order].tolist(), strict=True):
            children.setdefault(parent, []).append(number)
        return children

    @cached_property
    def _caller(self) -> NDArray[np.int32]:
        return tree.nearest_ancestor(self.store.parent, self.store.is_python)

    def tag(self, number: int) -> _EventType:
        """The kind of the event."""
        if number >= self.size:
            return _EventType.Allocation
        kind = self.rows.kind[number]
        if kind == observer.RUNTIME or self.rows.device_type[number] != 0:
            return _EventType.Kineto
        if kind not in (observer.PYTHON, observer.MODULE):
            return _EventType.TorchOp
        name = self.name(number)
        return _EventType.PyCall if _FRAME.fullmatch(name) or _MODULE.fullmatch(name) else _EventType.PyCCall

    def name(self, number: int) -> str:
        """The recorded name, with the number of a step."""
        return MEMORY_EVENT_NAME if number >= self.size else self.store.names[self.rows.name[number]]

    def extra_fields(self, number: int) -> _ExtraFields:
        """An object of the _ExtraFields_ class of the event's tag: the same one at every call."""
        fields = self._fields.get(number)
        if fields is None:
            fields = self._fields[number] = self._make_fields(number)
        return fields

    def _make_fields(self, number: int) -> _ExtraFields:
        tag = self.tag(number)
        if tag is _EventType.Allocation:
            return self._allocation(number - self.size)
        if tag is _EventType.Kineto:
            return _ExtraFields_Kineto()
        if tag is _EventType.TorchOp:
            event = self.rows.peek(number)
            return _ExtraFields_TorchOp(
                self.name(number), list(self._inputs(number)), RecordScope(event.scope), event.sequence_nr
            )
        around = int(self._caller[number])
        caller = self._frame(around) if around >= 0 else None
        if tag is _EventType.PyCCall:
            return _ExtraFields_PyCCall(caller)
        return _ExtraFields_PyCall(self._frame(number), caller, self._module(number), self._optimizer(number))

    def _module(self, number: int) -> _NNModuleInfo | None:
        """The module of a row that is a module's call."""
        match = _MODULE.fullmatch(self.name(number))
        if match is None:
            return None
        tid = self.rows.tid[number]
        note = self._notes.modules[tid].get(match[1]) if tid < len(self._notes.modules) else None
        if note is None:
            return _NNModuleInfo(match[2])
        held = [(name, self._noted(parameter), grad and self._noted(grad)) for name, parameter, grad in note.parameters]
        return _NNModuleInfo(note.class_name, note.ident, note.class_ident, held)

    def _optimizer(self, number: int) -> _OptimizerInfo | None:
        """The optimizer of a row in which a step was noted."""
        tid = self.rows.tid[number]
        if tid >= len(self._notes.steps) or not self.name(number).endswith(_OPTIMIZER_STEP):
            return None
        start, end = self.rows.start[number], self.rows.end[number]
        which = next((which for time, which in self._notes.steps[tid] if start <= time <= end), None)
        if which is None:
            return None
        note = self._notes.optimizers[tid][which]
        held = [
            (self._noted(parameter), grad and self._noted(grad), [(name, self._noted(value)) for name, value in state])
            for parameter, grad, state in note.parameters
        ]
        return _OptimizerInfo(note.ident, held)

    def _noted(self, note: TensorNote) -> _TensorMetadata:
        device = Device(note.device)
        return _metadata(note.sizes, note.strides, note.dtype, self._tensors.of_note(note), device)

    def _frame(self, number: int) -> _PyFrameState | None:
        match = _FRAME.fullmatch(self.name(number))
        return _PyFrameState(match[1], match[3], int(match[2])) if match else None

    def _allocation(self, at: int) -> _ExtraFields_Allocation:
        store = self.store
        kind = int(store.mem_device_type[at])
        place = "cpu" if kind == 0 else f"npu:{max(int(store.mem_device_index[at]), 0)}"
        allocation_id, ident, pointer = self._tensors.of_memory(at)
        return _ExtraFields_Allocation(
            pointer, int(store.mem_bytes[at]), int(store.mem_total[at]), Device(place), allocation_id, ident
        )

    def _inputs(self, number: int) -> Iterator[Any]:
        start, op = self.rows.start[number], self.rows.op[number]
        # Tensors of an op may be on a device that is recorded, too: which ones is not noted.
        device = None if self.rows.use_device else Device("cpu")
        for position, (dims, kind, strides, concrete) in enumerate(zip(*self.rows.inputs(number)[:4], strict=True)):
            known = self._tensors.inputs(start, op, position) if kind == "TensorList" or kind in _DTYPES else []
            if kind == "TensorList":
                known += [NOBODY] * (len(dims) - len(known))
                yield [
                    _metadata(sizes, steps, None, each, device)
                    for sizes, steps, each in zip(dims, strides, known, strict=False)
                ]
            elif kind in _DTYPES:
                yield _metadata(dims, strides, _DTYPES[kind], known[0] if known else NOBODY, device)
            else:
                yield concrete


def _metadata(
    sizes: Sequence[int], strides: Sequence[int], kind: dtype | None, who: Identity, device: Device | None
) -> _TensorMetadata:
    impl, pointer, ident, allocation_id, layout_number = who
    sparse = layout_number == SPARSE
    return _TensorMetadata(
        list(sizes),
        [] if sparse else list(strides),
        kind,
        sparse_coo if sparse else strided,
        device,
        impl,
        pointer,
        ident,
        allocation_id,
    )


class _ProfilerEvent:
    """One event of the tree. Times are nanoseconds since the epoch."""

    __slots__ = ("_number", "_tree")

    def __init__(self, tree: EventTree, number: int) -> None:
        self._tree = tree
        self._number = number

    @property
    def name(self) -> str:
        """The recorded name, with the number of a step."""
        return self._tree.name(self._number)

    @property
    def overload_name(self) -> str:
        """The overload, if capture_overload_names is on."""
        return "" if self._is_memory else self._tree.rows.peek(self._number).overload_name or ""

    @property
    def tag(self) -> _EventType:
        """The kind of the event."""
        return self._tree.tag(self._number)

    @property
    def extra_fields(self) -> _ExtraFields:
        """An object of the _ExtraFields_ class of the event's tag."""
        return self._tree.extra_fields(self._number)

    @property
    def typed(self) -> tuple[_EventType, _ExtraFields]:
        """The pair of tag and extra_fields."""
        return self.tag, self.extra_fields

    @property
    def id(self) -> int:
        """A number that no other event of the recording has."""
        return self._number

    @property
    def correlation_id(self) -> int:
        """The id of the FunctionEvent; 0 for Python calls and memory."""
        return 0 if self._is_memory else int(self._tree.rows.ids[self._number])

    @property
    def start_tid(self) -> int:
        """The operating system's number of the thread."""
        store = self._tree.store
        column, at = (store.mem_tid, self._number - self._tree.size) if self._is_memory else (store.tid, self._number)
        return store.threads[int(column[at])].ident

    @property
    def start_time_ns(self) -> int:
        """Start of the event."""
        store = self._tree.store
        return int(self._tree.start[self._number]) - store.clock_start_ns + store.wall_start_ns

    @property
    def duration_time_ns(self) -> int:
        """Nanoseconds from start to end; 0 for memory."""
        return 0 if self._is_memory else int(self._tree.store.duration[self._number])

    @property
    def end_time_ns(self) -> int:
        """End of the event."""
        return self.start_time_ns + self.duration_time_ns

    @property
    def parent(self) -> _ProfilerEvent | None:
        """The innermost event around it on the same thread."""
        above = int(self._tree.parent[self._number])
        return _ProfilerEvent(self._tree, above) if above >= 0 else None

    @property
    def children(self) -> list[_ProfilerEvent]:
        """The events directly below it, in order of start."""
        return self._tree.below(self._number)

    @property
    def _is_memory(self) -> bool:
        return self._number >= self._tree.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ProfilerEvent) or other._tree.store is not self._tree.store:
            return False
        return other._number == self._number

    def __hash__(self) -> int:
        return hash((id(self._tree.store), self._number))

    def __repr__(self) -> str:
        return f"<_ProfilerEvent {shown(str(self.name))} {self.tag.name} duration_time_ns={self.duration_time_ns}>"
