"""What-if on real ops: the prediction, the virtual speed-up and the program with the op made faster give one answer.

All three by clocks that stand still while other programs have the processor.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from cpu_clock import cpu_clock

import mindtorch_v2 as torch
from mindtorch_v2.optim.optimizer import call_after_steps
from mindtorch_v2.profiler import profile, schedule
from mindtorch_v2.profiler.analysis.comparison.evidence import typical
from mindtorch_v2.profiler.analysis.what_if import WhatIf
from mindtorch_v2.profiler.cli.virtual_speedup import SpeedupSession

STEPS = 62  # twenty of each kind
CLOSE = 0.08  # of the step
PROGRAMS = ((8, 2), (4, 6), (2, 14))  # calls of the op and of another in a step
TRIES = 3  # caches that others emptied slow any one measurement down


class Training:
    """Steps of some calls of i1e, some of i0e, and an optimizer; small enough for one thread."""

    def __init__(self, chosen: int, others: int) -> None:
        self._values = torch.linspace(0.1, 0.9, 2_000)
        self._weight = torch.nn.Parameter(torch.ones(4))
        self._optimizer = torch.optim.SGD([self._weight], 0.1)
        self._chosen, self._others = chosen, others

    def step(self) -> None:
        for _ in range(self._chosen):
            torch.special.i1e(self._values)
        for _ in range(self._others):
            torch.special.i0e(self._values)
        self._weight.square().sum().backward()
        self._optimizer.step()

    def seconds(self) -> float:
        began = time.thread_time_ns()
        self.step()
        return time.thread_time_ns() - began


def really_faster(chosen: int, others: int) -> float:
    """The step's time with half the calls of i1e over that with all; both take turns."""
    whole, half = Training(chosen, others), Training(chosen // 2, others)
    times = np.array([[half.seconds(), whole.seconds()] for _ in range(25)])[5:]
    return float(typical(times[:, 0]) / typical(times[:, 1]))


def virtually_faster(chosen: int, others: int) -> float:
    session = SpeedupSession("aten::special_i1e", 2.0, call_after_steps, time.thread_time_ns)
    training = Training(chosen, others)
    session.start()
    try:
        for _ in range(STEPS):
            training.step()
    finally:
        session.stop(failed=False)
    found = session.outcome()
    assert found is not None and found.low <= found.ratio <= found.high
    return found.ratio


def predicted(chosen: int, others: int) -> float:
    training = Training(chosen, others)
    with cpu_clock(), profile(schedule=schedule(wait=0, warmup=5, active=20, repeat=1)) as prof:
        for _ in range(25):
            training.step()
            prof.step()
    graph = WhatIf(prof._recording())
    return 1 - graph.faster(graph.matching(["aten::special_i1e"]), 2).change


@pytest.mark.parametrize(("chosen", "others"), PROGRAMS, ids=["most of a step", "a part", "next to nothing"])
@pytest.mark.parametrize("way", [virtually_faster, predicted])
def test_the_answer_is_what_a_faster_op_does(way, chosen, others):
    for _ in range(TRIES):
        truth, answer = really_faster(chosen, others), way(chosen, others)
        if abs(answer - truth) < CLOSE:
            break
    assert answer == pytest.approx(truth, abs=CLOSE)


def test_the_programs_differ():
    """The three programs have quite different answers, so that no constant would do."""
    most, part, little = (really_faster(*calls) for calls in PROGRAMS)
    assert most < 0.75 < part < little - 0.02
