"""Estimates what recording itself cost, as a figure and as a range, and times without that cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ..store.store import EventStore, InputInfo
from .findings import duration

Floats = NDArray[np.float64]

# Work of this length before an event leaves the recorder's code and data in the caches, and evicts all of it.
_WARM_NS, _COLD_NS = 1.5e3, 150e3
# The range. How cold the caches were is known this well (1: not at all) and, apart from that, what an event cost within this
# factor: ops differ in their arguments, programs in what they call, and a machine in its speed from one second to the next.
# benchmarks/overhead_truth.py measures how often the truth lies in it.
_COLDNESS_ERROR = 0.3
_COST_FACTOR = 1.5


# How the names of ranges begin that the runtime records itself, in one call as an op does: a user's ranges take several.
OWN_SPANS = ("Optimizer.", "enumerate(DataLoader)", "DataParallel.", "DistributedDataParallel.")

# What is said in table, report and `mtprof run` above that.
LARGE = (
    "The program took more than twice as long as without recording: record less, or look at times without its cost "
    "(mtprof table --corrected)"
)


class Calibration(NamedTuple):
    """Nanoseconds that one recorded event adds, by kind; `inside` is the part that falls between its own clock readings.

    `nested` is an op inside of another, for which the tracer of calls need not be switched; `builtin` and `method` are calls of
    builtin functions and of methods of builtin types, `python` those of functions, with rows or hidden inside of the runtime.
    Negative: as `op` or `python`, not measured.
    `inputs` comes on top of `op` where a call's arguments differ from those of the op's first call, `argument` for each of them
    but one, `tensor` for each tensor among a call's arguments where shapes are recorded together with memory. `cold` is the
    factor for an event after work that emptied the caches, `spread` that between a typical measurement and a good or bad one.
    Files of earlier versions have the first four.
    """

    op: float
    scope: float
    python: float
    inside: float
    memory: float = 0.0
    engine: float = 0.0
    module: float = 0.0
    inputs: float = 0.0
    cold: float = 1.0
    spread: float = 2.0
    tensor: float = 0.0
    nested: float = -1.0
    builtin: float = -1.0
    method: float = -1.0
    argument: float = 0.0


@dataclass(frozen=True)
class Overhead:
    """The recorder's share of a recording, estimated as events times the cost of one.

    The true cost is the time of the program recorded less that of the program not recorded. low_ns to high_ns is meant to
    contain it in 19 of 20 recordings (benchmarks/overhead_truth.py measures how often it does); total_ns is the likeliest.
    duration_ns and self_ns are the recording's columns without the cost of the events in them, and without the compilation
    of ops at their first use.
    """

    calibration: Calibration
    events: int
    total_ns: int
    low_ns: int
    high_ns: int
    covered_ns: int
    duration_ns: NDArray[np.int64]
    self_ns: NDArray[np.int64]

    @property
    def share(self) -> float:
        """The part of the covered time that was spent on recording, at most 1."""
        return min(1.0, self.total_ns / self.covered_ns) if self.covered_ns else 0.0

    @property
    def per_event_ns(self) -> float:
        """Nanoseconds per event, on average."""
        return self.total_ns / self.events if self.events else 0.0

    @property
    def is_large(self) -> bool:
        """Whether the recorded program took more than twice as long as it would have without recording."""
        return self.share > 0.5

    def __str__(self) -> str:
        text = (
            f"Profiler overhead: about {duration(self.total_ns)} ({duration(self.low_ns)} to {duration(self.high_ns)}) in "
            f"{self.events:,} events ({self.per_event_ns:.0f} ns each), {self.share:.1%} of the recorded time"
        )
        return f"{text}. {LARGE}" if self.is_large else text


def calibration_of(store: EventStore) -> Calibration | None:
    """The calibration that a recording was saved with; None if it has none."""
    known = store.options.get("calibration")
    if not isinstance(known, Mapping):
        return None
    required = set(Calibration._fields) - set(Calibration._field_defaults)
    if not required <= set(known) <= set(Calibration._fields):
        return None
    return Calibration(**{name: float(value) for name, value in known.items()})


def estimate(store: EventStore, calibration: Calibration) -> Overhead:
    """The overhead in a recording whose events cost what the calibration says."""
    warm = _warm_costs(store, calibration)
    cold = _coldness(store, warm)
    factor = _COST_FACTOR * max(1.0, calibration.spread)
    duration_ns, self_ns = _corrected(store, calibration, warm)
    roots = (store.parent < 0) & (store.device_type == 0)
    return Overhead(
        calibration,
        int((warm > 0).sum()),
        round(_total(store, calibration, warm, cold)),
        round(_total(store, calibration, warm, np.maximum(cold - _COLDNESS_ERROR, 0.0)) / factor),
        round(_total(store, calibration, warm, np.minimum(cold + _COLDNESS_ERROR, 1.0)) * factor),
        int(store.duration[roots].sum()),
        duration_ns,
        self_ns,
    )


def _total(store: EventStore, calibration: Calibration, warm: Floats, cold: Floats) -> float:
    """What recording all rows cost, and what is not in their costs: allocations and frees, calls without a row."""
    factor = calibration.cold**cold
    mean = float(factor[warm > 0].mean()) if (warm > 0).any() else 1.0
    between = calibration.memory * len(store.mem_time) + calibration.python * hidden_calls(store)
    return float((warm * factor).sum()) + between * mean


def _corrected(store: EventStore, calibration: Calibration, warm: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Durations and self times without first uses and the least that the events in them cost: too little is taken away, rather
    than work."""
    cost = np.rint(warm).astype(np.int64)
    each = np.full(len(store.mem_time), round(calibration.memory), np.int64)
    between = tree.sums(store.mem_event, each, len(store)) + np.where(store.is_first_use, store.self_ns, 0)
    inside = np.minimum(cost, round(calibration.inside)) + between
    # A row's duration includes the whole cost of every event below it, and the inside part of its own.
    below = tree.subtree_sums(store.parent, cost + between) - cost - between
    corrected = np.maximum(store.duration - below - inside, 0)
    children = tree.children_sums(store.parent, corrected)
    return corrected, np.maximum(corrected - children, 0)


