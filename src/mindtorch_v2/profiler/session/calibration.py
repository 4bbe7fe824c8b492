"""What recording one event costs on this machine with given options, measured in a fraction of a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from ..._core.cpython import is_only_thread
from ..._core.tensor import make_tensor
from ..._dispatch import observer
from ..analysis.overhead import Calibration
from ..analysis.recording_costs import hidden_calls, units
from ..assembly.freeze import freeze
from ..recording.op_facts import function
from ..recording.record_function import record_function
from ..recording.recorder import Options, Recorder

_CALLS = 60  # of each kind of work in one round
_ROUNDS, _REPEATS = 6, 4
_MOST_COLD = 8.0
_EVICTED_BYTES = 4 << 20
_LEAST_NS = 1.0  # of a unit: noise larger than the cost must not make it free

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
        y.neg()
        y.exp()

def nested():
    for _ in range(times):
        square @ square2

def arguments():
    for _ in range(times):
        y + z
        y * z

def numbers():
    for _ in range(times):
        y.view(size)
        y.sum(dims)

def inputs():
    for _ in range(times):
        y.neg()
        x.neg()
        y.exp()
        x.exp()

def inputs_arguments():
    for _ in range(times):
        y + z
        x + x2
        y * z
        x * x2

def noted():
    for _ in range(times):
        y + 1
        y * 2

def listed():
    for _ in range(times):
        cat(pair)

def in_place():
    for _ in range(times):
        y.sin_()
        y.neg_()

def varied():
    y.neg(); y.exp(); y.sin(); y.abs(); y.sum(); y.mean(); y.t(); y.relu()
    y.sigmoid(); y + z; y * z; y - z; y.clone(); y.amax(); y.unsqueeze(0); y.floor()
    y.cos(); y.tanh(); y.square(); y.log1p(); y.sqrt(); y.detach(); y / z; y.ceil()

def scopes():
    for _ in range(times):
        with record_function("calibration"):
            pass

def modules():
    for _ in range(times):
        module(x)

def backward():
    for _ in range(times // 10):
        value = leaf
        for _ in range(4):
            value = (value * leaf + leaf).neg()
        value.sum().backward()
        leaf.grad = None
""",
    "<calibration>",
    "exec",
)


