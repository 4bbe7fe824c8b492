"""Advice on real programs: none where there is nothing to change, and exactly the one that fits elsewhere.

They run by a clock that stands still while other programs have the processor; `make attack` has them by the real one.
"""

from __future__ import annotations

import gc
import re
import threading
from pathlib import Path

import pytest
from advice_programs import CLEAN, OPTIONS, SICK, advice_for
from cpu_clock import cpu_clock

from mindtorch_v2.profiler.analysis.advice import RULES

TRIES = 3
PLANTED = Path(__file__).parents[3] / "planted" / "problems"
STACKS = {**OPTIONS, "with_stack": True}


@pytest.fixture(autouse=True)
def small_heap():
    """What other tests left behind is not looked at by the garbage collector, whose pauses would be part of every step."""
    gc.collect()
    gc.freeze()
    with cpu_clock():
        yield
    gc.unfreeze()


def advised(program, expected, **options):
    """The advice for a program; of up to three recordings, since caches that others emptied slow any one of them down."""
    for _ in range(TRIES):
        advice = advice_for(program, **options)
        if advice == expected:
            break
    return advice


@pytest.mark.parametrize("options", [{}, STACKS], ids=["plain", "stacks"])
@pytest.mark.parametrize("name", CLEAN)
def test_a_program_without_fault_gets_no_advice(name, options):
    assert advised(CLEAN[name], [], **options) == []


# With stacks, the lines that make garbage count beside a collector that has little to look at: `make planted` has that program.
FAULTS = [
    pytest.param(rule, options, id=f"{rule}-{name}")
    for rule in SICK
    for name, options in (("no-stacks", OPTIONS), ("stacks", STACKS))
    if (rule, name) != ("gc_pauses", "stacks")
]


@pytest.mark.parametrize("rule, options", FAULTS)
def test_a_fault_is_named_and_nothing_else(rule, options):
    """Of each rule's programs the smallest; `make attack` has the others."""
    assert advised(SICK[rule][0], [rule], **options) == [rule]


@pytest.mark.parametrize("rule", ["data_loader_wait", "copies", "single_tensor_optimizer"])
def test_threads_that_wait_hide_nothing(rule):
    """With stacks their calls are recorded, too: one that lasts for all of the recording, and many short ones."""
    done = threading.Event()

    def wait_again():
        while not done.wait(0.001):
            pass

    waiting = [threading.Thread(target=target) for target in (done.wait, wait_again)]
    for thread in waiting:
        thread.start()
    try:
        assert advised(SICK[rule][0], [rule], **STACKS) == [rule]
    finally:
        done.set()
        for thread in waiting:
            thread.join()


def test_every_rule_has_a_program():
    marks = re.compile(r"# planted: (\w+)")
    planted = {rule for path in PLANTED.glob("*.py") for rule in marks.findall(path.read_text())}
    of_devices = {"device_idle", "device_sync", "device_copies", "exposed_communication", "small_kernels"}
    assert set(SICK) | planted | of_devices == set(RULES)
    assert len(CLEAN) >= 15