def _warm_costs(store: EventStore, calibration: Calibration) -> Floats:
    """What recording each row costs while the recorder's code and data are in the caches."""
    by_kind = np.full(observer.KIND_COUNT, calibration.op)
    by_kind[[observer.SCOPE, observer.STEP]] = calibration.scope
    by_kind[[observer.BACKWARD, observer.ENGINE]] = calibration.engine
    by_kind[observer.MODULE] = calibration.module
    by_kind[observer.PYTHON] = calibration.python
    # Not recorded by the recorder, or once in a process.
    by_kind[[observer.MEMORY, observer.KERNEL, observer.COPY, observer.FILL, observer.FIRST_USE]] = 0
    cost: Floats = by_kind[store.kind] + calibration.inputs * rebuilt_inputs(store)
    if calibration.argument:
        cost += calibration.argument * rebuilt_arguments(store)
    cost[own_spans(store)] = calibration.op
    if calibration.nested >= 0:
        cost[nested_ops(store)] += calibration.nested - calibration.op
    for each, rows in (calibration.builtin, builtin_calls(store)), (calibration.method, method_calls(store)):
        if each >= 0:
            cost[rows] += each - calibration.python
    if calibration.tensor:
        cost += calibration.tensor * tensor_inputs(store)
    if not (store.kind == observer.MODULE).any():
        cost += calibration.module * _enters_module(store)
    return cost


def own_spans(store: EventStore) -> NDArray[np.bool_]:
    """Whether each row is a range of the runtime's own, such as a step of an optimizer."""
    named = [number for number, name in enumerate(store.names) if name.startswith(OWN_SPANS)]
    spans: NDArray[np.bool_] = (store.kind == observer.SCOPE) & np.isin(store.name, named)
    return spans


def hidden_calls(store: EventStore) -> int:
    """How many Python calls were recorded without a row: those inside of the runtime but for the profiler's own."""
    return int(store.options.get("hidden_calls", 0))


def nested_ops(store: EventStore) -> NDArray[np.bool_]:
    """Whether each row is an op that another op called."""
    is_op = store.kind == observer.OP
    nested: NDArray[np.bool_] = is_op & np.append(is_op, False)[store.parent]
    return nested


