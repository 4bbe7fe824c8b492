"""What recording one event costs on this machine with given options, measured in a fraction of a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.cpython import is_only_thread
from ..._core.tensor import make_tensor
from ..._dispatch import observer
from ..analysis.overhead import (
    Calibration,
    builtin_calls,
    hidden_calls,
    method_calls,
    nested_ops,
    rebuilt_arguments,
    rebuilt_inputs,
    tensor_inputs,
)
from ..assembly.freeze import freeze
from ..recording.record_function import record_function
from ..recording.recorder import Options, Recorder
from ..store.store import EventStore

_CALLS = 60  # of each kind of work in one round
_ROUNDS = 9
_COLD_CALLS = 10  # in each round, each after work that empties the caches
_COLD_ROUNDS = 7
_MOST_COLD = 8.0
_EVICTED_BYTES = 4 << 20
_LEAST_NS = 1.0  # of an event: noise larger than the cost must not make it free

# The time of other programs on the same core does not count, where the system's clock of a thread is fine enough.
_clock = time.thread_time_ns if time.get_clock_info("thread_time").resolution <= 1e-6 else perf_counter_ns


def calibrate(options: Options) -> Calibration:
    """Run small ops, ranges, calls, modules and backward passes with and without a recorder, in turns.

    It runs on a thread of its own, so that the caller's stack and settings make no difference. If the caller is the
    only thread, events are recorded as they are where there is one.
    """
    if observer.is_active():
        raise RuntimeError("the cost of recording cannot be measured while something records: stop() first")
    results: list[Calibration | BaseException] = []
    alone = is_only_thread()

    def measure() -> None:
        try:
            results.append(_measure(options._replace(all_threads=False), alone=alone))
        except BaseException as error:  # handed to the caller
            results.append(error)

    worker = threading.Thread(target=measure, name="calibration")
    worker.start()
    worker.join()
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


# A file name of its own: calls inside this package are not recorded as the user's.
_WORK = compile(
    """
def nothing():
    pass

class Value:
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value

def calls():
    for number in range(times):
        nothing()
        Value(number).get()
        [each for each in empty]

def builtins():
    for _ in range(times):
        len(empty)
        isinstance(empty, tuple)

def methods():
    for _ in range(times):
        text.split()
        table.get(0)

def ops():
    for _ in range(times):
        x + x
        y.neg()

def nested():
    for _ in range(times):
        square @ square

def inputs():
    for _ in range(times):
        y.neg()
        x.neg()
        y.exp()
        x.exp()

def arguments():
    for _ in range(times):
        square.addmm(square, square)
        wide.addmm(square, wide)

def in_place():
    for _ in range(times):
        y.add_(y)
        y.neg_()

def scopes():
    for _ in range(times):
        with record_function("calibration"):
            pass

def modules():
    for _ in range(times):
        module(x)

