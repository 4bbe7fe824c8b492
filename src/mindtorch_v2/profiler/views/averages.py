"""FunctionEventAvg and key_averages(): events grouped by key and summed, on columns where there are any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.terminal import shown
from ..store.store import EventStore
from .event_factory import EventFactory, flat_shapes
from .events import DeviceType, FormattedTimesMixin, FunctionEvent
from .row_objects import LazyAttributes, bind_row, detach_row, own_attributes

_DEVICES = tuple(DeviceType)
_IS_LABEL = np.zeros(observer.KIND_COUNT, np.int64)
_IS_LABEL[[observer.SCOPE, observer.STEP]] = 1

# Attributes that an average copies from its first event, and those that it sums.
_COPIED = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "cpu_parent",
    "cpu_children",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
)
_SUMMED = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
)


class FunctionEventAvg(LazyAttributes, FormattedTimesMixin):
    """The sum of all events of one key; a new one is the sum of none."""

    __dict__ = LazyAttributes._all_attributes

    def __init__(self) -> None:
        detach_row(self)
        self.key: str | None = None
        self.count: int = 0
        self.node_id: int = 0
        self.is_async: bool = False
        self.is_remote: bool = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.cpu_memory_usage: int = 0
        self.device_memory_usage: int = 0
        self.self_cpu_memory_usage: int = 0
        self.self_device_memory_usage: int = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type: DeviceType = DeviceType.CPU
        self.is_legacy: bool = False
        self.flops: int = 0
        self.is_user_annotation: bool = False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event or another average of the same key to this one, and return this one."""
        if self.key is None:
            for name in _COPIED:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {shown(str(other.key))} vs {shown(str(self.key))}")
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops = (self.flops or 0) + (other.flops or 0)
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = shown(self.use_device or "cuda")
        return (
            f"<FunctionEventAvg key={shown(str(self.key))} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


FunctionEventAvg._read_with({name: FunctionEvent._readers[name] for name in ("cpu_parent", "cpu_children")})


def average_of(key: str, count: int, cpu_us: float) -> FunctionEventAvg:
    """An average of host work that has no events and calls nothing."""
    average = FunctionEventAvg()
    average.key, average.count, average.node_id, average.scope = key, count, -1, 0
    average.cpu_time_total = average.self_cpu_time_total = cpu_us
    average.input_shapes, average.overload_name, average.stack = "", "", []
    return average


def total_of(events: Iterable[Any]) -> FunctionEventAvg:
    """The sum of events or averages of any keys; what is not a sum is copied from the last."""
    total = FunctionEventAvg()
    for event in events:
        total.key = None
        total.add(event)
    total.key = "Total"
    return total


def average_events(events: Iterable[FunctionEvent], by_shapes: bool, stack_n: int, by_overload: bool) -> list[FunctionEventAvg]:
    """Averages of event objects, in order of first appearance."""
    groups: dict[tuple[Any, ...], FunctionEventAvg] = {}
    for event in events:
        key: list[Any] = [event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation]
        key.append(event.overload_name if by_overload else None)
        key.append(str(event.input_shapes) if by_shapes else None)
        key.append(tuple(_innermost(event, stack_n)) if stack_n > 0 else None)
        average = groups.get(tuple(key))
        if average is None:
            average = groups[tuple(key)] = FunctionEventAvg()
        average.add(event)
    for average in groups.values():
        average.stack = _innermost(average, stack_n)
        if not by_shapes:
            average.input_shapes = ""
        if not by_overload:
            average.overload_name = ""
    return list(groups.values())


def _innermost(event: FunctionEvent | FunctionEventAvg, n: int) -> list[str]:
    if event.stack is None:
        raise TypeError(f"event '{shown(str(event.key))}' has no stack to group by: make it with stack=[]")
    return event.stack[:n]


def average_rows(rows: EventFactory, by_shapes: bool, stack_n: int, by_overload: bool) -> list[FunctionEventAvg]:
    """average_events() of a store's rows, from its columns."""
    store = rows.store
    if not len(store):
        return []
    group, first = _grouped(store, by_shapes, stack_n, by_overload)
    n = len(first)
    columns = _sums(store, group, n, rows.use_device)
    count = np.bincount(group, minlength=n)
    averages = []
    for number, row in enumerate(first.tolist()):
        average = FunctionEventAvg.__new__(FunctionEventAvg)
        bind_row(average, rows, row)
        values = own_attributes(average)
        event = rows.peek(row)
        values.update(
            key=event.name,
            count=int(count[number]),
            node_id=-1,
            is_async=event.is_async,
            is_remote=False,
            use_device=rows.use_device,
            input_shapes=event.input_shapes if by_shapes else "",
            overload_name=event.overload_name if by_overload else "",
            stack=_innermost(event, stack_n),
            scope=event.scope,
            device_type=event.device_type,
            is_legacy=False,
            is_user_annotation=event.is_user_annotation,
        )
        for name, column in columns.items():
            values[name] = column[number]
        averages.append(average)
    return averages


def total_of_rows(rows: EventFactory) -> FunctionEventAvg:
    """total_of() of a store's rows, from its columns."""
    n = len(rows)
    total = total_of([rows.peek(n - 1)] if n else [])
    if n:
        columns = _sums(rows.store, np.zeros(n, np.int64), 1, rows.use_device)
        for name, column in columns.items():
            setattr(total, name, column[0])
        total.count = n
    return total


def _sums(store: EventStore, group: NDArray[Any], n: int, use_device: str | None) -> dict[str, Sequence[Any]]:
    """The summed attributes by name, each with an entry for every one of n groups."""

    def microseconds(values: NDArray[np.int64]) -> list[float]:
        summed: list[float] = (np.bincount(group, weights=values, minlength=n) / 1000).tolist()
        return summed

    def whole(values: NDArray[np.int64]) -> list[int]:
        if values.strides == (0,) and len(values) and values[0] == 0:
            return [0] * n
        summed: list[int] = np.bincount(group, weights=values, minlength=n).astype(np.int64).tolist()
        return summed

    none = np.broadcast_to(np.int64(0), len(store))
    duration, alone = store.duration, store.self_ns
    device: Sequence[float] = [0] * n
    device_alone: Sequence[float] = device
    if store.has_device_rows:
        if use_device:
            device, device_alone = microseconds(store.total_device_ns), microseconds(store.self_device_ns)
        on_host = store.device_type == 0
        duration, alone = np.where(on_host, duration, 0), np.where(on_host, alone, 0)
    memory = len(store.mem_time) > 0
    return {
        "cpu_time_total": microseconds(duration),
        "self_cpu_time_total": microseconds(alone),
        "device_time_total": device,
        "self_device_time_total": device_alone,
        "cpu_memory_usage": whole(store.total_bytes if memory else none),
        "self_cpu_memory_usage": whole(store.self_bytes if memory else none),
        "device_memory_usage": whole(store.total_device_bytes if memory else none),
        "self_device_memory_usage": whole(store.self_device_bytes if memory else none),
        "flops": whole(store.flops),
    }


def _grouped(store: EventStore, by_shapes: bool, stack_n: int, by_overload: bool) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The group number of each row and the first row of each group; groups in order of first appearance."""
    codes: list[tuple[NDArray[Any], int]] = [(store.label, len(store.labels)), (_IS_LABEL[store.kind], 2)]
    if store.has_device_rows:
        codes.append((store.device_type, len(_DEVICES)))
    if by_overload and store.options.get("capture_overload_names"):
        codes.append(_by_value(store.op, store.overloads))
    if by_shapes:
        codes.append(_by_value(store.shapes, [str(flat_shapes(info.dims)) for info in store.input_infos], str([])))
    if stack_n > 0:
        codes.append(_by_value(store.call_stack, [stack[:stack_n] for stack in store.stacks], ()))
    group, first = np.zeros(len(store), np.int64), np.zeros(1, np.intp)
    for code, size in codes:
        if size > 1 and code.strides != (0,):
            group, first = _numbered(group * size + code, len(first) * size)
    return group, first


def _by_value(column: NDArray[Any], table: Sequence[Any], missing: Any = "") -> tuple[NDArray[np.int64], int]:
    """A code for each entry of a column, and how many codes there are: equal values of the table share one; -1 is `missing`."""
    numbers: dict[Any, int] = {}
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in [*table, missing]], np.int64)
    return codes[column], len(numbers)


def _numbered(codes: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Codes below `size` renumbered in order of first appearance, and the row of each first appearance."""
    n = len(codes)
    if size > 4 * n + 1024:
        _, at, codes = np.unique(codes, return_index=True, return_inverse=True)
        size = len(at)
    # Of repeated indices the last assignment stays: going backwards that is the first appearance.
    at = np.full(size, n)
    at[codes[::-1]] = np.arange(n - 1, -1, -1)
    present = np.flatnonzero(at < n)
    present = present[np.argsort(at[present])]
    number = np.empty(size, np.int64)
    number[present] = np.arange(len(present))
    return number[codes], at[present]
