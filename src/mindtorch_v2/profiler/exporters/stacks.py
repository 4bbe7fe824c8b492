"""Collapsed stacks: `root;caller;callee N` lines for flamegraph.pl, speedscope and the like."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .._io.files import write_file
from .._io.stack_lines import stack_frame
from ..store.distinct import distinct_values
from ..store.store import EventStore
from .call_paths import CallPaths, collapsed

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
    calls = CallPaths(store).sums(nanoseconds)
    yield from (_line(text, spent // _MICROSECOND) for text, spent in calls if spent >= _MICROSECOND)


def _lines_of_first_uses(store: EventStore, nanoseconds: NDArray[np.int64]) -> Iterator[bytes]:
    """A line for each op and place where its code was compiled, below what called it."""
    rows = np.flatnonzero(store.is_first_use & (nanoseconds > 0)).tolist()
    if not rows:
        return
    paths, spent = CallPaths(store), dict[str, int]()
    for row in rows:
        at = int(store.call_stack[row])
        above = collapsed(store.stacks[at]) if at >= 0 else paths.of_caller(row)
        if above:
            text = f"{above};{stack_frame(store.names[store.name[row]])}"
            spent[text] = spent.get(text, 0) + int(nanoseconds[row])
    yield from (_line(text, whole // _MICROSECOND) for text, whole in spent.items() if whole >= _MICROSECOND)


def _line(text: str, microseconds: int) -> bytes:
    return f"{text} {microseconds}\n".encode("utf-8", "backslashreplace")


def export_rows(rows: Iterable[tuple[Sequence[str], float]], path: str | os.PathLike[str]) -> None:
    """Write a line for each (stack, innermost frame first; microseconds) that has both."""
    collapsed_rows = ((collapsed(stack), int(value)) for stack, value in rows)
    write_file(
        path, (f"{text} {value}\n".encode("utf-8", "backslashreplace") for text, value in collapsed_rows if text and value > 0)
    )


def _metric(store: EventStore, metric: str) -> NDArray[np.int64]:
    """Nanoseconds per row, on the CPU or on other devices.

    Device time counts at the device row, which has the stack of the op that launched it, and not at that op again.
    """
    if not store.has_device_rows:
        return store.self_ns if metric == METRICS[0] else np.zeros(len(store), np.int64)
    counted = store.device_type == 0 if metric == METRICS[0] else store.is_work
    return np.where(counted, store.self_ns, 0)