def backward():
    for _ in range(times // 4):
        (leaf * leaf + leaf).sum().backward()
        leaf.grad = None
""",
    "<calibration>",
    "exec",
)


def _measure(options: Options, *, alone: bool = False) -> Calibration:
    from ...nn import Identity

    work: dict[str, Any] = {
        "x": make_tensor(np.ones((1,), np.float32)),
        "y": make_tensor(np.ones((2, 3), np.float32)),
        "leaf": make_tensor(np.ones((4,), np.float32)).requires_grad_(),
        "square": make_tensor(np.ones((2, 2), np.float32)),
        "wide": make_tensor(np.ones((2, 3), np.float32)),
        "text": "a b",
        "table": {},
        "empty": (),
        "module": Identity(),
        "record_function": record_function,
        "times": _CALLS,
    }
    exec(_WORK, work)
    known = Calibration(op=0.0, scope=0.0, python=0.0, inside=_clock_cost())
    spreads: list[float] = []

    def learn(name: str, function: str, options: Options) -> None:
        nonlocal known
        cost, spread = _cost_of(name, work[function], options, known, alone=alone)
        known = known._replace(**{name: cost})
        spreads.append(spread)

    if options.with_stack:
        learn("python", "calls", options)
        learn("builtin", "builtins", options)
        learn("method", "methods", options)
    without_memory = options._replace(profile_memory=False)
    learn("op", "ops", without_memory)
    if options.captures_arguments:
        learn("inputs", "inputs", without_memory)
        learn("argument", "arguments", without_memory)
    learn("nested", "nested", without_memory)
    if options.follows_storages:
        learn("tensor", "in_place", options)
    if options.profile_memory:
        learn("memory", "ops", options)
    learn("scope", "scopes", options)
    learn("engine", "backward", options)
    if options.with_modules or options.with_stack:
        learn("module", "modules", options)
    return known._replace(cold=_cold_factor(work["x"], options, known, alone=alone), spread=float(np.median(spreads)))


def _cost_of(
    name: str, work: Callable[[], None], options: Options, known: Calibration, *, alone: bool = False
) -> tuple[float, float]:
    """Nanoseconds per event of the kind that `name` is, of which `work` has some beside those of `known` cost.

    The second figure is how far its rounds were apart: the factor from the median to the upper and lower quartile.
    """
    off, on = [_timed(work)], []
    for _ in range(_ROUNDS):
        recorder = Recorder(options)
        recorder.start()
        try:
            if alone:
                observer.expect_one_thread(hidden_from_tracer=options.with_stack, alone=True)
            on.append(_timed(work))
        finally:
            recorder.stop()
        off.append(_timed(work))  # in turns, since a machine's speed changes
    added = np.array(on) - (np.array(off[1:]) + np.array(off[:-1])) / 2
    store = freeze(recorder)
    counts = _counts(store, options, _CALLS if name == "module" else 0)
    beside = sum(count * getattr(known, kind) for kind, count in counts.items() if kind != name and count)
    beside += known.python * hidden_calls(store)
    low, middle, high = (max(float(part), 1.0) for part in np.quantile(added, (0.25, 0.5, 0.75)))
    return max((middle - beside) / max(counts[name], 1), _LEAST_NS), max(high / middle, middle / low)


def _counts(store: EventStore, options: Options, modules: int = 0) -> dict[str, int]:
    """How many events of each kind a recording has; calls of modules, which need not have rows, are given."""
    kinds = np.bincount(store.kind, minlength=observer.KIND_COUNT)
    nested, builtin, method = (int(which(store).sum()) for which in (nested_ops, builtin_calls, method_calls))
    return {
        "op": int(kinds[observer.OP]) - nested,
        "nested": nested,
        "engine": int(kinds[observer.ENGINE] + kinds[observer.BACKWARD]),
        "scope": int(kinds[observer.SCOPE]),
        "python": int(kinds[observer.PYTHON]) - builtin - method,
        "builtin": builtin,
        "method": method,
        "memory": len(store.mem_time),
        "inputs": int(rebuilt_inputs(store).sum()),
        "argument": int(rebuilt_arguments(store).sum()),
        "tensor": int(tensor_inputs(store).sum()) if options.follows_storages else 0,
        "module": modules,
    }


def _cold_factor(x: Any, options: Options, known: Calibration, *, alone: bool = False) -> float:
    """How many times as much an op costs the recorder right after work that emptied the caches."""
    buffer = np.ones(_EVICTED_BYTES // 4, np.float32)
    added = []
    for _ in range(_COLD_ROUNDS):
        off = _cold_calls(x, buffer)
        recorder = Recorder(options)
        recorder.start()
        try:
            if alone:
                observer.expect_one_thread(hidden_from_tracer=options.with_stack, alone=True)
            added.append(_cold_calls(x, buffer) - off)
        finally:
            recorder.stop()
    counts = _counts(freeze(recorder), options)
    warm = sum(counts[kind] * getattr(known, kind) for kind in counts) / _COLD_CALLS
    return float(np.clip(np.median(added) / max(warm, 1.0), 1.0, _MOST_COLD))


def _cold_calls(x: Any, buffer: NDArray[np.float32]) -> float:
    times = []
    for _ in range(_COLD_CALLS):
        np.negative(buffer, buffer)
        begin = perf_counter_ns()
        x + x
        times.append(perf_counter_ns() - begin)
    return float(np.median(times))


def _timed(work: Callable[[], None]) -> int:
    start = _clock()
    work()
    return _clock() - start


def _clock_cost() -> float:
    readings = np.array([perf_counter_ns() for _ in range(1000)])
    return float(np.median(np.diff(readings)))
