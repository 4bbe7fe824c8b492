"""Kernels as the hardware ran them: records of libmspti, which CANN's tools come with.

The library has one subscriber in a process, so that all recordings share it: the first that starts subscribes, the last that
stops unsubscribes. It hands buffers of records over from a thread of its own, some hundred milliseconds after the work;
stop() therefore puts a mark into each stream and waits until the records have reached it.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..._dispatch.observer import ActivityRecords, mark_name, wants_marks
from . import mstx
from .driver import library_folders
from .mspti_records import (
    ACL_API,
    API,
    COMMUNICATION,
    DTYPES,
    FUNCTIONS,
    KERNEL,
    LAYOUTS,
    LIBRARY,
    MARK_END,
    MARK_INSTANT,
    MARK_START,
    MARKER,
    ON_DEVICE,
    RESULTS,
    walk,
)
from .signatures import TYPES

_BUFFER_BYTES = 2 << 20  # what the library wants at least
_ROUND_S = 0.005  # between two looks whether records have reached the marks
# How long nothing may arrive before the wait is given up: with marks that are yet to come, and without any.
_QUIET_S, _QUIET_WITHOUT_MARKS_S = 1.0, 0.3
_FENCE = "mindtorch_v2 fence "

_Request = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_Complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class MsptiError(RuntimeError):
    """libmspti is not there, or refuses to record."""


def _find() -> Path | None:
    """The library: beside CANN's others, or in the folder of its tool."""
    folders = [each for folder in library_folders() for each in (folder, folder.parent / "tools" / "mspti" / "lib64")]
    return next((folder / LIBRARY for folder in folders if (folder / LIBRARY).is_file()), None)


def _call(symbol: Any, name: str) -> Callable[..., Any]:
    words = FUNCTIONS[name].arguments.split()
    symbol.argtypes = [ctypes.c_void_p if word[0] == ">" else TYPES[word] for word in words]
    symbol.restype = ctypes.c_int32

    def run(*arguments: Any) -> None:
        code = symbol(*arguments)
        if code:
            raise MsptiError(f"{name} failed with {code} ({RESULTS.get(code, 'unknown')})")

    return run


class Activities:
    """One recording's share of what libmspti tells: `start()`, then `stop(streams)` for the records since."""

    def __init__(self) -> None:
        self._collector = _collector()
        self.buffers: list[bytes] = []
        self._notes: list[str] = []

    def start(self) -> None:
        """Subscribe, unless another recording has; MsptiError where the library refuses."""
        self._notes, self._refused = self._collector.add(self), self._collector.refused

    def stop(self, streams: Sequence[Any], is_lost: bool = False) -> ActivityRecords:
        """What ran since start(). Waits until the records have passed the end of the streams, which must have nothing to do.

        Where other streams are lost, it also waits until nothing comes any more.
        """
        missing = self._collector.await_records(self, streams, is_lost)
        self.withdraw()
        notes = list(self._notes)
        if missing:
            notes.append(f"libmspti did not tell of the end of {missing} streams: its last records may be missing")
        if self._collector.refused > self._refused:
            notes.append("there was no memory for libmspti's records, some of which are missing")
        return _records(self.buffers, notes)

    @property
    def nbytes(self) -> int:
        """Memory of the records so far."""
        return sum(map(len, self.buffers))

    def drop_before(self, time_ns: int) -> None:
        """Forget buffers in which everything ended before a time."""
        while self.buffers:
            records = walk(self.buffers[0])[0]
            if any(len(each) and int(each["end"].max()) >= time_ns for kind, each in records.items() if kind != MARKER):
                break
            del self.buffers[0]

    def withdraw(self) -> None:
        """Listen no longer."""
        self._collector.remove(self)


