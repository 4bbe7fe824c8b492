"""Collapsed stacks: `root;caller;callee N` lines for flamegraph.pl, speedscope and the like."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .._io.files import write_file
from .._io.stack_lines import stack_frame
from ..store.store import EventStore

METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total")


def export(store: EventStore, path: str | os.PathLike[str], *, metric: str = "self_cpu_time_total") -> None:
    """Write a line for each event with a stack and a microsecond or more of the metric, one of METRICS."""
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {list(METRICS)}")
    visible = store.visible
    microseconds, stacks = _metric(visible, metric), visible.call_stack
    rows = np.flatnonzero((stacks >= 0) & (microseconds > 0))
    texts = {at: collapsed(visible.stacks[at]) for at in np.unique(stacks[rows]).tolist()}
    pairs = zip(stacks[rows].tolist(), microseconds[rows].tolist(), strict=True)
    write_file(path, (f"{texts[at]} {value}\n".encode("utf-8", "backslashreplace") for at, value in pairs if texts[at]))


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
    """Whole microseconds per row, on the CPU or on other devices.

    Device time counts at the device row, which has the stack of the op that launched it, and not at that op again.
    """
    if not store.has_device_rows:
        return store.self_ns // 1000 if metric == METRICS[0] else np.zeros(len(store), np.int64)
    counted = store.device_type == 0 if metric == METRICS[0] else store.is_work
    return np.where(counted, store.self_ns // 1000, 0)
