"""What a device did: use, kernels by launch geometry, copies, launches; and each step by what it waited for.

`device_summaries`, `step_breakdown`, `kernel_groups`, `copy_groups` and `launch_stats` take a store, of a CUDA trace of PyTorch
or of a recording on an NPU. What a trace does not tell (occupancy, tensor cores, bytes) is None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store import tree
from ...store.intervals import Intervals
from ...store.store import EventStore
from ...views.columns import device_text
from ...views.events import DeviceType
from ..steps import steps

_DEVICES = tuple(device.name for device in DeviceType)  # by torch's number
_CUDA = _DEVICES.index("CUDA")
_BLOCKS = ("Block Num", "Block Dim")  # the newer and the older name
OCCUPANCY = ("est. achieved occupancy %", "theoretical occupancy %")
_COMMUNICATION = re.compile(r"nccl|rccl|hccl|allreduce_kernel", re.IGNORECASE)
# What libraries call kernels that use tensor cores: cuBLAS, CUTLASS and cuDNN name the instruction's shape or the unit.
_TENSOR_CORES = re.compile(r"[shi]\d*(884|1688|16816|16832)\w*|tensorop|xmma|hmma|wgmma|_tc_|flash_(fwd|bwd)", re.IGNORECASE)
LOADER = "enumerate(DataLoader)"
WAITS = re.compile(r"synchronize|streamwait|eventquery", re.IGNORECASE)

# The parts of a step, each without what those before it cover.
PARTS = ("kernel", "communication", "copy", "fill", "waiting", "launching", "loader", "cpu", "idle")


class DeviceSummary(NamedTuple):
    """One device over the whole recording. Shares are parts of `span_ns`."""

    device: str
    name: str | None
    span_ns: int  # from the first to the last event of the recording
    busy_ns: int  # at least one kernel, copy or fill ran
    kernel_ns: int  # at least one kernel ran that computes
    communication_ns: int
    copy_ns: int
    exposed_communication_ns: int  # communication while nothing was computed
    kernels: int
    streams: int
    occupancy: float | None  # percent, weighted by the kernels' time
    sm_efficiency: float | None  # part of the kernels' time in which a multiprocessor had a block
    tensor_core_share: float | None  # part of the kernels' time in kernels named as using tensor cores

    @property
    def utilization(self) -> float:
        """The part of the recording in which the device was busy."""
        return self.busy_ns / self.span_ns if self.span_ns else 0.0


class StepParts(NamedTuple):
    """One step: nanoseconds by PARTS, of which those after `fill` are the device's idle time by its cause."""

    step: int
    duration_ns: int
    parts: dict[str, int]


class KernelGroup(NamedTuple):
    """Kernels of one name and launch geometry; numbers that CANN gives single kernels and collectives are a star."""

    name: str
    device: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    calls: int
    total_ns: int
    shortest_ns: int
    longest_ns: int
    occupancy: float | None
    blocks_per_sm: float | None
    registers: int | None
    shared_memory: int | None
    tensor_cores: bool | None
    core: str | None  # of an NPU: the kind of cores that ran them
    blocks: float | None  # of an NPU: on how many cores, weighted by time
    op: str | None  # the op that launched most of their time


class CopyGroup(NamedTuple):
    """Copies and fills of one name."""

    name: str
    device: str
    calls: int
    total_ns: int
    bytes: int | None
    blocking: int  # of the calls: the host waited until the copy was done

    @property
    def gigabytes_per_second(self) -> float | None:
        """Bytes over time, in units of 10**9; None where the trace has no bytes."""
        return self.bytes / self.total_ns if self.bytes is not None and self.total_ns else None


class LaunchStats(NamedTuple):
    """Launches of one stream: how long work waited, and how much of it waited at a time."""

    device: str
    stream: int  # below 0: a group of collectives
    lane: str  # what the stream or group is called
    launches: int
    median_delay_ns: int  # from the call that launched to the start on the device
    longest_delay_ns: int
    mean_queue: float  # launched and not yet begun, averaged over time
    longest_queue: int
    starved_share: float  # part of the time from first to last in which nothing waited and nothing ran