class _Collector:
    """The library, and its one subscriber."""

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)  # for ever: records point to names in it
            self._calls = {name: _call(library[name], name) for name in FUNCTIONS}
        except (OSError, AttributeError) as error:
            raise MsptiError(f"{path} cannot be used: {error}") from None
        self._marks = mstx.marks()
        self._lock = threading.RLock()
        self._listeners: tuple[Activities, ...] = ()
        self._subscriber = ctypes.c_void_p()
        self._kinds: list[int] = []
        self._unavailable: list[str] = []
        self._lent: dict[int, Any] = {}
        self._spare: list[Any] = []
        self._fences = itertools.count(1)
        self.refused = 0
        self._pid = os.getpid()
        self._callbacks = _Request(self._request), _Complete(self._complete)
        atexit.register(self._end)

    # ------------------------------------------------------------------ on the library's thread

    def _request(self, buffer: Any, size: Any, most: Any) -> None:
        try:
            room = self._spare.pop() if self._spare else (ctypes.c_uint64 * (_BUFFER_BYTES // 8))()
        except MemoryError:
            self.refused += 1
            buffer[0], size[0], most[0] = None, 0, 0  # the library drops its records
            return
        address = ctypes.addressof(room)
        self._lent[address] = room
        buffer[0], size[0], most[0] = address, _BUFFER_BYTES, 0

    def _complete(self, address: int, size: int, valid: int) -> None:
        if valid:
            content = ctypes.string_at(address, valid)
            for listener in self._listeners:
                listener.buffers.append(content)
        self._spare.append(self._lent.pop(address))

    # ------------------------------------------------------------------ subscribing

    def add(self, listener: Activities) -> list[str]:
        """Hand records to one more; returns what the library does not tell."""
        if os.getpid() != self._pid:
            raise MsptiError("libmspti was loaded before this process was forked, and its threads are the parent's")
        with self._lock:
            if not self._listeners:
                self._subscribe()
            self._listeners += (listener,)
            return self._unavailable

    def _subscribe(self) -> None:
        self._calls["msptiSubscribe"](ctypes.byref(self._subscriber), None, None)
        try:
            self._calls["msptiActivityRegisterCallbacks"](*self._callbacks)
            self._kinds, self._unavailable = [], []
            self._enable(KERNEL)
            try:
                self._enable(ACL_API)
            except MsptiError:  # a library of before that kind
                self._enable(API)
            for kind, what in ((MARKER, "marks"), (COMMUNICATION, "collectives")):
                try:
                    self._enable(kind)
                except MsptiError as error:
                    self._unavailable.append(f"libmspti tells nothing of {what}: {error}")
        except MsptiError:
            self._unsubscribe()
            raise

    def _enable(self, kind: int) -> None:
        self._calls["msptiActivityEnable"](kind)
        self._kinds.append(kind)

    def _unsubscribe(self) -> None:
        for kind in self._kinds:
            with suppress(MsptiError):
                self._calls["msptiActivityDisable"](kind)
        with suppress(MsptiError):
            self._calls["msptiUnsubscribe"](self._subscriber)
        self._kinds = []

    def remove(self, listener: Activities) -> None:
        """Undo `add`; nothing happens if that was done already."""
        if os.getpid() != self._pid:  # a forked child: there is no thread that would answer
            return
        with self._lock:
            if listener in self._listeners:
                if len(self._listeners) == 1:
                    self._unsubscribe()
                    self._flush()  # what is still in buffers
                self._listeners = tuple(each for each in self._listeners if each is not listener)

    def _flush(self) -> None:
        with suppress(MsptiError):
            self._calls["msptiActivityFlushAll"](1)

    def _end(self) -> None:
        """At the end of the process, so that no buffer comes when there is no interpreter any more."""
        for listener in self._listeners:
            self.remove(listener)

    # ------------------------------------------------------------------ the end fence

    def await_records(self, listener: Activities, streams: Sequence[Any], is_lost: bool) -> int:
        """Wait until the records of all that is in the streams have come; returns how many streams never told."""
        waiting = set()
        if self._marks is not None and MARKER in self._kinds:
            for stream in streams:
                name = f"{_FENCE}{next(self._fences)}"
                self._marks.mark(name, stream.handle, "default")
                waiting.add(name)
        fenced = bool(waiting) and not is_lost
        quiet_s = _QUIET_S if waiting else _QUIET_WITHOUT_MARKS_S
        # Looks are counted, not time: a process that was held up for so long has not looked.
        most_looks = round(quiet_s / _ROUND_S)
        looked_at, looks_left = 0, most_looks
        while (streams or is_lost) and os.getpid() == self._pid:
            self._flush()
            new = listener.buffers[looked_at:]
            looked_at += len(new)
            looks_left = most_looks if new else looks_left - 1
            for buffer in new:
                marks = walk(buffer)[0].get(MARKER, np.empty(0, LAYOUTS[MARKER]))
                waiting -= {_text(int(mark["name"])) for mark in marks if mark["source"] == ON_DEVICE}
            if (fenced and not waiting) or looks_left < 0:
                break
            time.sleep(_ROUND_S)
        return len(waiting)


@cache
def _collector() -> _Collector:
    if os.environ.get("MINDTORCH_NPU_MSPTI") == "0":
        raise MsptiError("MINDTORCH_NPU_MSPTI=0 forbids it")
    path = _find()
    if path is None:
        raise MsptiError(f"CANN's {LIBRARY} was not found")
    return _Collector(path)


# ---------------------------------------------------------------- reading


_texts: dict[int, str] = {0: ""}


def _text(address: int) -> str:
    text = _texts.get(address)
    if text is None:
        text = _texts[address] = ctypes.string_at(address).decode(errors="replace")
    return text


def _texts_of(addresses: np.ndarray) -> list[str]:
    return [_text(address) for address in addresses.tolist()]


def _records(buffers: Sequence[bytes], notes: list[str]) -> ActivityRecords:
    """All records of a recording, as plain columns."""
    parts: dict[int, list[np.ndarray]] = {}
    unread = 0
    for buffer in buffers:
        found, rest = walk(buffer)
        unread += rest
        for kind, records in found.items():
            parts.setdefault(kind, []).append(records)
    if unread:
        notes.append(f"{unread} bytes of libmspti's records could not be read")
    every = {kind: np.concatenate([np.empty(0, layout), *parts.get(kind, ())]) for kind, layout in LAYOUTS.items()}
    calls = np.concatenate([every[API], every[ACL_API]])
    kernels, talks = every[KERNEL], every[COMMUNICATION]
    return ActivityRecords(
        {**_numbers(kernels, "device", "stream", "start", "end", "correlation"), "name": _texts_of(kernels["name"]),
         "details": [{"Accelerator Core": core} if core else {} for core in _texts_of(kernels["type"])]},
        {**_numbers(talks, "device", "stream", "start", "end", "correlation"), "name": _texts_of(talks["name"]),
         "details": _collectives(talks)},
        {**_numbers(calls, "thread", "start", "end", "correlation"), "name": _texts_of(calls["name"])},
        _ranges(every[MARKER]),
        notes,
    )  # fmt: skip


def _numbers(records: np.ndarray, *names: str) -> dict[str, Any]:
    return {name: records[name].astype(np.int64) for name in names}


def _collectives(records: np.ndarray) -> list[dict[str, Any]]:
    columns = (_texts_of(records["name"]), _texts_of(records["group"]), _texts_of(records["algorithm"]))
    return [
        {"Collective name": name, "Process Group Name": group, "algorithm": algorithm, "In msg nelems": count,
         "dtype": DTYPES.get(dtype, str(dtype))}
        for name, group, algorithm, count, dtype in zip(
            *columns, records["count"].tolist(), records["dtype"].tolist(), strict=True
        )
    ]  # fmt: skip


def _ranges(marks: np.ndarray) -> dict[str, Any]:
    """Marks and ranges on devices; those of the host are recorded where they are set."""
    opened: dict[int, Any] = {}
    rows: list[tuple[int, int, int, int, str]] = []
    for mark in marks[marks["source"] == ON_DEVICE]:
        name, domain, at = _text(int(mark["name"])), _text(int(mark["domain"])), int(mark["time"])
        place = int(mark["device"]), int(mark["stream"])
        if mark["flag"] in MARK_START:
            opened[int(mark["id"])] = mark_name(name, domain), at, wants_marks(domain)
        elif mark["flag"] in MARK_END and int(mark["id"]) in opened:
            name, began, wanted = opened.pop(int(mark["id"]))
            if wanted:
                rows.append((*place, began, at, name))
        elif mark["flag"] in MARK_INSTANT and not name.startswith(_FENCE) and wants_marks(domain):
            rows.append((*place, at, at, mark_name(name, domain)))
    columns = [*zip(*rows, strict=True)] if rows else [()] * 5
    names = ("device", "stream", "start", "end")
    return {**{key: np.array(column, np.int64) for key, column in zip(names, columns, strict=False)}, "name": list(columns[4])}
