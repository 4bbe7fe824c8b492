"""A recording as columns and tables for a page: the visible rows; the page derives all else from them."""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.strict_json import dumps
from .._io.terminal import shown
from ..analysis.backward_waits import backward_waits
from ..analysis.findings import Finding
from ..analysis.first_use import first_use_ns, ops_used_first
from ..analysis.memory.categories import CATEGORIES, Uses
from ..store import tree
from ..store.derived import display_name
from ..store.store import EventStore
from ..views.event_factory import flat_shapes
from . import _memory
from ._pack import deflated, inflated, pack
from .devices import device_table
from .roofline import roofline_table
from .sources import source_table

# The numbers of the column `kind`, by the names that the page uses.
KINDS = {
    "OP": observer.OP,
    "BACKWARD": observer.BACKWARD,
    "ENGINE": observer.ENGINE,
    "SCOPE": observer.SCOPE,
    "STEP": observer.STEP,
    "PYTHON": observer.PYTHON,
    "MODULE": observer.MODULE,
    "MEMORY": observer.MEMORY,
    "KERNEL": observer.KERNEL,
    "COPY": observer.COPY,
    "FILL": observer.FILL,
    "RUNTIME": observer.RUNTIME,
    "FIRST_USE": observer.FIRST_USE,
}


_MOST_TEXT = 10_000  # characters of a name
_OVERHEAD = ("per_event_ns", "events", "total_ns", "low_ns", "high_ns", "share")


class Column(NamedTuple):
    """A named column: the spec of its encoding, and its text."""

    name: str
    spec: dict[str, Any]
    text: bytes


def columns(store: EventStore, memory: Uses | None = None, overhead: Any = None) -> Iterator[Column]:
    """The columns of a page; with the cost of recording if `overhead` has it by row (self_ns)."""
    yield tables(store)
    sections = (("source", source_table(store)), ("roofline", roofline_table(store)), ("devices", device_table(store)))
    for name, table in sections:
        yield Column(name, {"kind": "json"}, deflated(dumps(table, separators=(",", ":")).encode()))
    visible = store.visible_with_first_uses
    order = np.argsort(visible.start, kind="stable")  # rows of joined recordings are not in order of time
    place = np.append(np.empty_like(order), -1)
    place[order] = np.arange(len(order))
    rows: list[tuple[str, str, NDArray[Any], bool]] = [
        ("start", "f64", (visible.start - store.clock_start_ns)[order], True),
        ("duration", "f64", visible.duration[order], False),
        ("parent", "i32", _parent_distance(place[visible.parent][order]), False),
    ]
    rows += [(name, "u8", getattr(visible, name)[order], False) for name in ("kind", "device_type")]
    rows += [
        (name, "i32", getattr(visible, name)[order], False)
        for name in ("name", "tid", "step", "shapes", "module", "device_index")
    ]
    rows += [
        ("stack", "i32", visible.call_stack[order], False),
        ("flops", "f64", visible.flops[order], False),
        ("device_time", "f64", visible.self_device_ns[order], False),
        ("sequence", "f64", visible.seq[order], False),
    ]
    if getattr(overhead, "self_ns", None) is not None:
        rows.append(("self_cost", "f64", self_cost(store, overhead.self_ns)[order], False))
    waits = backward_waits(visible)
    if waits.any():
        rows.append(("backward_wait", "f64", waits[order], False))
    forward, backward = visible.links
    launched = np.flatnonzero(launches := _launch_rows(visible))
    rows += [
        ("forward", "i32", place[forward], True),
        ("backward", "i32", place[backward], True),
        ("launch", "i32", place[launches[launched] - 1], True),
        ("launched", "i32", place[launched], True),
    ]
    if len(visible.mem_time):
        rows += _memory_rows(store, place[visible.mem_event], memory)
    for name, kind, values, delta in rows:
        yield Column(name, *pack(values, kind, delta=delta))


