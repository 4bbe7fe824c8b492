"""The Kineto trace: JSON for Perfetto, TensorBoard, HolisticTraceAnalysis, speedscope and chrome://tracing.

Written from columns in blocks. Text that many events share (name, category, ids, inputs) is formatted once; the numbers of a
block are formatted by NumPy.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from .._io.files import path_text, write_file
from .._io.strict_json import dumps
from ..store.categories import FIRST_USE
from ..store.store import EventStore, InputInfo
from ._lines import Piece, Texts, Words, interleaved, lines, merged, number, signed, text, thousandths, where
from .row_details import DetailTexts

if TYPE_CHECKING:
    from .device_lanes import DeviceLanes

_BLOCK = 1 << 13  # rows; small enough that buffers are reused instead of newly mapped
# Kineto counts time from the start of a quarter of a year, so that its digits fit into a double.
_QUARTER_S = 7_889_238
# By kind of row, but for those of devices and their runtime: FIRST_USE comes right after the calls of Python.
_CATEGORIES = (
    *("cpu_op", "cpu_op", "cpu_op", "user_annotation", "user_annotation", "python_function", "python_function"),
    FIRST_USE,
)
_FLAGS = ("with_stack", "profile_memory", "record_shapes", "with_modules", "with_flops")
# torch has text here ("Spans", "Traces"); some readers accept only numbers.
_SPANS_PID, _SPANS_TID = 0, 0
_LAST_SORT_INDEX = 0x20000000
_END = b"}},\n"
_OWN_ARGUMENTS = frozenset({"External id", "Ev Idx", "Sequence number", "Fwd thread id"})  # written from columns


def export(
    store: EventStore,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
    brief: bool = False,
    record_function_ids: NDArray[np.int64] | None = None,
) -> None:
    """Write a recording to `path`, gzipped if it ends in .gz.

    metadata: JSON text by key, put at the top level. brief: leave out trace_id and host_name. record_function_ids: for each
    row its number in an execution trace of the same recording.
    """
    name = path_text(path)
    write_file(name, _TraceWriter(store, record_function_ids).blocks(name, metadata or {}, brief))


def _category(kind: NDArray[np.int8]) -> NDArray[np.int8]:
    """The category of each kind of row, as an index of _CATEGORIES."""
    return np.minimum(kind, np.int8(len(_CATEGORIES) - 1))


def _json(value: Any) -> bytes:
    return dumps(value).encode()


class _TraceWriter:
    """Formats a store as the lines of a trace."""

    def __init__(self, store: EventStore, record_function_ids: NDArray[np.int64] | None = None) -> None:
        self.store = store
        self._record_function_ids = record_function_ids
        self.base_ns = store.wall_start_ns // (_QUARTER_S * 10**9) * _QUARTER_S * 10**9
        self.offset_ns = store.wall_start_ns - store.clock_start_ns - self.base_ns
        self._names = [_json(name) for name in store.names]
        # Categories that activity filters leave out of the file, though not out of events().
        self._left_out = frozenset(store.options.get("left_out_of_trace", ()))
        self.devices = self._device_lanes() if store.has_driver_rows else None
        spans = ~store.is_python & (store.kind != observer.MEMORY)
        if self.devices is not None:
            spans[self.devices.all_rows] = False
        if self._left_out:
            without = {*self._left_out, *([FIRST_USE] if "cpu_op" in self._left_out else [])}
            spans &= ~np.isin(_category(store.kind), [kind for kind, name in enumerate(_CATEGORIES) if name in without])
        self.rows = np.flatnonzero(spans)
        calls = store.is_python if "python_function" not in self._left_out else np.zeros(len(store), np.bool_)
        self.calls = np.flatnonzero(calls)
        self._threads = max(len(store.threads), 1)
        self._row_details = DetailTexts(store.row_details, len(_CATEGORIES), _OWN_ARGUMENTS)
        self._categories = (*_CATEGORIES, *self._row_details.categories)
        self._prefixes = Texts(self._prefix, len(store.names) * self._threads * len(self._categories))
        self._call_ends = Texts(self._call_end, len(store.names) * self._threads * len(self._categories))
        self._call_stack = store.call_stack if store.options.get("verbose") else None
        self._widths = (len(store.input_infos) + 1, len(store.modules) + 1, len(store.stacks) + 1)
        self._suffixes = Texts(self._suffix, math.prod(self._widths))

    def _device_lanes(self) -> DeviceLanes:
        from .device_lanes import DeviceLanes  # here, because recordings of the CPU have none, and small ones feel the import

        return DeviceLanes(self.store, self._names, self.trace_time, self._left_out)

    def trace_time(self, clock_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Clock times as nanoseconds since the trace's base."""
        return clock_ns + self.offset_ns

    def blocks(self, path: str, metadata: Mapping[str, str], brief: bool) -> Iterator[bytes]:
        """The whole file, in blocks of rows."""
        yield self._head(metadata, brief)
        yield self._process_and_threads()
        for block in _blocks(self.rows):
            yield self._spans(self.rows[block], block.start)
        for block in _blocks(self.calls):
            yield self._python_calls(self.calls[block], block.start)
        if "cpu_op" not in self._left_out and self.store.options.get("forward_backward_links", True):
            yield self._flows()
        if self.devices is not None:
            for block in _blocks(self.devices.rows):
                yield self.devices.spans(self.devices.rows[block])
            yield self.devices.flows()
        memory = np.arange(len(self.store.mem_time) if "cpu_instant_event" not in self._left_out else 0)
        for block in _blocks(memory):
            yield self._memory(memory[block], block.start)
        yield self._other_events()
        yield self._tail(path)

    # ------------------------------------------------------------------ around the events

    def _head(self, metadata: Mapping[str, str], brief: bool) -> bytes:
        store = self.store
        fields: dict[str, str] = {
            "schemaVersion": "1",
            "deviceProperties": dumps(store.options.get("device_properties") or []),
        }
        if not brief and store.trace_id is not None:
            fields["trace_id"] = dumps(store.trace_id)
        fields.update({flag: "1" for flag in _FLAGS if store.options.get(flag)})
        fields.update({key: dumps(value) for key, value in store.metadata.items()})
        fields.update(metadata)
        if not brief:
            fields.setdefault("host_name", dumps(host_name()))  # a trace that was read has the name of another host
        fields["displayTimeUnit"] = '"ms"'
        fields["baseTimeNanoseconds"] = str(self.base_ns)
        text = ",\n".join(f"  {dumps(key)}: {value}" for key, value in fields.items())
        return f'{{\n{text},\n  "traceEvents": [\n'.encode()

    def _process_and_threads(self) -> bytes:
        store = self.store
        pid, now = store.pid, self._text(store.clock_start_ns)
        rows: list[tuple[str, int, int, dict[str, Any]]] = [
            ("process_name", pid, 0, {"name": "python"}),
            ("process_labels", pid, 0, {"labels": "CPU"}),
            ("process_sort_index", pid, 0, {"sort_index": pid}),
        ]
        lanes = self.devices.lanes if self.devices is not None else ()
        for at, thread in enumerate(store.threads):
            if at not in lanes:
                rows.append(("thread_name", pid, thread.ident, {"name": f"thread {thread.ident} ({thread.name})"}))
                rows.append(("thread_sort_index", pid, thread.ident, {"sort_index": thread.ident}))
        if self.devices is not None:
            rows += self.devices.metadata()
        return "".join(
            f'{{"ph": "M", "name": "{name}", "ts": {now}, "pid": {pid}, "tid": {tid}, "args": {dumps(args)}}},\n'
            for name, pid, tid, args in rows
        ).encode()

    def _tail(self, path: str) -> bytes:
        store = self.store
        # The window ends a nanosecond after the last event can: a reader that adds start and duration as floats, whose last
        # place is half a nanosecond at such times, must not find one that ends later.
        start, end = self._text(store.clock_start_ns), self._text(store.clock_end_ns + 1)
        length = _microseconds(store.clock_end_ns - store.clock_start_ns)
        place = f'"pid": {self._spans_pid()}, "tid": {_SPANS_TID}'
        rows = (
            f'{{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", {place}, "ts": {start}, "dur": {length}, '
            f'"args": {{"Op count": 0}}}}',
            f'{{"ph": "M", "name": "process_sort_index", "ts": {start}, {place}, '
            f'"args": {{"sort_index": {_LAST_SORT_INDEX}}}}}',
            f'{{"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", {place}, "ts": {start}}}',
            f'{{"ph": "i", "s": "g", "name": "Record Window End", {place}, "ts": {end}}}',
        )
        return (",\n".join(rows) + f'\n  ],\n  "traceName": {dumps(path)}\n}}\n').encode()

    def _spans_pid(self) -> int:
        """A process number for the span of the recording itself, that neither the host nor a device has."""
        taken = {self.store.pid, *(self.devices.indices if self.devices is not None else ())}
        return next(pid for pid in itertools.count(_SPANS_PID) if pid not in taken)

    def _text(self, clock_ns: int) -> str:
        return _microseconds(clock_ns + self.offset_ns)

    # ------------------------------------------------------------------ events

    def _sources(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Category, name and thread of each row, encoded in one number."""
        store = self.store
        name = store.name[rows].astype(np.int64)
        category = self._row_details.category(store.details[rows], _category(store.kind[rows]))
        return (name * self._threads + store.tid[rows]) * len(self._categories) + category

    def _prefix(self, source: int) -> bytes:
        """The start of a line, up to its time, of an encoded source."""
        rest, category = divmod(source, len(self._categories))
        name, tid = divmod(rest, self._threads)
        return b'{"ph": "X", "cat": %s, "name": %s, "pid": %d, "tid": %d, "ts": ' % (
            _json(self._categories[category]),
            self._names[name],
            self.store.pid,
            self.store.threads[tid].ident,
        )

    def _times(self, rows: NDArray[np.intp]) -> list[Piece]:
        start = self.store.start[rows]
        return [thousandths(self.trace_time(start)), b', "dur": ', thousandths(self.store.end[rows] - start)]

    def _spans(self, rows: NDArray[np.intp], first: int) -> bytes:
        """Lines of ops and annotations."""
        linked = self.store.seq[rows] >= 0
        index = np.arange(first, first + len(rows))
        details = self._details(rows)
        shared = int(details[0]) if (details == details[0]).all() else None
        end = self._suffixes[shared] if shared is not None else b""
        middles = merged(
            linked,
            self._span_lines(rows[linked], index[linked], True, end),
            self._span_lines(rows[~linked], index[~linked], False, end),
        )
        columns = [self._prefixes.of(self._sources(rows)), middles]
        if (self.store.details[rows] >= 0).any():
            # The middle of a line with `end` in it is complete: what is told in addition goes before that.
            middles[:] = [middle.removesuffix(end) for middle in middles] if end else middles
            columns.append(self._row_details.texts(self.store.details[rows]))
            return interleaved(*columns, self._suffixes.of(details))
        return interleaved(*columns) if shared is not None else interleaved(*columns, self._suffixes.of(details))

    def _span_lines(self, rows: NDArray[np.intp], index: NDArray[np.intp], linked: bool, end: bytes) -> list[bytes]:
        """The middle of each line: times, ids, and if `linked` autograd's numbers."""
        store = self.store
        pieces: list[Piece] = [
            *self._times(rows),
            b', "args": {"External id": ',
            number(store.ids[rows]),
        ]
        if self._record_function_ids is not None:
            pieces += [b', "Record function id": ', number(self._record_function_ids[rows])]
        elif not self._row_details.has("Record function id"):
            pieces.append(b', "Record function id": 0')
        if linked:
            pieces += [
                b', "Sequence number": ',
                number(store.seq[rows]),
                b', "Fwd thread id": ',
                number(store.fwd_tid[rows] + 1),
            ]
        return lines([*pieces, b', "Ev Idx": ', number(index), end], len(rows))

    def _details(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Inputs, module and stack of each row, encoded in one number."""
        store = self.store
        _, modules, stacks = self._widths
        key = (store.shapes[rows].astype(np.int64) + 1) * modules + store.module[rows] + 1
        return key * stacks + (self._call_stack[rows] + 1 if self._call_stack is not None else 0)

    def _suffix(self, details: int) -> bytes:
        """The end of a line, after the event index: the inputs, module and stack that there are."""
        store = self.store
        rest, stack = divmod(details, self._widths[2])
        shapes, module = divmod(rest, self._widths[1])
        suffix = _inputs(store.input_infos[shapes - 1]) if shapes else b""
        if module:
            suffix += b', "Module Hierarchy": ' + _json(store.modules[module - 1])
        if stack:
            suffix += b', "Call stack": ' + _json(";".join(reversed(store.stacks[stack - 1])))
        return suffix + _END

    def _python_calls(self, rows: NDArray[np.intp], first: int) -> bytes:
        """Lines of Python functions and modules."""
        store, count = self.store, len(rows)
        caller = store.python_parent_id[rows]
        pieces: list[Piece] = [
            *self._times(rows),
            b', "args": {"Python parent id": ',
            where(caller >= 0, number(np.maximum(caller, 0)), b"null"),
            b', "Python id": ',
            number(store.python_id[rows]),
            b', "Ev Idx": ',
            number(np.arange(first, first + count) + len(self.rows)),
        ]
        sources = self._sources(rows)
        columns = [self._prefixes.of(sources)]
        if (store.kind[rows] == observer.MODULE).any():
            return interleaved(*columns, lines(pieces, count), self._call_ends.of(sources))
        return interleaved(*columns, lines([*pieces, _END], count))

    def _call_end(self, source: int) -> bytes:
        """The end of a line of a Python call: the number of a module, if it is one."""
        rest, kind = divmod(source, len(self._categories))
        ident = _module_number(self.store.names[rest // self._threads]) if kind == observer.MODULE else ""
        return b', "Python module id": %d}},\n' % int(ident) if ident else _END

    def _flows(self) -> bytes:
        """Flows from forward ops to their backward nodes, in order of time."""
        store = self.store
        forward, backward = store.links
        count = len(forward)
        if not count:
            return b""
        rows = np.concatenate([forward, backward])
        ends = np.arange(2 * count) >= count
        order = np.argsort(store.start[rows], kind="stable")
        rows, ends = rows[order], ends[order]
        idents = np.array([thread.ident for thread in store.threads], np.int64)
        # Some viewers know flows by their number alone: those of launches come first.
        before = 0 if self.devices is None else self.devices.last_flow
        pieces: list[Piece] = [
            b'{"ph": ',
            where(~ends, Words(11, [(0, b'"s", "id": ')]), b'"f", "bp": "e", "id": '),
            number(np.tile(np.arange(before + 1, before + count + 1), 2)[order]),
            b', "pid": %d, "tid": ' % store.pid,
            number(idents[store.tid[rows]]),
            b', "ts": ',
            thousandths(self.trace_time(store.start[rows])),
            b', "cat": "fwdbwd", "name": "fwdbwd"},\n',
        ]
        return text(pieces, 2 * count)

    def _memory(self, rows: NDArray[np.intp], first: int) -> bytes:
        """Lines of allocations and frees."""
        store, count = self.store, len(rows)
        idents = np.array([thread.ident for thread in store.threads], np.int64)
        pieces: list[Piece] = [
            b'{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": %d, "tid": ' % store.pid,
            number(idents[store.mem_tid[rows]]),
            b', "ts": ',
            thousandths(self.trace_time(store.mem_time[rows])),
            b', "args": {"Total Reserved": ',
            signed(store.mem_reserved[rows]),
            b', "Total Allocated": ',
            signed(store.mem_total[rows]),
            b', "Bytes": ',
            signed(store.mem_bytes[rows]),
            b', "Device Id": ',
            signed(store.mem_device_index[rows]),
            b', "Device Type": ',
            number(store.mem_device_type[rows]),
            b', "Addr": ',
            number(store.mem_addr[rows]),
            b', "finished": false, "Ev Idx": ',
            number(np.arange(first, first + count) + len(self.rows) + len(self.calls)),
            _END,
        ]
        return text(pieces, count)

    def _other_events(self) -> bytes:
        """Lines of the events of a trace that are no rows."""
        written = []
        for start, duration, fields in self.store.other_events:
            length = f', "dur": {_microseconds(duration)}' if duration >= 0 else ""
            written.append(f'{{"ts": {self._text(start)}{length}, {fields[1:]},\n')
        return "".join(written).encode("utf-8", "backslashreplace")


def _blocks(rows: NDArray[Any]) -> Iterator[slice]:
    for start in range(0, len(rows), _BLOCK):
        yield slice(start, min(start + _BLOCK, len(rows)))


def host_name() -> str:
    """The name of this machine, as traces have it."""
    if hasattr(os, "uname"):
        return os.uname().nodename
    import socket  # here, because it takes longer to import than a small trace to write

    return socket.gethostname()


def _microseconds(ns: int) -> str:
    """Microseconds as text, exact to the nanosecond for any number of digits."""
    whole, fraction = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{fraction:03d}"


def _module_number(name: str) -> str:
    """The number at the end of a module's name; "" if it has none, which a name from a file may not."""
    number = name.rpartition("_")[2]
    return number if number.isascii() and number.isdecimal() and len(number) < 19 else ""


def _inputs(info: InputInfo) -> bytes:
    concrete = ["" if value is None else _concrete(value) for value in info.concrete]
    keywords = b"".join(b", %s: %s" % (_json(name), _json(value)) for name, value in info.keywords if _is_shown(name, value))
    return keywords + b', "Concrete Inputs": %s, "Input type": %s, "Input Strides": %s, "Input Dims": %s' % (
        _json(concrete),
        _json(info.types),
        _json(info.strides),
        _json(info.dims),
    )


def _is_shown(name: str, value: Any) -> bool:
    """Whether a trace has a keyword value: numbers and texts, lists of texts, and as `stream` only a number."""
    if isinstance(value, tuple):
        return name != "stream" and all(isinstance(item, str) for item in value)
    return isinstance(value, int) if name == "stream" else isinstance(value, bool | int | float | str)


def _concrete(value: Any) -> str:
    """A value as torch's C++ prints it: 2.0 is "2.", 0.1 has all its digits, a list has square brackets."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_concrete, value))}]"
    if isinstance(value, float) and value.is_integer():
        return f"{value:.17g}." if abs(value) < 1e16 else f"{value:.17g}"
    return f"{value:.17g}" if isinstance(value, float) else str(value)
