"""EventList: the list that events() and key_averages() return."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from ..config import SAMPLED_STACKS
from ..exporters import event_list, stacks
from ..exporters.stacks import export_rows
from ..exporters.table import Summary, build_table, text_width
from ..recording.op_facts import counted_by_torch
from ..store import tree
from ..store.derived import FIRST_USES
from ..store.distinct import distinct_values
from ..store.store import EventStore
from . import averages, event_copies
from .averages import FunctionEventAvg
from .event_factory import EventFactory, flat_shapes
from .events import DeviceType, FunctionEvent

_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]
_BACKWARD_SCOPE = 1


class FirstUses(NamedTuple):
    """How often code of ops was compiled in a recording, and for how many nanoseconds; `outside` is the part in no event."""

    times: int = 0
    ns: int = 0
    outside_times: int = 0
    outside_ns: int = 0

    def outside_only(self) -> FirstUses:
        """Without those inside of events."""
        return FirstUses(self.outside_times, self.outside_ns, self.outside_times, self.outside_ns)

    def rows(self) -> list[FunctionEventAvg]:
        """The row of a table, if there is anything to tell."""
        return [averages.average_of(FIRST_USES, self.times, self.ns / 1000)] if self.times else []


class EventList(list[Any]):
    """A list of events or of averages, with their table and totals.

    The list of a recording makes its events on access. A method that changes the list makes all of them first.
    """

    # The rows of a recording, as long as the list has exactly their events; `_filled`: whether those are all made.
    _rows: EventFactory | None = None
    _filled = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._use_device: str | None = kwargs.pop("use_device", None)
        self._profile_memory: bool = kwargs.pop("profile_memory", False)
        self._with_flops: bool = kwargs.pop("with_flops", False)
        self._dropped: int = kwargs.pop("dropped", 0)
        self._note: str = kwargs.pop("note", "")
        self._first_uses: FirstUses = kwargs.pop("first_uses", FirstUses())
        super().__init__(*args, **kwargs)
        self._tree_built = False

    @classmethod
    def from_store(cls, store: EventStore) -> EventList:
        """The list of a recording's visible events."""
        rows = EventFactory(store)
        events = cls(
            use_device=rows.use_device,
            profile_memory=bool(store.options.get("profile_memory", False)),
            with_flops=bool(store.options.get("with_flops", False)),
            dropped=store.dropped_events,
            note=str(store.metadata.get(SAMPLED_STACKS, "")),
            first_uses=_first_uses(store),
        )
        events._rows, events._filled, events._tree_built = rows, False, True
        return events

    # ------------------------------------------------------------------ access without making all events

    def _fill(self) -> None:
        if not self._filled and self._rows is not None:
            self._filled = True
            super().extend(self._rows.events(range(len(self._rows))))

    @property
    def _columns(self) -> EventFactory | None:
        """The rows behind the list; None once the list or one of its events was changed."""
        return None if self._rows is None or self._rows.changed else self._rows

    def __len__(self) -> int:
        return len(self._rows) if not self._filled and self._rows is not None else super().__len__()

    def __iter__(self) -> Iterator[Any]:
        if not self._filled and self._rows is not None:
            return self._rows.events(range(len(self._rows)))
        return super().__iter__()

    def __reversed__(self) -> Iterator[Any]:
        if not self._filled and self._rows is not None:
            return self._rows.events(range(len(self._rows) - 1, -1, -1))
        return super().__reversed__()

    def __getitem__(self, index: Any) -> Any:
        if self._filled or self._rows is None:
            return super().__getitem__(index)
        chosen = range(len(self._rows))[index]
        return list(self._rows.events(chosen)) if isinstance(chosen, range) else self._rows.event(chosen)

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    # ------------------------------------------------------------------ copies

    def __copy__(self) -> EventList:
        """Another list of the same events."""
        other = EventList(list.__iter__(self))  # of a recording whose events are not all made: none of them
        vars(other).update(vars(self))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> EventList:
        rebuild, arguments = self.__reduce_ex__(4)
        memo[id(self)] = other = rebuild(*copy.deepcopy(arguments, memo))
        return other  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """What a deep copy and a pickle are made of: the rows of the recording, or without them the events one by one."""
        more = {name: value for name, value in vars(self).items() if name not in ("_rows", "_filled")}
        if self._rows is not None:
            return _list_of_rows, (self._rows, more)
        return _list_of_events, (event_copies.flattened(self, lambda event: not event._is_of_rows), more)

    # ------------------------------------------------------------------ the tree of events that a caller constructed

    def _build_tree(self) -> None:
        """Find parents and children by time; merge an only child named like its parent into it."""
        if self._rows is None:
            self._populate_cpu_children()
            self._remove_dup_nodes()
            self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        # Of equal intervals the first in the list is the outer one; row_order() takes the last, so they are reversed.
        events = [e for e in reversed(self) if not e.is_async and e.device_type == DeviceType.CPU]
        threads: dict[Any, int] = {}
        tid = np.array([threads.setdefault((e.thread, e.node_id), len(threads)) for e in events], np.int32)
        start = np.array([e.time_range.start for e in events], np.float64)
        end = np.array([e.time_range.end for e in events], np.float64)
        order = tree.row_order(start, end)
        parents = tree.parents(tid[order], start[order], end[order])
        ordered = [events[at] for at in order.tolist()]
        for event, parent in zip(ordered, parents.tolist(), strict=True):
            if parent >= 0:
                ordered[parent].append_cpu_child(event)
                event.set_cpu_parent(ordered[parent])

    def _remove_dup_nodes(self) -> None:
        dropped: set[int] = set()
        before = -1
        while len(dropped) > before:
            before = len(dropped)
            for event in self:
                parent = event.cpu_parent
                if id(event) in dropped or parent is None:
                    continue
                if parent.name == event.name and len(parent.cpu_children) == 1:
                    parent.cpu_children, parent.kernels = event.cpu_children, event.kernels
                    for child in event.cpu_children:
                        child.cpu_parent = parent
                    dropped.add(id(event))
        if dropped:
            self[:] = [event for event in self if id(event) not in dropped]

    def _set_backward_stacktraces(self) -> None:
        forward: dict[tuple[Any, int], list[str]] = {}
        nodes = [(event, _backward_node(event)) for event in self]
        for event, node in nodes:
            if node is None and event.stack is not None:
                forward.setdefault((event.thread, event.sequence_nr), event.stack)
        for event, node in nodes:
            if node is not None:
                event.stack = forward.get((node.fwd_thread, node.sequence_nr), [])

    # ------------------------------------------------------------------ totals, averages, exports

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events together, each counted without its children; for averages, first uses of ops included."""
        rows = self._columns
        if rows is not None:
            return _self_cpu_us(rows.store)
        total: float = sum(event.self_cpu_time_total for event in self)
        return total if self._rows is not None else total + self._first_uses.ns / 1000

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Average the events by name, and on request also by input shapes, innermost frames or overload."""
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        rows = self._columns
        grouped: list[FunctionEventAvg]
        if rows is not None:
            grouped = averages.average_rows(rows, group_by_input_shapes, group_by_stack_n, group_by_overload_name)
        else:
            grouped = averages.average_events(self, group_by_input_shapes, group_by_stack_n, group_by_overload_name)
        return EventList(
            grouped,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            dropped=self._dropped,
            note=self._note,
            # Events that were changed are averaged as they are, with what was compiled inside of them.
            first_uses=self._first_uses if rows is not None else self._first_uses.outside_only(),
        )

    def total_average(self) -> FunctionEventAvg:
        """All events as one average with the key "Total"."""
        rows = self._columns
        return averages.total_of_rows(rows) if rows is not None else averages.total_of(self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The list as a text table.

        sort_by: attribute to sort by, largest first, such as "self_cpu_time_total", "cpu_memory_usage", "count".
        row_limit: how many rows to show, -1 for all. top_level_events_only: leave out events with a parent.
        time_unit: "s", "ms" or "us" for every time; otherwise each time has its own unit.

        Where code of ops was compiled, because they were used for the first time in the process, the table has a row
        "first use of ops" for it, which is none of the list's.
        """
        rows = self._columns
        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            summary=_summary(rows) if rows is not None else None,
            dropped=self._dropped,
            note=self._note,
            more=self._rows_of_first_uses(),
            shown_more=[] if top_level_events_only else self._rows_of_first_uses(),
        )

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """A notebook's view: the largest averages or the first events, as a table."""
        from ..exporters import notebook  # here, because only notebooks need it

        return notebook.list_table(self, memory=self._profile_memory, flops=self._with_flops, more=self._rows_of_first_uses())

    def _rows_of_first_uses(self) -> list[FunctionEventAvg]:
        """Those of a table beside its own rows: events have in them what was compiled inside of them, averages have not."""
        uses = self._first_uses if self._rows is None else self._first_uses.outside_only()
        return uses.rows()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's view as text: the ten largest averages, or how many events there are; repr() is that of a list."""
        if len(self) and not hasattr(self[0], "time_range"):
            printer.text(self.table(sort_by="self_cpu_time_total", row_limit=10))
        else:
            printer.text(f"<EventList of {len(self):,} events>")

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the events as a trace for Perfetto, TensorBoard or chrome://tracing."""
        event_list.export(self, path)

    def to_dict(self) -> dict[str, list[Any]]:
        """The list as columns: names and plain values, one entry per event or average. Times are microseconds."""
        from . import tabular  # here and below, because it imports this module

        return tabular.to_dict(self)

    def to_pandas(self) -> Any:
        """The same columns as a pandas.DataFrame. Needs the extra `pandas`."""
        from . import tabular

        return tabular.to_pandas(self)

    def to_arrow(self) -> Any:
        """The same columns as a pyarrow.Table. Needs the extra `parquet`."""
        from . import tabular

        return tabular.to_arrow(self)

    def to_polars(self) -> Any:
        """The same columns as a polars.DataFrame. Needs the extra `polars`."""
        from . import tabular

        return tabular.to_polars(self)

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that export_stacks accepts."""
        return list(_METRICS)

    def export_stacks(self, path: str | PathLike[str], metric: str) -> None:
        """Write one line per stack, root first, with the metric's sum: input of flame graph tools."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {_METRICS}")
        rows = self._columns
        if rows is not None:
            stacks.export(rows.whole, path, metric=metric, even_if_empty=True)  # as torch does
            return
        attribute = metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        on_device = [event for event in self if event.device_type != DeviceType.CPU]
        # Device time of an op is that of the device events it launched: with both it would count twice.
        counted = on_device if on_device and attribute != metric else self
        export_rows(((event.stack or [], getattr(event, attribute)) for event in counted), path)


def _after_filling(method: Callable[..., Any], changes: bool) -> Callable[..., Any]:
    """A method of list, called once all events are made. If it changes the list, that has no rows any more."""

    def call(self: EventList, *args: Any, **kwargs: Any) -> Any:
        self._fill()
        if changes:
            self._rows = None
        return method(self, *args, **kwargs)

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


def _list_of_rows(rows: EventFactory, more: dict[str, Any]) -> EventList:
    events = EventList()
    vars(events).update(more, _rows=rows, _filled=False)
    return events


def _list_of_events(flat: event_copies.Flat, more: dict[str, Any]) -> EventList:
    events = EventList(event_copies.rebuilt(flat))
    vars(events).update(more)
    return events


for _name in (
    "__contains__",
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__add__",
    "__mul__",
    "__rmul__",
    "__repr__",
    "copy",
    "count",
    "index",
):
    setattr(EventList, _name, _after_filling(getattr(list, _name), changes=False))
for _name in (
    "__setitem__",
    "__delitem__",
    "__iadd__",
    "__imul__",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "remove",
    "reverse",
    "sort",
):
    setattr(EventList, _name, _after_filling(getattr(list, _name), changes=True))
EventList.__hash__ = None


def _backward_node(event: FunctionEvent | None) -> FunctionEvent | None:
    """The event itself or its nearest ancestor that is a backward node."""
    while event is not None and event.scope != _BACKWARD_SCOPE:
        event = event.cpu_parent
    return event


def _self_cpu_us(store: EventStore) -> float:
    spent = store.outside_children_ns
    alone = spent[store.device_type == 0] if store.has_device_rows else spent
    return float(alone.sum() / 1000)


def _first_uses(store: EventStore) -> FirstUses:
    rows = store.is_first_use
    if not rows.any():
        return FirstUses()
    outside = rows & (store.parent < 0)
    spent = store.self_ns
    return FirstUses(int(rows.sum()), int(spent[rows].sum()), int(outside.sum()), int(spent[outside].sum()))


def _summary(rows: EventFactory) -> Summary:
    """What build_table() needs to know of all events of a recording, from its columns."""
    store = rows.store
    device = bool(rows.use_device) and store.has_device_rows
    memory = len(store.mem_time) > 0

    def widest(column: Any, texts: Callable[[int], Iterable[str]], none: int) -> int:
        used = distinct_values(column)
        return max((text_width(text) for at in used[used >= 0].tolist() for text in texts(at)), default=none)

    counted = store.flops > 0
    of_torch = counted & np.isin(store.label, [at for at, label in enumerate(store.labels) if label in counted_by_torch()])
    least, least_other = (int(store.flops[which].min()) if which.any() else 0 for which in (of_torch, counted & ~of_torch))
    return Summary(
        count=len(store),
        self_cpu_us=_self_cpu_us(store),
        self_device_us=float(store.duration[store.is_work].sum() / 1000) if device else 0,
        name_width=widest(store.label, lambda at: [store.labels[at]], 0),
        shapes_width=widest(store.shapes, lambda at: [str(shapes)] if (shapes := _shapes(store, at)) else [], 0),
        source_width=widest(store.call_stack, lambda at: store.stacks[at], -1),
        has_overloads=bool(store.options.get("capture_overload_names"))
        and any(store.overloads[at] for at in distinct_values(store.op[store.op >= 0]).tolist()),
        has_device_time=device and bool((store.self_device_ns > 0).any()),
        has_device_memory=memory and bool((store.self_device_bytes > 0).any()),
        least_flops=least,
        least_other_flops=least_other,
        use_device=rows.use_device,
    )


def _shapes(store: EventStore, at: int) -> list[list[int]]:
    return flat_shapes(store.input_infos[at].dims)
