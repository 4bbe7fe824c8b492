"""Collapsed stacks: `root;caller;callee N` lines for flamegraph.pl, speedscope and the like."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._store import EventStore
from .files import write_file

METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total")
_SEPARATORS = str.maketrans(" ;\t\n", "____")


def export(store: EventStore, path: str | os.PathLike[str], *, metric: str = "self_cpu_time_total") -> None:
    """Write a line for each event with a stack and a microsecond or more of the metric; ValueError if it is unknown."""
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {list(METRICS)}")
    write_file(path, _blocks(store.shown, metric))


def _blocks(store: EventStore, metric: str) -> Iterator[bytes]:
    microseconds = _metric(store, metric)
    stacks = store.call_stack
    shown = np.flatnonzero((stacks >= 0) & (microseconds > 0))
    texts: dict[int, str] = {}
    for stack in np.unique(stacks[shown]).tolist():
        texts[stack] = ";".join(frame.translate(_SEPARATORS) for frame in reversed(store.stacks[stack]))
    for stack, value in zip(stacks[shown].tolist(), microseconds[shown].tolist(), strict=True):
        if texts[stack]:
            yield f"{texts[stack]} {value}\n".encode()


def _metric(store: EventStore, metric: str) -> NDArray[np.int64]:
    """Whole microseconds per row: the CPU's, or those of whatever other device there is."""
    on_cpu = store.device_type == 0
    return np.where(on_cpu if metric == METRICS[0] else ~on_cpu, store.self_ns // 1000, 0)
