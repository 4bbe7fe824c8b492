"""FLOPs beside bytes moved, by op, by op and shapes, or by module: which are limited by memory and which by computing.

Bytes moved are those of the tensors that an op is given, once for reading and once more if it writes to them, and of the memory
that it allocates for its result. What caches keep is not known: it is the least that must be moved if nothing is in a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.dtype import DTYPES
from ..._dispatch import observer
from ..recording.op_facts import data_moves
from ..store import tree
from ..store.store import EventStore, InputInfo
from .ceilings import Ceilings

BY = ("op", "shape", "module")


@dataclass(frozen=True)
class Point:
    """The work of one op or module, added up."""

    name: str
    calls: int
    time_ns: int
    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """FLOPs per byte moved; infinite if nothing was moved."""
        return self.flops / self.bytes if self.bytes else float("inf")

    @property
    def flops_s(self) -> float:
        """FLOPs per second."""
        return self.flops / self.time_ns * 1e9 if self.time_ns else 0.0

    @property
    def bytes_s(self) -> float:
        """Bytes moved per second."""
        return self.bytes / self.time_ns * 1e9 if self.time_ns else 0.0

    def limit(self, ceilings: Ceilings) -> str:
        """Which ceiling is above it: "memory" or "compute"."""
        return "memory" if self.intensity < ceilings.ridge else "compute"

    def share(self, ceilings: Ceilings) -> float:
        """How much of its ceiling it reached: of the speed of copying where memory is the limit, else of computing."""
        if self.limit(ceilings) == "memory":
            return self.bytes_s / ceilings.copy_bytes_s
        return self.flops_s / ceilings.float32_flops_s

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values, for JSON."""
        known = {"name": self.name, "calls": self.calls, "time_ns": self.time_ns, "flops": self.flops, "bytes": self.bytes}
        return {**known, "flops_s": self.flops_s, "bytes_s": self.bytes_s}


def roofline(store: EventStore, flops: NDArray[np.int64], by: str = "op") -> list[Point]:
    """The points of a recording with input shapes, most time first. `flops` has the FLOPs of every row.

    Counted are ops with FLOPs, and of the others those that call no further op; what makes a view moves nothing and is left
    out.
    """
    counted = _work(store, flops)
    moved = bytes_moved(store)[counted]
    spent = store.total_device_ns[counted] if store.has_device_rows else store.duration[counted]
    names, group = _groups(store, counted, by)
    columns = [tree.sums(group, values, len(names)) for values in (spent, flops[counted], moved)]
    calls = np.bincount(group[group >= 0], minlength=len(names))
    points = [
        Point(name, *figures)
        for name, *figures in zip(names, calls.tolist(), *(column.tolist() for column in columns), strict=True)
        if figures[2] or figures[3]
    ]
    return sorted(points, key=lambda point: -point.time_ns)


def bytes_moved(store: EventStore) -> NDArray[np.int64]:
    """Bytes moved by the op of each row: 0 for a view, for rows that are no ops, and where no shapes were recorded."""
    moved = np.zeros(len(store), np.int64)
    known = np.flatnonzero((store.kind == observer.OP) & (store.shapes >= 0))
    width = len(store.input_infos) + 1
    distinct, which = np.unique(store.name[known].astype(np.int64) * width + store.shapes[known], return_inverse=True)
    amounts = [_input_bytes(store.names[pair // width], store.input_infos[pair % width]) for pair in distinct.tolist()]
    if amounts:
        moved[known] = np.array(amounts, np.int64)[which]
    grown = np.flatnonzero((store.mem_bytes > 0) & (store.mem_event >= 0))
    allocated = tree.subtree_sums(store.parent, tree.sums(store.mem_event[grown], store.mem_bytes[grown], len(store)))
    moved[known] += allocated[known]
    views = [number for number, name in enumerate(store.names) if data_moves(name)[0]]
    moved[np.isin(store.name, views)] = 0
    return moved


def _work(store: EventStore, flops: NDArray[np.int64]) -> NDArray[np.intp]:
    """Rows of ops with FLOPs, and of ops without that neither call others nor are part of one with FLOPs."""
    is_op = store.kind == observer.OP
    has_flops = is_op & (flops > 0)
    calls_ops = np.zeros(len(store) + 1, np.bool_)
    calls_ops[tree.nearest_ancestor(store.parent, is_op)[is_op]] = True
    within = tree.nearest_ancestor(store.parent, has_flops) >= 0
    return np.flatnonzero((has_flops | (is_op & ~calls_ops[:-1])) & ~within)


def _groups(store: EventStore, rows: NDArray[np.intp], by: str) -> tuple[list[str], NDArray[np.int64]]:
    if by == "op":
        return list(store.labels), store.label[rows].astype(np.int64)
    if by == "module":
        return list(store.modules), store.module[rows].astype(np.int64)
    if by != "shape":
        raise ValueError(f"unknown grouping {by!r}, known are: {', '.join(BY)}")
    width = len(store.input_infos) + 1
    distinct, which = np.unique(store.label[rows].astype(np.int64) * width + store.shapes[rows] + 1, return_inverse=True)
    names = [_with_shapes(store, *divmod(pair, width)) for pair in distinct.tolist()]
    return names, which.astype(np.int64)


def _with_shapes(store: EventStore, label: int, info: int) -> str:
    if not info:
        return store.labels[label]
    shapes = [list(dims) for dims, kind in zip(*store.input_infos[info - 1][:2], strict=True) if _size_of(kind) and dims]
    return f"{store.labels[label]} {shapes}"


def _input_bytes(name: str, inputs: InputInfo) -> int:
    _, written = data_moves(name)
    padded = (*written, *([False] * len(inputs.dims)))
    arguments = zip(inputs.dims, inputs.types, inputs.strides, padded, strict=False)
    return sum(_tensor_bytes(dims, kind, strides) * (2 if writes else 1) for dims, kind, strides, writes in arguments)


def _tensor_bytes(dims: Sequence[Any], kind: str, strides: Sequence[Any]) -> int:
    """Bytes of a tensor or of a list of them. A dimension of stride 0 is the same memory again and again."""
    if any(isinstance(one, tuple) for one in dims):
        return sum(_tensor_bytes(one, kind, steps) for one, steps in zip(dims, strides, strict=False))
    elements = 1
    for at, length in enumerate(dims):
        if at >= len(strides) or strides[at] != 0:
            elements *= length
    return elements * _size_of(kind)


@cache
def _size_of(kind: str) -> int:
    """Bytes of an element by the type's name in a trace; 0 for what is no tensor, or of a type that is not known.

    Traces have no types of tensors in lists: they count as float32.
    """
    if kind == "TensorList":
        return DTYPES["float32"].itemsize
    return next((one.itemsize for one in DTYPES.values() if one.cpp_name == kind), 0)
