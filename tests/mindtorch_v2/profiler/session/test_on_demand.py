"""Profiling on demand: by signal, by a touched file, by a slow step; and what is alive."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import live_tensors, load, on_demand, profile, serve_on_demand
from mindtorch_v2.profiler.on_demand import SlowSteps
from mindtorch_v2.profiler.session.live_tensors import write_live_tensors


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        torch.ones(2) + 1
        time.sleep(0.01)


def test_a_signal_starts_and_a_second_one_writes(tmp_path):
    before = signal.getsignal(signal.SIGUSR1)
    with serve_on_demand(signal.SIGUSR1, folder=tmp_path, record_shapes=True) as served:
        os.kill(os.getpid(), signal.SIGUSR1)
        until(lambda: served.recording)
        torch.ones(4, 4) @ torch.ones(4, 4)
        os.kill(os.getpid(), signal.SIGUSR1)
        until(lambda: served.dumps)
    assert signal.getsignal(signal.SIGUSR1) == before
    (path,) = served.dumps
    assert "aten::mm" in {row.key for row in load(path).key_averages()}


@pytest.mark.parametrize("name", ["USR1", "SIGUSR1"])
def test_a_signal_by_name_tells_when_a_dump_is_complete(tmp_path, name):
    complete = []
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with serve_on_demand(name, folder=tmp_path, on_dump=lambda path: complete.append(load(path).store)) as served:
        os.kill(os.getpid(), signal.SIGUSR1)
        until(lambda: served.recording)
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        os.kill(os.getpid(), signal.SIGUSR1)
        until(lambda: complete)
    assert set(complete[0].step.tolist()) >= {0, 1, 2}  # steps are those of the optimizer
    assert {thread.name for thread in complete[0].threads} == {"MainThread"}  # none of the profiler's own


def test_touching_a_file_does_the_same(tmp_path):
    flag = tmp_path / "profile-now"
    with serve_on_demand(flag, folder=tmp_path) as served:
        assert not served.recording
        flag.touch()
        until(lambda: served.recording)
        torch.ones(3).exp()
        os.utime(flag, ns=(1, 1))
        until(lambda: served.dumps)
        flag.unlink()
        time.sleep(0.3)
        assert not served.recording
    assert "aten::exp" in {row.key for row in load(served.dumps[0]).key_averages()}


def test_what_goes_wrong_is_told_and_asking_again_works(tmp_path, monkeypatch):
    asked = []

    def toggle():
        asked.append(None)
        if len(asked) == 1:
            raise OSError("no room")

    flag = tmp_path / "flag"
    with serve_on_demand(flag, folder=tmp_path) as served, pytest.warns(RuntimeWarning, match="on demand failed: no room"):
        monkeypatch.setattr(served, "toggle", toggle)
        flag.touch()
        until(lambda: len(asked) == 1)
        os.utime(flag, ns=(1, 1))
        until(lambda: len(asked) == 2)


def test_closing_writes_what_is_being_recorded(tmp_path):
    served = serve_on_demand(tmp_path / "flag", folder=tmp_path)
    served.start()
    torch.ones(3).exp()
    served.close()
    assert len(served.dumps) == 1
    served.close()
    assert len(served.dumps) == 1


def test_a_slow_step_is_followed_by_a_recording(tmp_path, monkeypatch):
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    now = 0

    def step(took):
        nonlocal now
        now += took
        (weight * weight).sum().backward()
        optimizer.step()

    monkeypatch.setattr(on_demand, "SlowSteps", lambda times: SlowSteps(times, clock=lambda: now))
    with serve_on_demand(folder=tmp_path, slow_step=8, slow_steps_recorded=2) as served:
        for _ in range(14):
            step(5)
        step(41)
        for _ in range(3):
            step(5)
        assert len(served.dumps) == 1
    counts = {row.key: row.count for row in load(served.dumps[0]).key_averages()}
    assert counts["Optimizer.step#SGD.step"] == 2


def test_recordings_of_one_second_have_files_of_their_own(tmp_path):
    dumps = []
    for _ in range(2):
        with serve_on_demand(tmp_path / "trigger", folder=tmp_path, on_dump=dumps.append) as served:
            served.start()
    assert len(set(dumps)) == 2 and all(os.path.exists(path) for path in dumps)


@pytest.mark.parametrize("name", ["profile", "go", "trigger", "GO.TXT", "./USR1"])
def test_other_words_are_names_of_files(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with serve_on_demand(name) as served:
        assert not served.recording


def test_slow_is_measured_against_the_median_of_usual_steps():
    times = iter([0, *range(10, 210, 10), 260, 270, 370, 380])
    watch = SlowSteps(3, clock=lambda: next(times))
    assert [watch.slow() for _ in range(25)] == [False] * 21 + [True, False, True, False]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (dict(), ValueError, "needs a signal, a path or slow_step"),
        (dict(slow_step=0.5), ValueError, "must be more than 1"),
        (dict(trigger="x", folder="/nowhere"), NotADirectoryError, "no folder '/nowhere'"),
        (dict(trigger="x", nonsense=1), TypeError, "nonsense"),
        (dict(trigger=9999), ValueError, "9999 is not a valid Signals"),
        (dict(trigger="USR9"), ValueError, "'USR9' is no signal: did you mean 'USR[12]'. A file of that name is './USR9'"),
        (dict(trigger="usr1"), ValueError, "'usr1' is no signal: did you mean 'USR1'"),
        (dict(trigger=""), ValueError, "neither a signal nor the name of a file"),
        (dict(trigger="KILL"), ValueError, "no program can handle the signal SIGKILL"),
        (dict(trigger="/nowhere/go"), NotADirectoryError, "no folder '/nowhere' in which the file '/nowhere/go'"),
    ],
)
def test_bad_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        serve_on_demand(**arguments)


# ---------------------------------------------------------------- what is alive


def of_shape(shape):
    return [one for one in live_tensors() if one.shape == shape]


def test_live_tensors_know_what_they_are():
    model = nn.Sequential(nn.Linear(7, 13), nn.BatchNorm1d(13))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 7)).sum().backward()
    optimizer.step()
    kinds = {(tensor.category, tensor.owner) for tensor in of_shape((13, 7))}
    assert kinds == {
        ("parameter", "Sequential.0.weight"), ("gradient", "Sequential.0.weight"), ("optimizer state", "Adam.exp_avg"),
        ("optimizer state", "Adam.exp_avg_sq"),
    }  # fmt: skip
    assert ("buffer", "Sequential.1.running_mean") in {(tensor.category, tensor.owner) for tensor in of_shape((13,))}
    output = model(torch.randn(3, 7))
    assert [tensor.category for tensor in of_shape((3, 13))].count("activation") >= 1
    del output


def test_tensors_that_share_memory_are_one_and_the_largest_comes_first():
    whole, other = torch.zeros(77, 31), torch.zeros(3)
    parts = [whole[:3], whole.t()]
    (tensor,) = [tensor for tensor in live_tensors() if tensor.bytes == 77 * 31 * 4]
    assert tensor.tensors >= 3
    sizes = [tensor.bytes for tensor in live_tensors()]
    assert sizes == sorted(sizes, reverse=True)
    assert len(live_tensors(limit=2)) == 2
    del parts, other


def test_a_recording_knows_stack_and_age():
    with profile(profile_memory=True, with_stack=True):
        array = torch.zeros(91, 17)
        (tensor,) = of_shape((91, 17))
        assert 0 <= tensor.age_s < 60
        assert any("test_on_demand.py" in frame for frame in tensor.stack)
    (tensor,) = of_shape((91, 17))
    assert (tensor.stack, tensor.age_s) == ((), None)
    del array


def test_a_memory_error_leaves_the_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = torch.zeros(123, 11)
    with pytest.raises(MemoryError), pytest.warns(RuntimeWarning, match="live-tensors"):
        with profile(profile_memory=True):
            torch.ones(3)
            raise MemoryError
    (path,) = tmp_path.iterdir()
    report = json.loads(path.read_text())
    assert any(tensor["shape"] == [123, 11] for tensor in report["tensors"])
    assert report["bytes"] >= array.nbytes
    assert sum(report["bytes_by_category"].values()) == report["bytes"]


def test_writing_the_list(tmp_path):
    made = [torch.zeros(211, 5 + n) for n in range(4)]
    write_live_tensors(tmp_path / "live.json", limit=3)
    report = json.loads((tmp_path / "live.json").read_text())
    assert len(report["tensors"]) == 3
    assert report["count"] >= 4
    del made
