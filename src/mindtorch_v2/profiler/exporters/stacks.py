"""Collapsed stacks: `root;caller;callee N` lines for flamegraph.pl, speedscope and the like."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .._io.files import write_file
from .._io.stack_lines import stack_frame
from ..store import tree
from ..store.distinct import distinct_values
from ..store.store import EventStore

METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total")
_MICROSECOND = 1000  # nanoseconds


class NoStacksError(ValueError):
    """A recording has neither stacks nor Python calls to make some of."""


def export(
    store: EventStore,
    path: str | os.PathLike[str],
    *,
    metric: str = "self_cpu_time_total",
    even_if_empty: bool = False,
) -> None:
    """Write a line for each event with a stack and a microsecond or more of the metric, one of METRICS.

    Calls of Python functions count with the time in which they called nothing that was recorded, all calls of one stack in one
    line, so that the lines of a thread add up to its time. NoStacksError if the recording was made without stacks, unless an
    empty file will do.
    """
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {list(METRICS)}")
    if not even_if_empty and not (store.stack >= 0).any() and not store.is_python.any() and not store.options.get("with_stack"):
        raise NoStacksError(
            "the recording has no stacks: record it with profile(with_stack=True), or with `mtprof run --stack`"
        )
    visible = store.visible
    nanoseconds = _metric(visible, metric)
    write_file(path, itertools.chain(_lines(visible, nanoseconds), _lines_of_first_uses(store, _metric(store, metric))))


def _lines(store: EventStore, nanoseconds: NDArray[np.int64]) -> Iterator[bytes]:
    stacks, python = store.call_stack, store.is_python
    events = np.flatnonzero((nanoseconds >= _MICROSECOND) & (stacks >= 0) & ~python)
    texts = {at: collapsed(store.stacks[at]) for at in distinct_values(stacks[events]).tolist()}
    for at, spent in zip(stacks[events].tolist(), (nanoseconds[events] // _MICROSECOND).tolist(), strict=True):
        if texts[at]:
            yield _line(texts[at], spent)
    chains = _PythonChains(store)
    calls: dict[str, int] = {}
    for row in np.flatnonzero(python & (nanoseconds > 0)).tolist():
        text = chains.text(row)
        calls[text] = calls.get(text, 0) + int(nanoseconds[row])
    yield from (_line(text, spent // _MICROSECOND) for text, spent in calls.items() if spent >= _MICROSECOND)


def _lines_of_first_uses(store: EventStore, nanoseconds: NDArray[np.int64]) -> Iterator[bytes]:
    """A line for each op and place where its code was compiled, below what called it."""
    chains = _PythonChains(store)
    spent: dict[str, int] = {}
    for row in np.flatnonzero(store.is_first_use & (nanoseconds > 0)).tolist():
        text = chains.below(row)
        if text:
            spent[text] = spent.get(text, 0) + int(nanoseconds[row])
    yield from (_line(text, whole // _MICROSECOND) for text, whole in spent.items() if whole >= _MICROSECOND)


def _line(text: str, microseconds: int) -> bytes:
    return f"{text} {microseconds}\n".encode("utf-8", "backslashreplace")


class _PythonChains:
    """The lines of Python calls: the stack of the caller, or the calls around, and the function itself."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._above = tree.nearest_ancestor(store.parent, store.is_python)
        self._texts: dict[tuple[str, int], str] = {}
        self._by_row: dict[int, str] = {}

    def text(self, row: int) -> str:
        """The stack that ends in this call, root first."""
        store = self._store
        waiting: list[int] = []
        at = row
        while at >= 0 and at not in self._by_row and store.stack[at] < 0:
            waiting.append(at)
            at = int(self._above[at])
        above = "" if at < 0 else self._by_row[at] if at in self._by_row else self._with_stack(at)
        for inner in reversed(waiting):
            frame = stack_frame(store.names[store.name[inner]])
            above = self._by_row[inner] = f"{above};{frame}" if above else frame
        return above

    def below(self, row: int) -> str:
        """The stack of a row that is no call, and its name as the last frame; "" if nothing tells what called it."""
        store, caller = self._store, int(self._above[row])
        at = int(store.call_stack[row])
        above = collapsed(store.stacks[at]) if at >= 0 else self.text(caller) if caller >= 0 else ""
        return f"{above};{stack_frame(store.names[store.name[row]])}" if above else ""

    def _with_stack(self, row: int) -> str:
        store = self._store
        key = (store.names[store.name[row]], int(store.stack[row]))
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = collapsed((key[0], *store.stacks[key[1]]))
        return text


def export_rows(rows: Iterable[tuple[Sequence[str], float]], path: str | os.PathLike[str]) -> None:
    """Write a line for each (stack, innermost frame first; microseconds) that has both."""
    collapsed_rows = ((collapsed(stack), int(value)) for stack, value in rows)
    write_file(
        path, (f"{text} {value}\n".encode("utf-8", "backslashreplace") for text, value in collapsed_rows if text and value > 0)
    )


def collapsed(stack: Sequence[str]) -> str:
    """A stack, innermost frame first, as one word: root first, joined by semicolons."""
    return ";".join(map(stack_frame, reversed(stack)))


def _metric(store: EventStore, metric: str) -> NDArray[np.int64]:
    """Nanoseconds per row, on the CPU or on other devices.

    Device time counts at the device row, which has the stack of the op that launched it, and not at that op again.
    """
    if not store.has_device_rows:
        return store.self_ns if metric == METRICS[0] else np.zeros(len(store), np.int64)
    counted = store.device_type == 0 if metric == METRICS[0] else store.is_work
    return np.where(counted, store.self_ns, 0)