def self_cost(store: EventStore, corrected: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cost of recording in the self time of each row that the page has; `corrected` is the store's self_ns without it.

    It has few distinct values, one for every number of calls below a row, so it compresses well.
    """
    shown = store.visible_with_first_uses
    above = tree.nearest_kept(store.parent, shown.rows_in(store))[:-1]
    cost = tree.sums(above, store.self_ns - corrected, len(shown))
    return np.clip(cost, 0, shown.self_ns)


def _parent_distance(parent: NDArray[Any]) -> NDArray[np.int64]:
    """How many rows a parent is before its row, 0 at a root: small numbers, which compress well."""
    return np.where(parent >= 0, np.arange(len(parent)) - parent, 0)


def _launch_rows(store: EventStore) -> NDArray[np.int64]:
    """For device rows, one more than the host row that launched it; 0 for other rows and where that is unknown."""
    launch = np.asarray(store.launcher, np.int64) + 1
    calls = np.flatnonzero((store.kind == observer.RUNTIME) & (store.correlation >= 0))
    launched = np.flatnonzero((store.device_type != 0) & (store.correlation >= 0))
    if len(calls) and len(launched):
        calls = calls[np.argsort(store.correlation[calls], kind="stable")]
        numbers = store.correlation[calls]
        at = np.minimum(np.searchsorted(numbers, store.correlation[launched]), len(calls) - 1)
        known = numbers[at] == store.correlation[launched]
        launch[launched[known]] = calls[at[known]] + 1
    return launch


def _memory_rows(store: EventStore, event: NDArray[Any], memory: Uses | None) -> list[tuple[str, str, NDArray[Any], bool]]:
    freed = _memory.freed_by(store)
    rows: list[tuple[str, str, NDArray[Any], bool]] = [
        ("mem_time", "f64", store.mem_time - store.clock_start_ns, True),
        ("mem_bytes", "f64", store.mem_bytes, False),
        ("mem_total", "f64", store.mem_total, True),
        ("mem_event", "i32", event, True),
        ("mem_device_type", "u8", store.mem_device_type, False),
        ("mem_device_index", "i32", store.mem_device_index, False),
        ("mem_freed", "i32", freed - np.arange(len(freed)), False),
    ]
    if memory is not None:
        rows += [
            ("mem_category", "u8", memory.category, False),
            ("before_bytes", "f64", np.array(memory.before_bytes, np.int64), False),
            ("before_category", "u8", np.array(memory.before_category, np.int64), False),
            ("before_freed", "i32", np.array(memory.before_freed, np.int64), False),
        ]
    return rows


def tables(store: EventStore) -> Column:
    """The tables that the columns index, as JSON: names, threads, inputs, stacks, modules."""
    labels = list(map(display_name, store.names))  # of names that tables show as others
    frames = _Numbers()
    shapes, types = _Numbers(), _Numbers()
    content = {
        "names": list(map(_shown, store.names)),
        "labels": {str(number): _shown(label) for number, label in enumerate(labels) if label != store.names[number]},
        "threads": [[thread.ident, _shown(thread.name)] for thread in store.threads],
        "modules": list(map(_shown, store.modules)),
        "stacks": [[frames[frame] for frame in stack] for stack in store.stacks],
        "frames": list(map(_shown, frames.texts)),
        "inputs": [
            [shapes[_shown(str(flat_shapes(info.dims)))], types[_shown(", ".join(info.types))], _shown(_values(info.concrete))]
            for info in store.input_infos
        ],
        "shapes": shapes.texts,
        "types": types.texts,
    }
    return Column("tables", {"kind": "json"}, deflated(dumps(content, separators=(",", ":")).encode()))


def _shown(text: str) -> str:
    """A name as a page shows it: with everything escaped that is not printable."""
    return shown(text, _MOST_TEXT)


def read_tables(column: Column) -> dict[str, Any]:
    """Decode what `tables` returned."""
    content: dict[str, Any] = json.loads(inflated(column.text))
    return content


class _Numbers(dict[str, int]):
    """Texts numbered in order of appearance."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    @property
    def texts(self) -> list[str]:
        """The texts by number."""
        return list(self)


def _values(concrete: tuple[Any, ...]) -> str:
    """Arguments that are not tensors, as text."""
    return (
        ", ".join("·" if value is None else str(value) for value in concrete)
        if any(value is not None for value in concrete)
        else ""
    )


def about(
    store: EventStore,
    *,
    title: str,
    findings: Iterable[Any] = (),
    memory: Uses | None = None,
    overhead: Any = None,
) -> dict[str, Any]:
    """The fields of a page that are about the recording as a whole."""
    pauses = store.options.get("gc_pauses") or ()
    return {
        "title": _shown(title),
        "kinds": KINDS,
        "span_ns": max(store.clock_end_ns - store.clock_start_ns, int(store.end.max()) - store.clock_start_ns)
        if len(store)
        else 0,
        "recorded": _date(store.wall_start_ns),
        "options": {
            _shown(key): _shown(value) if isinstance(value, str) else value
            for key, value in store.options.items()
            if isinstance(value, (bool, int, str)) and value
        },
        "first_uses": {"ops": len(ops_used_first(store)), "total_ns": first_use_ns(store)},
        "gc": {"pauses": len(pauses), "total_ns": sum(end - start for start, end, *_ in pauses)},
        "metadata": {_shown(str(key)): _shown(str(value)) for key, value in store.metadata.items()},
        "recording": {
            "Process": str(store.pid),
            "Trace": _shown(store.trace_id or ""),
        },
        "environment": f"{platform.python_implementation()} {platform.python_version()} and NumPy {np.__version__} "
        f"on {platform.system()} {platform.machine()}",
        "recorded_memory": bool(len(store.mem_time)),
        "recorded_stacks": bool(len(store) and (store.call_stack >= 0).any()),
        "categories": [*CATEGORIES, "UNKNOWN"] if memory is not None else [],
        "findings": [_shown_fields(finding) for finding in findings],
        "overhead": None if overhead is None else {name: _field(overhead, name) for name in _OVERHEAD},
    }


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name)


def _date(wall_ns: int) -> str:
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if wall_ns > 0 else ""


def _shown_fields(finding: Any) -> dict[str, Any]:
    fields = {name: _shown(value) if isinstance(value, str) else value for name, value in _fields(finding).items()}
    return {**fields, "evidence": tuple(_shown(str(fact)) for fact in fields.get("evidence", ()))}


def _fields(value: Any) -> dict[str, Any]:
    """A mapping, a dataclass or a named tuple as plain data."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Finding):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        fields: dict[str, Any] = value._asdict()
        return fields
    raise TypeError(f"expected a mapping, a dataclass or a named tuple, got {type(value).__name__}")