def builtin_calls(store: EventStore) -> NDArray[np.bool_]:
    """Whether each row is a call of a builtin function."""
    return _calls_named(store, "<built-in function ")


def method_calls(store: EventStore) -> NDArray[np.bool_]:
    """Whether each row is a call of a method of a builtin type."""
    return _calls_named(store, "<built-in method ")


def _calls_named(store: EventStore, beginning: str) -> NDArray[np.bool_]:
    names = np.array([name.startswith(beginning) for name in store.names], np.bool_)
    calls: NDArray[np.bool_] = (store.kind == observer.PYTHON) & names[store.name] if len(names) else store.kind < 0
    return calls


def rebuilt_inputs(store: EventStore) -> NDArray[np.bool_]:
    """Whether an op's arguments differ from those of its first call, or have tensors in lists, and so are described anew."""
    rows = np.flatnonzero((store.kind == observer.OP) & (store.shapes >= 0))
    rebuilt = np.zeros(len(store), np.bool_)
    if not len(rows):
        return rebuilt
    always = np.array([_has_tensors_or_number(info) for info in store.input_infos], np.bool_)
    _, first, of = np.unique(store.name[rows] + store.tid[rows] * len(store.names), return_index=True, return_inverse=True)
    first_inputs = store.shapes[rows[first]]
    rebuilt[rows] = always[store.shapes[rows]] | (store.shapes[rows] != first_inputs[of])
    rebuilt[rows[first]] = True
    return rebuilt


def rebuilt_arguments(store: EventStore) -> NDArray[np.int64]:
    """How many arguments beside the first are described anew for each op."""
    by_info = np.array([max(len(info.types) - 1, 0) for info in store.input_infos], np.int64)
    counts = np.zeros(len(store), np.int64)
    rebuilt = rebuilt_inputs(store)
    counts[rebuilt] = by_info[store.shapes[rebuilt]]
    return counts


def tensor_inputs(store: EventStore) -> NDArray[np.int64]:
    """How many tensors each op was given, those in lists too; a number in place of a tensor counts as one."""
    by_info = np.array([_tensors_of(info) for info in store.input_infos], np.int64)
    counts = np.zeros(len(store), np.int64)
    rows = (store.kind == observer.OP) & (store.shapes >= 0)
    counts[rows] = by_info[store.shapes[rows]]
    return counts


def _tensors_of(info: InputInfo) -> int:
    return sum(
        len(dims) if kind == "TensorList" else kind not in ("", "Scalar", "ScalarList")
        for kind, dims in zip(info.types, info.dims, strict=True)
    )


def _has_tensors_or_number(info: InputInfo) -> bool:
    """Whether an argument is a list of tensors, or a number in place of a tensor."""
    return any(
        kind == "TensorList" or (kind in ("double", "long int") and dims == () and value is None)
        for kind, dims, value in zip(info.types, info.dims, info.concrete, strict=False)
    )


def _enters_module(store: EventStore) -> NDArray[np.bool_]:
    """Whether a row is in another module than the row before it."""
    enters = np.zeros(len(store), np.bool_)
    enters[1:] = (store.module[1:] != store.module[:-1]) & (store.module[1:] >= 0)
    return enters


def _coldness(store: EventStore, cost: Floats) -> Floats:
    """From 0 to 1 by how long the thread worked since the event before: what it did pushed the recorder out of the caches."""
    cold = np.zeros(len(store))
    for thread in np.unique(store.tid).tolist():
        rows = np.flatnonzero((store.tid == thread) & (store.device_type == 0))
        edges = np.concatenate([store.start[rows], store.end[rows]])
        order = np.argsort(edges, kind="stable")
        gaps = np.diff(edges[order], prepend=edges[order[:1]])
        since = np.empty(len(edges), np.int64)
        since[order] = gaps
        # Recording the event before is part of the time since then.
        longest = np.maximum(since[: len(rows)], since[len(rows) :]) - cost[rows]
        cold[rows] = np.log(np.maximum(longest, 1) / _WARM_NS) / np.log(_COLD_NS / _WARM_NS)
    return np.clip(cold, 0.0, 1.0)