def device_summaries(store: EventStore) -> list[DeviceSummary]:
    """A summary of each device, in order of their numbers; empty if nothing ran on one."""
    arguments = _Arguments(store)
    span = int(store.end.max() - store.start.min()) if len(store) else 0
    properties = store.metadata.get("deviceProperties") or store.options.get("device_properties")
    names = {entry.get("id"): entry.get("name") for entry in properties if isinstance(entry, dict)} if properties else {}
    summaries = []
    for device, rows in by_device(store):
        kernels, others, copies = classes(store, rows)
        computing, talking = union(store, kernels), union(store, others)
        index = max(int(store.device_index[rows[0]]), 0)
        name = names.get(index)
        everything = np.concatenate([kernels, others])
        per_sm = arguments.number("blocks per SM", everything)
        summaries.append(
            DeviceSummary(
                device,
                name if isinstance(name, str) else None,
                span,
                union(store, rows).total,
                computing.total,
                talking.total,
                union(store, copies).total,
                (computing | talking).total - computing.total,
                len(everything),
                len(np.unique(store.tid[rows])),
                _weighted(arguments.number(OCCUPANCY, everything), store.duration[everything]),
                _weighted(np.minimum(per_sm, 1), store.duration[everything]),
                _tensor_core_share(store, everything),
            )
        )
    return summaries


def step_breakdown(store: EventStore) -> list[StepParts]:
    """Each step by what it spent its time on: the device's work first, then what the host did while the device was idle."""
    which = steps(store)
    if not len(which.start):
        return []
    start, end = which.start, which.end.copy()
    work = np.flatnonzero(store.is_work)
    kernels, others, copies = classes(store, work)
    if len(work):
        end[-1] = max(end[-1], int(store.end[work[store.start[work] < end[-1]]].max(initial=0)))
    host = store.device_type == 0
    calls = host & (store.kind == observer.RUNTIME)
    waits = np.array([WAITS.search(name) is not None for name in store.names] + [False])[store.name]
    loading = np.array([name.startswith(LOADER) for name in store.names] + [False])[store.name]
    ops = host & np.isin(store.kind, (observer.OP, observer.BACKWARD, observer.ENGINE))
    fills = copies[store.kind[copies] == observer.FILL]
    parts = (
        kernels,
        others,
        copies[store.kind[copies] == observer.COPY],
        fills,
        np.flatnonzero(calls & waits),
        np.flatnonzero(calls & ~waits),
        np.flatnonzero(host & loading),
        np.flatnonzero(ops),
    )
    covered = [np.zeros(len(start), np.int64)]
    so_far = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))
    for rows in parts:
        so_far |= union(store, rows)
        covered.append(so_far.covered(start, end))
    covered.append(end - start)
    amounts = np.diff(np.array(covered), axis=0)
    return [
        StepParts(number, int(end[at] - start[at]), dict(zip(PARTS, amounts[:, at].tolist(), strict=True)))
        for at, number in enumerate(which.number.tolist())
    ]


