"""Interrupts in a profile: it runs or it does not, stop() can be called again, and nothing waits for ever."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import entry_globals
from mindtorch_v2.profiler import ExecutionTraceObserver, load, profile, record_function, schedule
from mindtorch_v2.profiler.recording import active, allocations, gc_pauses, recorder
from mindtorch_v2.profiler.retention import base
from mindtorch_v2.profiler.session import autograd_profile

EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True, "with_flops": True}
_set_interrupt = ctypes.pythonapi.PyErr_SetInterrupt
_set_interrupt.restype = None
pending = iter(_set_interrupt, 0)  # makes an interrupt pending, without a place where it would arrive
x = torch.ones(3)


@pytest.fixture(autouse=True)
def nothing_left():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    assert not records()


def records():
    """Whether anything of a recording is in place."""
    return bool(
        entry_globals.observers_active
        or recorder.active_recorders
        or recorder.recorders_by_thread
        or active.running()
        or sys.getprofile() is not None
    )


def ops(prof):
    return [event.name for event in prof.events() if event.name.startswith("aten::")]


def interrupted(monkeypatch, owner, name, *, after=False):
    """Have the next call of a function end by KeyboardInterrupt, before or after it has done its work."""
    function = getattr(owner, name)

    def once(*args, **kwargs):
        monkeypatch.setattr(owner, name, function)
        if after:
            function(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, once)


STARTS = [
    (recorder.Recorder, "start"),
    (recorder.ThreadRecording, "start_on_thread"),
    (recorder.ThreadRecorders, "connect"),
    (allocations.MemoryLog, "start"),
    (gc_pauses.GcPauseLog, "start"),
    (base.RetentionPolicy, "start"),
    (base._DrainingThread, "start"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "name"), STARTS)
def test_a_start_that_is_interrupted_leaves_nothing_running(monkeypatch, tmp_path, owner, name, after):
    prof = profile(stream_to=tmp_path / "a.mtp", **EVERYTHING)
    interrupted(monkeypatch, owner, name, after=after)
    with pytest.raises(KeyboardInterrupt), prof:
        pass
    assert not records()
    with prof:
        torch.neg(x)
    assert ops(prof) == ["aten::neg"]


STOPS = [
    (recorder.Recorder, "stop"),
    (recorder.ThreadRecording, "stop"),
    (recorder.ThreadRecorders, "connect"),
    (allocations.MemoryLog, "stop"),
    (gc_pauses.GcPauseLog, "stop"),
    (base.RetentionPolicy, "stop"),
    (autograd_profile.profile, "_stop_trace"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "name"), STOPS)
def test_a_stop_that_is_interrupted_can_be_called_again(monkeypatch, tmp_path, owner, name, after):
    called = []
    prof = profile(stream_to=tmp_path / "a.mtp", on_trace_ready=called.append, **EVERYTHING)
    prof.start()
    with record_function("open"):
        torch.neg(x)
        interrupted(monkeypatch, owner, name, after=after)
        with pytest.raises(KeyboardInterrupt):
            prof.stop()
        prof.stop()
        assert not records()
    prof.stop()
    assert ops(prof) == ["aten::neg"] and [event.name for event in prof.events()].count("open") == 1
    assert called == [prof] and len(load(tmp_path / "a.mtp").events()) == len(prof.events())


@pytest.mark.parametrize("options", [{}, EVERYTHING, {"max_memory_mb": 1, "mode": "ring"}])
@pytest.mark.parametrize(("owner", "name"), [*STOPS[:3], STOPS[4], (profile, "stop"), (profile, "stop_trace")])
def test_a_block_that_is_interrupted_at_its_end_records_no_more(monkeypatch, options, owner, name):
    prof = profile(**options)
    with pytest.raises(KeyboardInterrupt), prof:
        torch.neg(x)
        interrupted(monkeypatch, owner, name)
        if name == "connect":
            prof.stop()
    assert not records() and ops(prof) == ["aten::neg"]


def test_the_end_of_a_block_is_not_skipped_by_an_interrupt_at_its_entry():
    prof = profile(**EVERYTHING)
    with pytest.raises(KeyboardInterrupt), prof:
        for _ in pending:
            break
    assert not records()


def test_a_schedule_goes_on_after_an_interrupted_step(monkeypatch):
    windows = []
    with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=lambda p: windows.append(ops(p))) as prof:
        for step in range(6):
            torch.neg(x)
            if step == 1:
                interrupted(monkeypatch, type(prof), "stop_trace")
                with pytest.raises(KeyboardInterrupt):
                    prof.step()
            else:
                prof.step()
    assert windows[-1] == ["aten::neg"]


def test_an_observer_of_execution_traces_stops(monkeypatch, tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    interrupted(monkeypatch, recorder.Recorder, "stop")
    with pytest.raises(KeyboardInterrupt), profile(execution_trace_observer=observer):
        torch.neg(x)
    assert not observer.is_running() and os.path.exists(tmp_path / "et.json")


# ---------------------------------------------------------------- what is recorded when one arrives


def quiet():
    pass


def test_the_tracer_goes_on_after_an_interrupt():
    with profile(with_stack=True) as prof:
        try:
            for _ in pending:
                break
            quiet()
        except KeyboardInterrupt:
            pass
        quiet()
    assert [event.name for event in prof.events() if "quiet" in event.name]


def test_the_row_of_freed_memory_is_not_lost():
    with profile(profile_memory=True) as prof:
        tensors = [torch.neg(x)]
        with pytest.raises(KeyboardInterrupt):
            for _ in pending:
                break
            del tensors[0]
            for _ in (1, 2):
                pass
    store = prof.profiler.store
    assert sorted(store.mem_bytes.tolist())[0] < 0, "the free is recorded, though an interrupt was pending"


def test_module_calls_are_closed():
    class Inner(nn.Module):
        def forward(self, value):
            raise KeyboardInterrupt

    with profile(with_modules=True) as prof:
        with pytest.raises(KeyboardInterrupt):
            nn.Sequential(Inner())(x)
        torch.neg(x)
    store = prof.profiler.store
    [row] = [row for row, name in enumerate(store.name.tolist()) if store.names[name] == "aten::neg"]
    assert store.module[row] == -1


def test_a_range_that_is_interrupted_before_it_begins_is_not_open():
    prof = profile()
    prof.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in pending:
                break
            with record_function("never"):
                pass
        [recorders] = recorder.recorders_by_thread.values()
        assert not recorders.scopes
    finally:
        prof.stop()


# ---------------------------------------------------------------- waiting


def test_flush_and_stop_at_the_same_time():
    for _ in range(20):
        prof = profile(max_memory_mb=1, mode="ring")
        prof.start()
        retention = prof._retention
        waiting = [threading.Thread(target=retention.flush) for _ in range(4)]
        for thread in waiting:
            thread.start()
        prof.stop()
        retention.flush()
        for thread in waiting:
            thread.join(120)
            assert not thread.is_alive()


def test_a_policy_that_hangs_does_not_keep_the_process_from_ending(monkeypatch):
    prof = profile(max_memory_mb=1, mode="ring")
    prof.start()
    goes_on = threading.Event()
    monkeypatch.setattr(prof._retention, "drain", lambda: goes_on.wait(20))
    monkeypatch.setattr(autograd_profile, "_LONGEST_ABANDON_S", 0.2)
    began = time.monotonic()
    with pytest.warns(RuntimeWarning, match="the recording is not complete yet"):
        prof.profiler.abandon()
    assert time.monotonic() - began < 10
    goes_on.set()
    monkeypatch.undo()
    prof.stop()


def test_a_file_that_cannot_be_opened_is_an_error_of_start(tmp_path):
    prof = profile(stream_to=tmp_path / "a.mtp")
    os.mkdir(tmp_path / "a.mtp")
    with pytest.raises(OSError, match="a.mtp"):
        prof.start()
    assert not records()
