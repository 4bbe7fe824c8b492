"""Columns that follow from the recorded ones, each computed on first use and cached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from . import tree
from .distinct import distinct_values

STEP_PREFIX = "ProfilerStep#"
OPTIMIZER_STEP = "Optimizer.step#"
FIRST_USES = "first use of ops"
_RUNTIME_IMPORT = observer.IMPORT_PREFIX + __name__.partition(".")[0]
OWN_IMPORTS = f"{_RUNTIME_IMPORT}.*"
COLLECTIVE = '"Collective name"'  # an argument that every communication has


# CANN numbers some kernels and all collectives of a process: trans_TransData_12, hcom_allReduce__586_3_1.
_NUMBERED = re.compile(r"(trans_[A-Za-z]\w*_)\d+|(hcom_[A-Za-z]+_)_[0-9a-z]+_\d+_\d+")


def display_name(name: str) -> str:
    """The name an event is shown and grouped under: all profiler steps share one, as all first uses of ops do, all imports
    of this runtime's modules, and what CANN only tells apart by numbers.
    """
    if name.startswith(("trans_", "hcom_")):
        numbered = _NUMBERED.fullmatch(name)
        return f"{numbered[1] or numbered[2]}*" if numbered else name
    if name.startswith(STEP_PREFIX):
        return "ProfilerStep*"
    if name.startswith(OWN_IMPORTS[:-1]):
        return OWN_IMPORTS
    return FIRST_USES if name.startswith(observer.FIRST_USE_PREFIX) else name


class DerivedColumns:
    """Base class of EventStore: the recorded columns, declared, and those derived from them."""

    options: dict[str, Any]
    name: NDArray[np.int32]
    kind: NDArray[np.int8]
    tid: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    seq: NDArray[np.int64]
    step: NDArray[np.int32]
    shapes: NDArray[np.int32]
    stack: NDArray[np.int32]
    flops: NDArray[np.int64]
    module: NDArray[np.int32]
    fwd_tid: NDArray[np.int32]
    op: NDArray[np.int32]
    device_type: NDArray[np.int8]
    device_index: NDArray[np.int32]
    correlation: NDArray[np.int64]
    launch_tid: NDArray[np.int32]
    launch_ns: NDArray[np.int64]
    details: NDArray[np.int32]
    mem_time: NDArray[np.int64]
    mem_bytes: NDArray[np.int64]
    mem_addr: NDArray[np.int64]
    mem_tid: NDArray[np.int32]
    mem_total: NDArray[np.int64]
    mem_device_type: NDArray[np.int8]
    mem_device_index: NDArray[np.int32]
    mem_reserved: NDArray[np.int64]
    mem_event: NDArray[np.int32]

    names: Sequence[str]
    threads: Sequence[Any]
    row_details: Sequence[Any]
    # Of a selection of rows: the store they come from, and their row numbers there.
    _whole: tuple[DerivedColumns, NDArray[np.intp]] | None = None

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def labels(self) -> list[str]:
        """The distinct names that views show, by label number."""
        return list(self._label_numbers)

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """Index into labels."""
        numbers = np.array([self._label_numbers[display_name(name)] for name in self.names], np.int32)
        return numbers[self.name] if len(self) else np.empty(0, np.int32)

    @cached_property
    def _label_numbers(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(dict.fromkeys(map(display_name, self.names)))}

    @cached_property
    def duration(self) -> NDArray[np.int64]:
        """Nanoseconds from start to end."""
        return self.end - self.start

    @cached_property
    def has_device_rows(self) -> bool:
        """Whether any row ran on a device. Without one, the device columns need not be computed."""
        return bool(self.device_type.any())

    @cached_property
    def host_tid(self) -> NDArray[np.int32]:
        """tid of host rows, -1 for device rows, whose tid is a stream."""
        return np.where(self.device_type == 0, self.tid, np.int32(-1)) if self.has_device_rows else self.tid

    @cached_property
    def nested_end(self) -> NDArray[np.int64]:
        """Where rows end in the call tree: at their own ends, unless they overlap a step partially (`tree.beside_steps`)."""
        is_step = (self.kind == observer.STEP) & (self.device_type == 0)
        end = self.end
        for thread in distinct_values(self.tid[is_step]):
            rows = np.flatnonzero(self.host_tid == thread)
            nested = tree.beside_steps(self.start[rows], self.end[rows], is_step[rows])
            if nested is not None:
                end = end.copy()
                end[rows] = nested
        return end

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """Row of the innermost enclosing event of the same thread, -1 at a root and for device rows."""
        if not self.has_device_rows:
            return tree.parents(self.tid, self.start, self.nested_end)
        rows = np.flatnonzero(self.device_type == 0)
        parent = np.full(len(self), -1, np.int32)
        local = tree.parents(self.tid[rows], self.start[rows], self.nested_end[rows])
        parent[rows] = np.append(rows, -1)[local]
        return parent

    @cached_property
    def launcher(self) -> NDArray[np.int32]:
        """Of a device row, the row of the innermost op or range around its launch; -1 for other rows and where unknown."""
        launcher = np.full(len(self), -1, np.int32)
        launched = np.flatnonzero(self.launch_ns >= 0)
        if len(launched):
            host = np.flatnonzero((self.device_type == 0) & (self.kind != observer.RUNTIME) & ~self.is_python)
            parent = tree.parents(self.tid[host], self.start[host], self.end[host])
            owner = tree.enclosing(
                self.tid[host], self.start[host], self.end[host], parent, self.launch_tid[launched], self.launch_ns[launched]
            )
            launcher[launched] = np.append(host, -1)[owner]
        return launcher

    @cached_property
    def linked(self) -> NDArray[np.int32]:
        """Row of the op or range that a device row or a call of the device's runtime belongs to, -1 for other rows."""
        calls = self.kind == observer.RUNTIME
        if not calls.any():
            return self.launcher
        above = tree.nearest_ancestor(self.parent, ~calls & ~self.is_python)
        return np.where(calls, above, self.launcher)

    @cached_property
    def is_work(self) -> NDArray[np.bool_]:
        """Whether the row is work of a device: device rows except labels, which only span work."""
        labels = np.isin(self.kind, (observer.SCOPE, observer.STEP))
        work: NDArray[np.bool_] = (self.device_type != 0) & ~labels
        return work

    @cached_property
    def self_device_ns(self) -> NDArray[np.int64]:
        """Time on devices: of a device row its duration, of a host row the sum over the work it launched itself."""
        launched = tree.sums(np.where(self.is_work, self.launcher, -1), self.duration, len(self))
        return np.where(self.device_type != 0, self.duration, launched)

    @cached_property
    def total_device_ns(self) -> NDArray[np.int64]:
        """self_device_ns of the event and all its descendants."""
        return tree.subtree_sums(self.parent, self.self_device_ns)

    @cached_property
    def children_ns(self) -> NDArray[np.int64]:
        """Sum of the durations of the direct children, as far as they lie inside."""
        return tree.children_sums(self.parent, self.nested_end - self.start)

    @cached_property
    def self_ns(self) -> NDArray[np.int64]:
        """Time not spent in children, nor in first uses of ops; never negative."""
        rest: NDArray[np.int64] = np.maximum(self.outside_children_ns - self.left_out_ns, 0)
        return rest

    @cached_property
    def outside_children_ns(self) -> NDArray[np.int64]:
        """Duration less that of the children: what torch calls self time. 0 for what runs beside the thread that began it."""
        alone: NDArray[np.int64] = np.maximum(self.nested_end - self.start - self.children_ns, 0)
        return np.where(self.is_async, 0, alone) if self.has_communications else alone

    @cached_property
    def left_out_ns(self) -> NDArray[np.int64]:
        """Of a selection of rows: the time of first uses of ops inside of each that are not in the selection."""
        return np.broadcast_to(np.int64(0), len(self))

    @cached_property
    def is_first_use(self) -> NDArray[np.bool_]:
        """Whether code of an op was compiled, which happens once in a process."""
        return np.asarray(self.kind == observer.FIRST_USE)

    @cached_property
    def is_inner_import(self) -> NDArray[np.bool_]:
        """Whether a module was imported because one of this runtime's was: rows that show how this runtime is made."""
        own = [display_name(name) == OWN_IMPORTS or name == _RUNTIME_IMPORT for name in self.names]
        if not any(own):
            return np.broadcast_to(np.bool_(False), len(self))
        calls = self.kind == observer.PYTHON
        imports = calls & np.array([name.startswith(observer.IMPORT_PREFIX) for name in self.names])[self.name]
        return np.asarray(imports & (tree.nearest_ancestor(self.parent, calls & np.array(own)[self.name]) >= 0))

    @cached_property
    def has_communications(self) -> bool:
        """Whether any row of the host is a collective or a message between processes."""
        return bool(self.is_async.any())

    @cached_property
    def is_async(self) -> NDArray[np.bool_]:
        """Whether a row of the host is a collective or a message: on its group's lane, it takes no thread's time."""
        return np.asarray(self.is_collective & (self.kind == observer.SCOPE) & (self.device_type == 0))

    @cached_property
    def is_collective(self) -> NDArray[np.bool_]:
        """Whether the arguments of a row, of the host or of a device, are those of a collective or a message."""
        named = [COLLECTIVE in details.arguments for details in self.row_details]
        if not any(named):
            return np.broadcast_to(np.bool_(False), len(self))
        return np.asarray(np.array([*named, False])[self.details])

    @cached_property
    def work_ns(self) -> NDArray[np.int64]:
        """Self times as if no Python calls had been recorded: theirs count for the row around them, as without stacks."""
        if not self.is_python.any():
            return self.self_ns
        around = tree.nearest_ancestor(self.parent, ~self.is_python)
        return self.self_ns + tree.sums(around, np.where(self.is_python, self.self_ns, 0), len(self))

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Number of ancestors."""
        return tree.depths(self.parent)

    @cached_property
    def self_bytes(self) -> NDArray[np.int64]:
        """Bytes allocated minus freed while the event was the innermost one of its thread, on the CPU."""
        return self._bytes(self.mem_device_type == 0)

    @cached_property
    def self_device_bytes(self) -> NDArray[np.int64]:
        """self_bytes, but on all devices other than the CPU."""
        return self._bytes(self.mem_device_type != 0)

    def _bytes(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        return tree.sums(self.mem_event[mask], self.mem_bytes[mask], len(self))

    @cached_property
    def total_bytes(self) -> NDArray[np.int64]:
        """self_bytes of the event and all its descendants."""
        return tree.subtree_sums(self.parent, self.self_bytes)

    @cached_property
    def total_device_bytes(self) -> NDArray[np.int64]:
        """self_device_bytes of the event and all its descendants."""
        return tree.subtree_sums(self.parent, self.self_device_bytes)

    @cached_property
    def links(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of forward ops and of the backward nodes they created, pairwise, in order of the backward rows."""
        return tree.forward_backward(self.kind, self.tid, self.seq, self.fwd_tid, observer.OP, observer.BACKWARD)

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """torch's event number: rising in order of start, 0 for what torch has no event for. No other recording has it.

        Device rows and calls of a device's runtime have the number that the driver gave them.
        """
        if self._whole:
            return self._whole[0].ids[self._whole[1]]
        if not self.has_driver_rows:
            own = ~self.is_python & ~self.is_first_use
            return np.where(own, np.cumsum(own) + self._ids_before, 0)
        from_driver = (self.device_type != 0) | (self.kind == observer.RUNTIME)
        own = ~self.is_python & ~self.is_first_use & ~from_driver
        return np.where(from_driver, np.maximum(self.correlation, 0), np.where(own, np.cumsum(own) + self._ids_before, 0))

    @property
    def _ids_before(self) -> int:
        before = self.options.get("ids_before", 0)
        return before if isinstance(before, int) and 0 <= before < 1 << 62 else 0

    @cached_property
    def has_driver_rows(self) -> bool:
        """Whether there are device rows or calls of a device's runtime, both of which the driver numbers."""
        return self.has_device_rows or bool((self.kind == observer.RUNTIME).any())

    @cached_property
    def trace_index(self) -> NDArray[np.int64]:
        """The `Ev Idx` of the row in a trace: ops and labels first, then Python calls; -1 for rows without one."""
        if self._whole:
            return self._whole[0].trace_index[self._whole[1]]
        numbered = ~self.is_python & ((self.kind < observer.MEMORY) | self.is_first_use) & (self.device_type == 0)
        calls = np.cumsum(self.is_python) - 1 + int(numbered.sum())
        return np.where(numbered, np.cumsum(numbered) - 1, np.where(self.is_python, calls, -1))

    @cached_property
    def is_python(self) -> NDArray[np.bool_]:
        """Whether the row is a call of a Python function or module."""
        return np.isin(self.kind, (observer.PYTHON, observer.MODULE))

    @cached_property
    def python_id(self) -> NDArray[np.int64]:
        """Number of a Python call, from 1 in order of start; -1 for other rows."""
        if self._whole:
            return self._whole[0].python_id[self._whole[1]]
        return np.where(self.is_python, np.cumsum(self.is_python), -1)

    @cached_property
    def python_parent_id(self) -> NDArray[np.int64]:
        """python_id of the nearest Python call around a Python call; -1 at a root and for other rows."""
        if self._whole:
            return self._whole[0].python_parent_id[self._whole[1]]
        if not self.is_python.any():
            return np.broadcast_to(np.int64(-1), len(self))
        caller = tree.nearest_ancestor(self.parent, self.is_python)
        return np.where(self.is_python, np.append(self.python_id, -1)[caller], -1)

    @cached_property
    def call_stack(self) -> NDArray[np.int32]:
        """Index into stacks as events show it.

        A backward node and all below it have the stack of the forward op; a device row has the stack of the op that
        launched it, unless it has one itself. A Python call has its caller's in torch's verbose traces only: otherwise it is
        a frame of others, and `stack` has its caller's.
        """
        if self._whole:
            return self._whole[0].call_stack[self._whole[1]]
        stack = self._host_stack
        if not self.has_device_rows:
            return stack
        launched = (self.device_type != 0) & (stack < 0)
        return np.where(launched, np.append(stack, np.int32(-1))[self.launcher], stack)

    @cached_property
    def _host_stack(self) -> NDArray[np.int32]:
        if not (self.stack >= 0).any():
            return self.stack
        stack = self.stack
        if not self.options.get("verbose") and self.is_python.any():
            stack = np.where(self.kind == observer.PYTHON, np.int32(-1), stack)
        backward = self.kind == observer.BACKWARD
        if not backward.any():
            return stack
        forward, created = self.links
        forward_stack = np.full(len(self) + 1, -1, np.int32)
        forward_stack[created] = stack[forward]
        # The nearest node counts: a backward node may contain another one.
        node = np.where(backward, np.arange(len(self)), tree.nearest_ancestor(self.parent, backward))
        return np.where(node >= 0, forward_stack[node], stack)
