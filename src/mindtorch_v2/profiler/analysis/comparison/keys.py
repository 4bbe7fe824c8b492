"""WorkKey: rows of the same name, input shapes, module and device are one kind of work, which recordings are compared by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ..._io.terminal import shown
from ...store.store import EventStore
from ..steps import is_step


class WorkKey(NamedTuple):
    """Op name, shapes of its inputs as text, module path and device type; "" and 0 where nothing was recorded."""

    name: str
    shapes: str
    module: str
    device: int

    def __str__(self) -> str:
        shapes = f" {shown(self.shapes)}" if self.shapes else ""
        return shown(self.name) + shapes + (f" in {shown(self.module)}" if self.module else "")


def work_keys(store: EventStore, *, shapes: bool = True, modules: bool = True) -> tuple[list[WorkKey], NDArray[np.int64]]:
    """The keys of a recording and, for each row, which one it has; -1 for Python calls, steps and memory outside of events.

    shapes, modules: whether rows that differ in these have different keys.
    """
    counted = ~store.is_python & ~is_step(store) & (store.kind != observer.MEMORY) & (store.kind != observer.RUNTIME)
    rows = np.flatnonzero(counted)
    texts = _texts(store)
    shape_numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    unknown = np.full(len(rows), -1, np.int64)
    shape_of = np.array([*(shape_numbers[text] for text in texts), -1], np.int64)[store.shapes[rows]] if shapes else unknown
    module_of = store.module[rows] if modules else unknown
    columns: list[NDArray[Any]] = [store.label[rows], shape_of, module_of, store.device_type[rows]]
    packed = np.zeros(len(rows), np.int64)
    for column in columns:
        packed = packed * (int(column.max(initial=-1)) + 2) + column + 1
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    distinct = list(shape_numbers)
    keys = [
        WorkKey(
            store.labels[label], distinct[shape] if shape >= 0 else "", store.modules[module] if module >= 0 else "", device
        )
        for label, shape, module, device in zip(*(column[first].tolist() for column in columns), strict=True)
    ]
    numbers = np.full(len(store), -1, np.int64)
    numbers[rows] = which
    return keys, numbers


def _texts(store: EventStore) -> list[str]:
    return [str([list(dims) if isinstance(dims, tuple) else dims for dims in info.dims]) for info in store.input_infos]