def kernel_groups(store: EventStore) -> list[KernelGroup]:
    """Kernels by name and launch geometry, most time first."""
    arguments = _Arguments(store)
    groups = []
    for device, all_rows in by_device(store):
        rows = all_rows[store.kind[all_rows] == observer.KERNEL]
        geometry, shapes = arguments.geometry(rows)
        key, which = np.unique(store.label[rows].astype(np.int64) * (len(shapes) + 1) + geometry, return_inverse=True)
        for at, number in enumerate(key.tolist()):
            name, shape = divmod(number, len(shapes) + 1)
            some = rows[which == at]
            grid, block = shapes[shape] if shape < len(shapes) else (None, None)
            spent = store.duration[some]
            text = store.labels[name]
            groups.append(
                KernelGroup(
                    text,
                    device,
                    grid,
                    block,
                    len(some),
                    int(spent.sum()),
                    int(spent.min()),
                    int(spent.max()),
                    _weighted(arguments.number(OCCUPANCY, some), spent),
                    _weighted(arguments.number("blocks per SM", some), spent),
                    _first(arguments.number("registers per thread", some)),
                    _first(arguments.number("shared memory", some)),
                    uses_tensor_cores(text) if store.device_type[some[0]] == _CUDA else None,
                    arguments.text("Accelerator Core", int(some[0])),
                    _weighted(_positive(arguments.number(_BLOCKS, some)), spent),
                    _main_op(store, some),
                )
            )
    return sorted(groups, key=lambda group: -group.total_ns)


def copy_groups(store: EventStore) -> list[CopyGroup]:
    """Copies and fills by name, most time first."""
    arguments = _Arguments(store)
    groups = []
    for device, all_rows in by_device(store):
        rows = all_rows[np.isin(store.kind[all_rows], (observer.COPY, observer.FILL))]
        amounts = arguments.number(("bytes", "size"), rows)
        blocking = _blocks_host(store, rows)
        for name in np.unique(store.name[rows]).tolist():
            some = store.name[rows] == name
            known = amounts[some][~np.isnan(amounts[some])]
            spent = int(store.duration[rows[some]].sum())
            moved = int(known.sum()) if len(known) else None
            waited = int(blocking[some].sum())
            groups.append(CopyGroup(store.names[name], device, int(some.sum()), spent, moved, waited))
    return sorted(groups, key=lambda group: -group.total_ns)


