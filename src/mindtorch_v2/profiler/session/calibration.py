"""What recording one event costs on this machine with given options, measured in a few milliseconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..._core.tensor import make_tensor
from ..._dispatch import observer
from ..analysis.overhead import Calibration
from ..assembly.freeze import freeze
from ..recording.record_function import record_function
from ..recording.recorder import Options, Recorder

_CALLS = 200
_ROUNDS = 7
_MOST_ROUNDS = 70


def calibrate(options: Options) -> Calibration:
    """Run small ops, ranges and Python calls with and without a recorder; the smallest differences count.

    It runs on a thread of its own, so that the caller's stack and settings make no difference.
    """
    if observer.is_active():
        raise RuntimeError("the cost of recording cannot be measured while something records: stop() first")
    results: list[Calibration | BaseException] = []

    def measure() -> None:
        try:
            results.append(_measure(options._replace(all_threads=False)))
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

def calls():
    for _ in range(times):
        nothing()

def ops():
    for _ in range(times):
        x + x

def scopes():
    for _ in range(times):
        with record_function("calibration"):
            pass
""",
    "<calibration>",
    "exec",
)


def _measure(options: Options) -> Calibration:
    work: dict[str, Any] = {"x": make_tensor(np.ones((1,), np.float32)), "record_function": record_function, "times": _CALLS}
    exec(_WORK, work)
    python = _cost_per_row(work["calls"], options, observer.PYTHON, 0.0) if options.with_stack else 0.0
    return Calibration(
        op=_cost_per_row(work["ops"], options, observer.OP, python),
        scope=_cost_per_row(work["scopes"], options, observer.SCOPE, python),
        python=python,
        inside=_clock_cost(),
    )


def _cost_per_row(work: Callable[[], None], options: Options, kind: int, python: float) -> float:
    """Nanoseconds that recording adds to `work` per row of `kind`. `python`: the known cost of the Python rows beside them."""
    off: list[int] = []
    on: list[int] = []
    # Alternately, since a machine's speed changes; and further rounds while the difference is lost in noise.
    while len(on) < _ROUNDS or (min(on) <= min(off) and len(on) < _MOST_ROUNDS):
        off.append(_timed(work))
        recorder = Recorder(options)
        recorder.start()
        try:
            on.append(_timed(work))
        finally:
            recorder.stop()
    store = freeze(recorder)
    rows = int((store.kind == kind).sum())
    beside = 0 if kind == observer.PYTHON else int((store.kind == observer.PYTHON).sum())
    return max(0.0, (min(on) - min(off) - beside * python) / max(rows, 1))


def _timed(work: Callable[[], None]) -> int:
    start = perf_counter_ns()
    work()
    return perf_counter_ns() - start


def _clock_cost() -> float:
    readings = np.array([perf_counter_ns() for _ in range(1000)])
    return float(np.median(np.diff(readings)))