def _measure(options: Options, *, alone: bool = False) -> Calibration:
    from ...nn import Identity

    work: dict[str, Any] = {
        "x": make_tensor(np.ones((1,), np.float32)),
        "x2": make_tensor(np.ones((1,), np.float32)),
        "y": make_tensor(np.ones((2, 3), np.float32)),
        "z": make_tensor(np.ones((2, 3), np.float32)),
        "leaf": make_tensor(np.ones((4,), np.float32)).requires_grad_(),
        "square": make_tensor(np.ones((2, 2), np.float32)),
        "square2": make_tensor(np.ones((2, 2), np.float32)),
        "pair": [make_tensor(np.ones((2, 3), np.float32)) for _ in range(2)],
        "cat": function("cat"),
        "size": (6,),
        "dims": (0, 1),
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

    def learn(unit: str, function: str, options: Options) -> None:
        nonlocal known
        cost, spread = _cost_of(unit, work[function], options, known, alone=alone)
        known = known._replace(**{unit: cost})
        spreads.append(spread)

    if options.with_stack:
        learn("python", "calls", options)
        learn("builtin", "builtins", options)
        learn("method", "methods", options)
    without_memory = options._replace(profile_memory=False)
    learn("op", "ops", without_memory)
    if options.captures_arguments:
        learn("argument", "arguments", without_memory)
        learn("numbers", "numbers", without_memory)
        learn("inputs", "inputs", without_memory)
        learn("inputs_argument", "inputs_arguments", without_memory)
        learn("noted", "noted", without_memory)
        learn("listed", "listed", without_memory)
    learn("nested", "nested", without_memory)
    if options.follows_storages:
        learn("tensor", "in_place", options)
    if options.profile_memory:
        learn("memory", "ops", options)
    learn("scope", "scopes", options)
    learn("engine", "backward", options)
    if options.with_modules or options.with_stack:
        learn("module", "modules", options)
    first, cold = _varied_costs(work["varied"], options, known, alone=alone)
    return known._replace(first=first, cold=cold, spread=float(np.median(spreads)))


class _Round(NamedTuple):
    """Nanoseconds of work in a recording that has just begun, and of the same work again and again."""

    first: int
    again: list[int]
    begun: int  # when the work began for the second time
    recorder: Recorder


def _recorded(work: Callable[[], None], options: Options, *, alone: bool) -> _Round:
    recorder = Recorder(options, traces_others=False)
    recorder.start()
    try:
        if alone:
            _expect_one_thread(recorder)
        first = _timed(work)
        begun = perf_counter_ns()
        again = [_timed(work) for _ in range(_REPEATS)]
    finally:
        recorder.stop()
    return _Round(first, again, begun, recorder)


def _expect_one_thread(recorder: Recorder) -> None:
    """Have a recording cost what it does where there is one thread: the thread that calibrates waits for nothing."""
    observer.expect_one_thread(hidden_from_tracer=recorder.options.with_stack, alone=True)
    if recorder.memory is not None:
        recorder.memory.expect_one_thread()


def _cost_of(
    unit: str, work: Callable[[], None], options: Options, known: Calibration, *, alone: bool = False
) -> tuple[float, float]:
    """Nanoseconds per unit, of which `work` has some beside units of `known` cost.

    Work that a recording has seen before is what is timed: what is done once for an op is `first`. The second figure is how far
    the rounds were apart: the factor from the median to the upper and lower quartile.
    """
    work()
    off, on = [], []
    for _ in range(_ROUNDS):  # in turns, since a machine's speed changes
        off.append([_timed(work) for _ in range(_REPEATS)])
        round = _recorded(work, options, alone=alone)
        on.append(round.again)
    counts = _counts(round)
    if unit == "module":  # they need not have rows
        counts["module"] = _CALLS
    beside = sum(count * known.of(each) for each, count in counts.items() if each != unit and count)
    # What disturbs work makes it longer: of both kinds the calmer half is compared.
    added = _calm(on) - _calm(off)
    apart = np.quantile(np.median(on, 1) - np.median(off, 1), (0.25, 0.5, 0.75))
    low, middle, high = (max(float(part), 1.0) for part in apart)
    return max((added - beside) / max(counts[unit], 1), _LEAST_NS), max(high / middle, middle / low)


def _calm(times: Sequence[int] | Sequence[Sequence[int]]) -> float:
    """The lower quartile."""
    return float(np.quantile(times, 0.25))


def _counts(round: _Round) -> dict[str, float]:
    """How many units of each kind the work has when it is done again; calls without rows are those of the first time, too."""
    store = freeze(round.recorder)
    again = store.start >= round.begun
    counts = {unit: float(rows[again].sum()) / _REPEATS for unit, rows in units(store).items()}
    counts["python"] += hidden_calls(store) / (_REPEATS + 1)
    counts["memory"] = float((store.mem_time >= round.begun).sum()) / _REPEATS
    return counts


def _varied_costs(
    work: Callable[[], None], options: Options, known: Calibration, *, alone: bool = False
) -> tuple[float, float]:
    """What an op costs when a recording has it for the first time, and the factor for ops that ran long ago."""
    buffer = np.ones(_EVICTED_BYTES // 4, np.float32)

    def cold() -> int:
        np.negative(buffer, buffer)
        return _timed(work)

    firsts, off, on = [], [], []
    for _ in range(_ROUNDS):
        round = _recorded(work, options, alone=alone)
        firsts.append(round.first - np.median(round.again))
        off.append([cold() for _ in range(_REPEATS)])
        recorder = Recorder(options, traces_others=False)
        recorder.start()
        try:
            if alone:
                _expect_one_thread(recorder)
            work()
            on.append([cold() for _ in range(_REPEATS)])
        finally:
            recorder.stop()
    counts = _counts(round)
    warm = sum(count * known.of(unit) for unit, count in counts.items())
    first = float(np.median(firsts)) / (counts["op"] + counts["nested"])
    return max(first, _LEAST_NS), float(np.clip((_calm(on) - _calm(off)) / max(warm, 1.0), 1.0, _MOST_COLD))


def _timed(work: Callable[[], None]) -> int:
    start = _clock()
    work()
    return _clock() - start


def _clock_cost() -> float:
    readings = np.array([perf_counter_ns() for _ in range(1000)])
    return float(np.median(np.diff(readings)))