def _blocks_host(store: EventStore, copies: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the thread that launched a copy was in the call, or in one that waits for the device, when the copy ended."""
    calls = np.flatnonzero((store.kind == observer.RUNTIME) & (store.device_type == 0))
    waits = np.array([WAITS.search(name) is not None for name in store.names] + [False])[store.name[calls]]
    moves = np.isin(store.correlation[calls], store.correlation[copies]) & (store.correlation[calls] >= 0)
    found = np.zeros(len(copies), np.bool_)
    for tid in np.unique(store.launch_tid[copies]).tolist():
        own = calls[(waits | moves) & (store.tid[calls] == tid)]
        mine = store.launch_tid[copies] == tid
        end = store.end[copies[mine]]
        found[mine] = Intervals(store.start[own], store.end[own]).overlap(end, end + 1)
    return found


def launch_stats(store: EventStore) -> list[LaunchStats]:
    """Launch delay and queue length of each stream; only of work whose launch is in the recording."""
    found = []
    for device, all_rows in by_device(store):
        rows = all_rows[(store.launch_ns[all_rows] >= 0) & (store.correlation[all_rows] >= 0)]
        for lane in np.unique(store.tid[rows]).tolist():
            some = rows[store.tid[rows] == lane]
            launched, began, ended = store.launch_ns[some], store.start[some], store.end[some]
            delay = np.maximum(began - launched, 0)
            first, last = int(min(launched.min(), began.min())), int(ended.max())
            waiting = Intervals(launched, np.maximum(began, launched)) | Intervals(began, ended)
            times = np.concatenate([launched, np.maximum(began, launched)])
            order = np.argsort(times, kind="stable")
            depth = np.cumsum(np.repeat([1, -1], len(some))[order])
            found.append(
                LaunchStats(
                    device,
                    store.threads[lane].ident,
                    store.threads[lane].name,
                    len(some),
                    int(np.median(delay)),
                    int(delay.max()),
                    float(delay.sum()) / max(last - first, 1),
                    int(depth.max()),
                    1 - waiting.total / (last - first) if last > first else 0.0,
                )
            )
    return found


def uses_tensor_cores(kernel: str) -> bool:
    """Whether a CUDA kernel's name says that it uses tensor cores."""
    return _TENSOR_CORES.search(kernel) is not None


# ---------------------------------------------------------------------- rows


def by_device(store: EventStore) -> list[tuple[str, NDArray[np.intp]]]:
    """Each device with the rows of its work."""
    rows = np.flatnonzero(store.is_work)
    place = store.device_type[rows].astype(np.int64) << 32 | np.maximum(store.device_index[rows], 0)
    return [
        (device_text(_DEVICES[number >> 32], number & 0xFFFFFFFF), rows[place == number])
        for number in np.unique(place).tolist()
    ]


def classes(store: EventStore, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Kernels that compute, kernels that communicate, and copies and fills."""
    talks = np.array([_COMMUNICATION.search(name) is not None for name in store.names] + [False])[store.name[rows]]
    talks |= store.is_collective[rows]
    moves = np.isin(store.kind[rows], (observer.COPY, observer.FILL))
    return rows[~moves & ~talks], rows[~moves & talks], rows[moves]


def union(store: EventStore, rows: NDArray[np.intp]) -> Intervals:
    """When at least one of the rows ran."""
    return Intervals(store.start[rows], store.end[rows])


def _weighted(values: NDArray[np.float64], weight: NDArray[np.int64]) -> float | None:
    """The mean of the known values, weighted; None if none is known."""
    known = ~np.isnan(values)
    total = int(weight[known].sum())
    return float((values[known] * weight[known]).sum() / total) if total else None


def _positive(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values that are not 0, which stands for one that is not told."""
    return np.where(values > 0, values, np.nan)


def _first(values: NDArray[np.float64]) -> int | None:
    known = values[~np.isnan(values)]
    return int(known[0]) if len(known) else None


def _tensor_core_share(store: EventStore, kernels: NDArray[np.intp]) -> float | None:
    total = int(store.duration[kernels].sum())
    if not total or store.device_type[kernels[0]] != _CUDA:
        return None
    using = np.array([uses_tensor_cores(name) for name in store.names] + [False])[store.name[kernels]]
    return float(store.duration[kernels[using]].sum() / total)


def _main_op(store: EventStore, rows: NDArray[np.intp]) -> str | None:
    launcher = store.launcher[rows]
    known = launcher >= 0
    if not known.any():
        return None
    spent = tree.sums(store.label[launcher[known]], store.duration[rows[known]], len(store.labels))
    return store.labels[int(spent.argmax())]


class _Arguments:
    """The arguments that traces give events, parsed once for all rows that share them."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._parsed: list[dict[str, Any]] = [orjson.loads(details.arguments) for details in store.row_details]

    def number(self, names: str | Sequence[str], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The first of some arguments that a row has, as a number; NaN where it has none."""
        keys = (names,) if isinstance(names, str) else names
        values = [_number(next((entry[key] for key in keys if key in entry), None)) for entry in self._parsed]
        return np.array([*values, np.nan])[self._store.details[rows]]

    def text(self, name: str, row: int) -> str | None:
        """An argument of a row that is text; None if it has none."""
        details = int(self._store.details[row])
        value = self._parsed[details].get(name) if details >= 0 else None
        return value if isinstance(value, str) else None

    def geometry(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], list[tuple[Any, Any]]]:
        """For each row a number of its (grid, block), and these; the number after the last where a row has none."""
        known: dict[tuple[Any, Any], int] = {}
        numbers = []
        for entry in self._parsed:
            grid, block = _sizes(entry.get("grid")), _sizes(entry.get("block"))
            numbers.append(-1 if grid is None and block is None else known.setdefault((grid, block), len(known)))
        found = np.array([*numbers, -1], np.int64)[self._store.details[rows]]
        return np.where(found >= 0, found, len(known)), list(known)


def _number(value: Any) -> float:
    return float(value) if type(value) in (int, float) else float("nan")


def _sizes(value: Any) -> tuple[int, ...] | None:
    return tuple(value) if isinstance(value, list) and value and all(type(part) is int for part in value) else None
