"""The life of a recording: calls from several threads, files that go, full disks, no threads or memory, clocks that go back."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import sys
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core import threads as thread_states
from mindtorch_v2._dispatch import entry_globals
from mindtorch_v2.profiler import load, profile, record_function, serve_on_demand, validate
from mindtorch_v2.profiler.config import _ExperimentalConfig
from mindtorch_v2.profiler.recording import recorder
from mindtorch_v2.profiler.retention import base
from mindtorch_v2.profiler.retention.base import RetentionPolicy
from mindtorch_v2.profiler.session import turns

x = torch.ones(3)
EVERY_THREAD = _ExperimentalConfig(profile_all_threads=True)


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert entry_globals.observers_active == 0 and not recorder.active_recorders and not recorder.recorders_by_thread
    assert sys.getprofile() is None


def adds(prof):
    return sum(row.count for row in prof.key_averages() if row.key == "aten::add")


# ------------------------------------------------------------------------------ turns


def test_a_call_waits_for_the_one_before_it(tmp_path):
    inside, leave, stopped = threading.Event(), threading.Event(), threading.Event()

    def handler(prof):
        inside.set()
        assert leave.wait(120)

    prof = profile(on_trace_ready=handler)
    prof.start()
    first = threading.Thread(target=prof.stop)
    second = threading.Thread(target=lambda: (prof.stop(), stopped.set()))
    first.start()
    assert inside.wait(120)
    second.start()
    assert not stopped.wait(0.1)
    leave.set()
    assert stopped.wait(120)
    first.join(120)
    second.join(120)


def test_a_call_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(turns, "MOST_WAITED_S", 0.05)
    failures = []

    def step(prof):
        with pytest.raises(RuntimeError) as failure:
            prof.step()
        failures.append(failure)

    def handler(prof):
        other = threading.Thread(target=step, args=(prof,))
        other.start()
        other.join(120)  # it would wait for this handler, which waits for it

    with profile(on_trace_ready=handler):
        x + x
    (failure,) = failures
    assert "waited 0 s for another thread" in str(failure.value)


def test_a_handler_may_call_the_profile(tmp_path):
    with profile(on_trace_ready=lambda prof: prof.stop()) as prof:
        x + x
    assert adds(prof) == 1


def test_a_forked_child_is_not_kept_waiting():
    prof = profile()
    prof._turns.holder, prof._turns.thread = object(), -1  # as in a child, forked while another thread was in start()
    prof._turns._pid = -1
    with prof:
        x + x
    assert adds(prof) == 1


# ------------------------------------------------------------------------------ the thread that drains


class Counted(RetentionPolicy):
    def __init__(self):
        super().__init__(10)
        self.drained = self.ended = 0

    def drain(self):
        self.drained += 1

    def on_window_end(self):
        self.ended += 1


def test_a_flush_after_the_end_does_not_wait():
    counted = Counted()
    counted.start(None)
    counted.stop()
    before = counted.drained
    counted.flush()
    counted.stop()
    assert (counted.drained, counted.ended) == (before, 1)


def test_a_thread_that_hangs_is_waited_for_a_bounded_time(monkeypatch):
    monkeypatch.setattr(base, "MOST_WAITED_S", 0.05)
    counted, go_on = Counted(), threading.Event()
    counted.drain = lambda: go_on.wait(120)
    counted.start(None)
    with pytest.raises(TimeoutError, match="has been busy for 0 s"):
        counted.flush()
    with pytest.warns(RuntimeWarning, match="not complete yet"):
        counted.stop()
    go_on.set()
    monkeypatch.undo()
    counted.stop()
    assert counted.ended == 1


def test_the_end_of_a_window_raises_what_failed(tmp_path, monkeypatch):
    prof = profile(stream_to=tmp_path / "run.mtp")
    prof.start()
    monkeypatch.setattr(prof._retention, "on_window_end", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prof.stop()
    prof._retention._file.let_go()


@pytest.mark.parametrize("options", [{"stream_to": "run.mtp"}, {"mode": "ring", "max_memory_mb": 1}])
def test_no_more_threads(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)

    def start(*args):
        raise RuntimeError("can't start new thread")

    prof = profile(**options)
    with monkeypatch.context() as patch:
        patch.setattr(base, "start_new_thread", start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            prof.start()
    assert not prof.profiler.recording
    with prof:
        x + x
    assert adds(prof) == 1


def test_no_memory_to_encode_ends_the_window_and_counts(tmp_path, monkeypatch):
    path = tmp_path / "run.mtp"
    with profile(stream_to=path) as prof:
        x + x
        prof._retention.flush()
        with monkeypatch.context() as patch, pytest.warns(RuntimeWarning, match="cannot keep what it records: MemoryError"):
            patch.setattr(prof._retention, "_frames", lambda *args: (_ for _ in ()).throw(MemoryError()))
            x + x
            prof._retention.flush()
        x + x
    assert adds(load(path)) == 1 and load(path).dropped_events == prof.dropped_events == 2
    with prof:  # the next window is whole
        x + x
    assert adds(prof) == 1 and not [p for p in validate(path) if p.severity == "error"]


def test_threads_that_ended_are_let_go(tmp_path):
    with profile(stream_to=tmp_path / "run.mtp", experimental_config=EVERY_THREAD) as prof:
        for _ in range(20):
            thread = threading.Thread(target=lambda: x + x)
            thread.start()
            thread.join()
        prof._retention.flush()
        assert len(prof.profiler._recorder.thread_recordings) <= 2
        assert len(thread_states.states()) <= 3
    assert adds(prof) == 20


# ------------------------------------------------------------------------------ the file


def test_a_second_writer_is_refused(tmp_path):
    path = tmp_path / "run.mtp"
    with profile(stream_to=path) as first:
        x + x
        second = profile(stream_to=path)
        with pytest.raises(BlockingIOError, match="another profile, of this process or another one, is writing") as failure:
            second.start()
        assert failure.value.filename == str(path)
        x + x
    assert adds(first) == 2
    with second:
        x + x
    assert adds(second) == 1


@pytest.mark.parametrize("how", ["remove", "move"])
def test_a_file_that_goes_while_recording_is_put_back(tmp_path, how):
    path = tmp_path / "run.mtp"
    with profile(stream_to=path) as prof:
        x + x
        prof._retention.flush()
        path.unlink() if how == "remove" else path.rename(tmp_path / "moved.mtp")
        x + x
    assert adds(prof) == adds(load(path)) == 2
    if how == "move":
        assert adds(load(tmp_path / "moved.mtp")) == 1


def test_a_file_in_its_place_is_not_overwritten(tmp_path):
    path = tmp_path / "run.mtp"
    with pytest.warns(RuntimeWarning) as told, profile(stream_to=path) as prof:
        x + x
        prof._retention.flush()
        path.unlink()
        path.write_text("another's")
        x + x
    assert any("another file is in its place" in str(each.message) for each in told)
    assert path.read_text() == "another's"
    with pytest.raises(OSError, match="another file is in its place"):
        prof.events()
    path.unlink()
    assert adds(prof) == adds(load(path)) == 2


def windows(path):
    prof = profile(stream_to=path)
    for _ in range(2):
        with prof:
            x + x
        yield prof


def test_a_file_that_goes_between_windows_is_begun_anew(tmp_path):
    path = tmp_path / "run.mtp"
    for prof in windows(path):
        assert adds(prof) == adds(load(path)) == 1
        path.unlink()


def test_another_file_between_windows_is_refused(tmp_path):
    path = tmp_path / "run.mtp"
    both = windows(path)
    next(both)
    path.unlink()
    path.write_text("another's")
    with pytest.raises(FileExistsError, match="in the place of the one that this profile wrote"):
        next(both)
    assert path.read_text() == "another's"


def test_a_disk_that_is_full_at_the_end_and_comes_back(tmp_path, monkeypatch):
    path = tmp_path / "run.mtp"

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.warns(RuntimeWarning) as told, monkeypatch.context() as patch:
        with profile(stream_to=path) as prof:
            x + x
            patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space left") as failure:
            prof.events()
        assert failure.value.errno == errno.ENOSPC
    assert any("tries again" in str(each.message) for each in told)
    assert adds(prof) == adds(load(path)) == 1
    assert load(path).recovery.intact


# ------------------------------------------------------------------------------ on demand


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_signals_in_quick_succession(tmp_path):
    with serve_on_demand(signal.SIGUSR1, folder=tmp_path) as served:
        for _ in range(60):
            os.kill(os.getpid(), signal.SIGUSR1)
        until(lambda: len(served.dumps) == 30)
    assert len(os.listdir(tmp_path)) == 30


def test_a_recording_that_cannot_be_written_is_kept(tmp_path):
    folder = tmp_path / "dumps"
    folder.mkdir()
    with serve_on_demand(tmp_path / "flag", folder=folder) as served:
        served.start()
        x + x
        folder.rename(tmp_path / "away")
        with pytest.raises(FileNotFoundError):
            served.stop()
        assert served.unwritten == 1 and not served.recording and not served.dumps
        (tmp_path / "away").rename(folder)
        until(lambda: served.dumps)  # the worker tries again by itself
        assert served.unwritten == 0
    assert adds(load(served.dumps[0])) == 1


def test_what_cannot_be_written_at_the_end_goes_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "dumps"
    folder.mkdir()
    served = serve_on_demand(tmp_path / "flag", folder=folder)
    served.start()
    x + x
    shutil.rmtree(folder)
    with pytest.warns(RuntimeWarning, match="could not be written to .*dumps.*they are") as told:
        served.close()
    (path,) = served.dumps
    assert os.path.dirname(path) == str(tmp_path) and path in str(told[0].message)
    assert adds(load(path)) == 1


def test_only_some_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("mindtorch_v2.profiler.on_demand._MOST_KEPT", 2)
    folder = tmp_path / "dumps"
    folder.mkdir()
    with serve_on_demand(tmp_path / "flag", folder=folder) as served:
        folder.rename(tmp_path / "away")
        for number in range(3):
            served.start()
            with pytest.raises(FileNotFoundError):
                if number < 2:
                    served.stop()
                else:
                    with pytest.warns(RuntimeWarning, match="the oldest, .* is dropped") as told:
                        served.stop()
        assert served.unwritten == 2
        (tmp_path / "away").rename(folder)
    dropped = int(re.search(r"the oldest, .*-(\d+).mtp,", str(told[0].message))[1])  # files are counted in the whole process
    assert [int(re.search(r"-(\d+).mtp$", path)[1]) for path in served.dumps] == [dropped + 1, dropped + 2]


# ------------------------------------------------------------------------------ clocks


def test_a_clock_that_goes_back(monkeypatch):
    moments = iter([1000, 1100, 1200, 900, 950, 1300, 1400, *range(2000, 9000, 100)])
    with profile() as prof:
        monkeypatch.setattr(entry_globals, "clock", lambda: next(moments))
        x + x  # 1000 to 1100
        x * x  # 1200 to 900
        x - x  # 950 to 1300
        x / x  # 1400 to 2000
        monkeypatch.undo()
    with pytest.warns(RuntimeWarning, match="the clock went back at least"):
        events = prof.events()
    assert all(event.time_range.end >= event.time_range.start for event in events)
    problems = validate(prof)
    assert not [problem for problem in problems if problem.severity == "error"]
    assert any("the clock went back" in problem.detail for problem in problems)


def test_a_scope_ended_elsewhere_is_no_clock_that_went_back():
    scope = record_function("scope")
    with profile(experimental_config=EVERY_THREAD) as prof:
        scope.__enter__()
        for _ in range(100):
            x + x
        thread = threading.Thread(target=lambda: scope.__exit__(None, None, None))
        thread.start()
        for _ in range(100):
            x + x
        thread.join()
    assert adds(prof) == 200 and "losses" not in prof.profiler.store.metadata
