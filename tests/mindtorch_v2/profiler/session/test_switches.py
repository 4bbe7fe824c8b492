"""Switches of the whole process, numbers of events, and what a profile tells of its own cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from time import perf_counter_ns

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._C import _profiler as native
from mindtorch_v2._dispatch.observer import note_first_use
from mindtorch_v2.autograd.profiler import profile as autograd_profile
from mindtorch_v2.autograd.profiler_legacy import profile as legacy_profile
from mindtorch_v2.profiler import _ExperimentalConfig, profile, schedule


def work():
    w = torch.ones(2, requires_grad=True)
    (w * 2).sum().backward()


def categories(prof, path):
    prof.export_chrome_trace(path)
    return {each.get("cat") for each in json.loads(path.read_text())["traceEvents"]}


def test_concrete_inputs_can_be_switched_off():
    x = torch.ones(4, 4)
    try:
        native._set_record_concrete_inputs_enabled_val(False)
        with profile(record_shapes=True) as prof:
            native._set_record_concrete_inputs_enabled_val(True)  # what counts is the start
            note_first_use("aten::made_up", perf_counter_ns())  # so that events are a selection of the rows
            x.as_strided([2, 2], [1, 1])
    finally:
        native._set_record_concrete_inputs_enabled_val(True)
    (event,) = prof.events()
    assert event.input_shapes == [[4, 4], [], [], []]
    assert event.concrete_inputs == [None] * 4
    assert event.input_dtypes == ["float", "", "", ""]


def test_links_of_forward_and_backward_can_be_switched_off(tmp_path):
    try:
        native._set_fwd_bwd_enabled_val(False)
        with profile() as prof:
            work()
    finally:
        native._set_fwd_bwd_enabled_val(True)
    assert "fwdbwd" not in categories(prof, tmp_path / "off.json")
    with profile() as prof:
        work()
    assert "fwdbwd" in categories(prof, tmp_path / "on.json")


def test_waits_for_cuda_cannot_be_switched_on():
    native._set_cuda_sync_enabled_val(False)
    with pytest.raises(NotImplementedError, match="_set_cuda_sync_enabled_val"):
        native._set_cuda_sync_enabled_val(True)


def test_numbers_of_events_are_never_used_twice():
    seen: set[int] = set()
    for _ in range(3):
        with profile() as prof:
            work()
        numbers = [event.correlation_id() for event in prof.profiler.kineto_results.events()]
        assert not seen & set(numbers)
        assert numbers == sorted(numbers) and [event.id for event in prof.events()] == numbers
        seen |= set(numbers)


@pytest.mark.filterwarnings("ignore:Profiler won.t be using warmup")
def test_numbers_of_accumulated_windows_differ():
    with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=2), acc_events=True) as prof:
        for _ in range(2):
            work()
            prof.step()
    numbers = [event.id for event in prof.events()]
    assert len(numbers) == len(set(numbers)) > 2


def test_the_kind_of_the_running_profile():
    kind, kinds = torch._C._autograd._profiler_type, native.ActiveProfilerType
    assert kind() is kinds.NONE and str(kinds.NONE) == "ActiveProfilerType.NONE"
    with legacy_profile():
        assert kind() is kinds.LEGACY
    with profile():
        assert kind() is kinds.KINETO
    assert kind() is kinds.NONE


def test_stats_are_filled_as_the_recording_is_read():
    with autograd_profile(use_kineto=True) as prof:
        work()
    stats = prof._stats
    assert stats.profiling_window_duration_sec > 0
    assert min(stats.profiler_prepare_call_duration_us, stats.profiler_enable_call_duration_us) > 0
    assert stats.profiler_disable_call_duration_us > 0
    assert (stats.number_of_events, stats.function_events_build_tree_call_duration_us) == (0, 0)
    count = len(prof.function_events)
    assert stats.number_of_events == count
    assert min(stats.parse_kineto_call_duration_us, stats.function_events_build_tree_call_duration_us) > 0
    assert profile()._stats() is None


def step_of_a_loop(prof):
    torch.ones(2)
    prof.step()


@pytest.mark.filterwarnings("ignore:Profiler won.t be using warmup")
def test_steps_are_adjusted_to_the_calls_they_end_in(tmp_path):
    config = _ExperimentalConfig(adjust_profiler_step=True)
    steps = schedule(wait=0, warmup=0, active=3, repeat=1)
    with profile(with_stack=True, schedule=steps, experimental_config=config) as prof:
        for _ in range(3):
            step_of_a_loop(prof)
    prof.export_chrome_trace(tmp_path / "t.json")
    spans = {"ProfilerStep": [], "step_of_a_loop": []}
    for each in json.loads((tmp_path / "t.json").read_text())["traceEvents"]:
        for name, found in spans.items():
            if name in each["name"]:
                found.append((each["ts"], each["ts"] + each["dur"]))
    assert len(spans["ProfilerStep"]) == len(spans["step_of_a_loop"]) == 3
    for start, end in spans["ProfilerStep"]:
        for begun, ended in spans["step_of_a_loop"]:
            apart = end <= begun or ended <= start
            assert apart or (start <= begun and ended <= end) or (begun <= start and end <= ended)


def test_optimizers_count_steps_for_a_daemon():
    program = (
        "import mindtorch_v2 as torch; from mindtorch_v2.profiler import KinetoStepTracker as tracker;"
        "w = torch.ones(1, requires_grad=True); o = torch.optim.SGD([w]); before = tracker.current_step();"
        "[o.step() for _ in range(3)]; print(tracker.current_step() - before)"
    )
    for value, steps in (("1", "3"), ("", "0")):
        environment = {**os.environ, "KINETO_USE_DAEMON": value}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == steps
