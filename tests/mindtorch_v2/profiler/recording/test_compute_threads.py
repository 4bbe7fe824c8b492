"""The threads that large kernels share are no part of a recording."""

from __future__ import annotations

import threading

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2._core import parallel
from mindtorch_v2.distributed._work import _Background
from mindtorch_v2.profiler import ProfilerActivity, profile


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def _recorded(x):
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, profile_memory=True) as prof:
        F.gelu(x)
    return [(event.name, event.thread) for event in prof.events() if event.name.startswith("aten::")], prof


def _elsewhere(prof):
    """What the recording has of other threads of this package; those that another test left behind are not its own."""
    own = next(event.thread for event in prof.events() if event.name == "aten::gelu")
    return [event.name for event in prof.events() if event.thread != own and "mindtorch_v2" in event.name]


def test_a_recording_with_stacks_has_the_calling_thread_alone(four_threads):
    parallel.run(8, lambda _: None)  # the pool runs before the recording begins
    ops, prof = _recorded(torch.randn(300_000))
    assert [name for name, _ in ops] == ["aten::gelu"]
    assert not _elsewhere(prof)
    assert not [event for event in prof.events() if "parallel.py" in event.name]


def test_threads_of_the_runtime_are_left_out():
    """The one that tests collectives for which nothing waits runs on after the first of them."""
    waits = _Background()
    thread = threading.Thread(target=waits._run, daemon=True)
    thread.start()
    _, prof = _recorded(torch.randn(3))
    assert thread.is_alive() and not _elsewhere(prof)
