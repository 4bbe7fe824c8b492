"""Python calls of threads that run already when a recording with stacks begins."""

from __future__ import annotations

import collections
import sys
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.cpython import set_profile_of_thread
from mindtorch_v2.profiler import _utils, profile
from mindtorch_v2.profiler.recording.recorder import Options, Recorder


class Worker:
    """A thread that waits in `already_running`, then calls `called_later` and an op, then waits again."""

    def __init__(self):
        self.go, self.worked, self.leave = threading.Event(), threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, name="worker", daemon=True)
        self.thread.start()

    def run(self):
        self.already_running()
        self.called_later()
        torch.ones(3)
        self.worked.set()
        self.leave.wait(120)

    def already_running(self):
        self.go.wait(120)

    def called_later(self):
        pass

    def end(self):
        self.leave.set()
        self.thread.join(120)


def python_calls(prof):
    nodes = _utils.traverse_dfs(prof.profiler.kineto_results.experimental_event_tree())
    return [(node.start_tid, node.name) for node in nodes]


def threads_of(prof, function):
    return [tid for tid, name in python_calls(prof) if name.endswith(function)]


@pytest.fixture
def workers():
    made = [Worker(), Worker()]
    yield made
    for worker in made:
        worker.go.set()
        worker.end()


def test_calls_under_way_and_later_ones_are_recorded_and_ops_are_not(workers):
    with profile(with_stack=True) as prof:
        for worker in workers:
            worker.go.set()
            assert worker.worked.wait(120)
    expected = collections.Counter(worker.thread.native_id for worker in workers)
    assert collections.Counter(threads_of(prof, "already_running")) == expected
    assert collections.Counter(threads_of(prof, "called_later")) == expected
    assert "aten::ones" not in [event.name for event in prof.events()]


def test_threads_that_begin_later_are_not_recorded():
    with profile(with_stack=True) as prof:
        worker = Worker()
        worker.go.set()
        assert worker.worked.wait(120)
        worker.end()
    assert threads_of(prof, "called_later") == []


def test_nothing_is_traced_after_the_end(workers):
    with profile(with_stack=True) as prof:
        pass
    worker = workers[0]
    before = len(prof.events())
    worker.go.set()
    assert worker.worked.wait(120)
    assert threads_of(prof, "called_later") == [] and len(prof.events()) == before
    if sys.version_info < (3, 12):  # the place is free again
        assert set_profile_of_thread(worker.thread.ident, print)
        assert set_profile_of_thread(worker.thread.ident, None)


def test_a_recorder_leaves_other_threads_out_if_asked(workers):
    options = Options(with_stack=True)
    for traces_others, count in ((True, 3), (False, 1)):
        recorder = Recorder(options, traces_others=traces_others)
        recorder.start()
        recorder.stop()
        names = [recording.name for recording in recorder.thread_recordings]
        assert names.count("worker") == count - 1, names


def test_a_pause_is_left_out(workers):
    first, second = workers
    with profile(with_stack=True) as prof:
        prof.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
        first.go.set()
        assert first.worked.wait(120)
        prof.toggle_collection_dynamic(True, [torch.profiler.ProfilerActivity.CPU])
        second.go.set()
        assert second.worked.wait(120)
    assert threads_of(prof, "called_later") == [second.thread.native_id]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring sees all threads")
def test_the_profile_function_of_another_tool_stays(workers):
    ident = workers[0].thread.ident
    seen: list[str] = []
    assert set_profile_of_thread(ident, lambda frame, event, arg: seen.append(event))
    assert not set_profile_of_thread(ident, print)
    with profile(with_stack=True) as prof:
        workers[0].go.set()
        assert workers[0].worked.wait(120)
    assert threads_of(prof, "called_later") == [] and seen
    assert set_profile_of_thread(ident, None)
    assert not set_profile_of_thread(-1, print)
