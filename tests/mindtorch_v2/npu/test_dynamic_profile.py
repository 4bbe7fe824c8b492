"""Profiling by profiler_config.json: which steps are recorded, what wrong files do, and no change of the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.npu.profiler import config_file
from mindtorch_v2.npu.profiler import dynamic_profile as dp
from mindtorch_v2.profiler import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(dp, "_current", None)
    (tmp_path / "config").mkdir()
    dp.init(tmp_path / "config")
    yield tmp_path
    dp._current.finish()


def ask(folder, **settings):
    """Change the file as a user does."""
    path = folder / "config" / config_file.NAME
    number = os.stat(path).st_mtime_ns + 1_000_000 if path.exists() else None
    path.write_text(json.dumps({"prof_dir": str(folder / "out"), "activities": ["CPU"], "analyse": True, **settings}))
    if number is not None:
        os.utime(path, ns=(number, number))


def run(steps):
    for _ in range(steps):
        torch.ones(2).add(1)
        dp.step()


def recorded_steps(folder):
    """The steps of each recording."""
    found = []
    for path in sorted((folder / "out").iterdir()) if (folder / "out").exists() else []:
        store = load(path).store
        found.append([int(step) for step, kind in zip(store.step, store.kind, strict=True) if kind == observer.STEP])
    return found


def test_the_first_file_has_every_key_and_records_nothing(folder):
    settings = json.loads((folder / "config" / config_file.NAME).read_text())
    assert settings["start_step"] == 0 and settings["active"] == 1 and "experimental_config" in settings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config_file.request(settings) is None and config_file.request({**settings, "activities": ["CPU"]}, now=True)
        run(3)
    assert recorded_steps(folder) == []


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"start_step": 4}, [[4]]),
        ({"start_step": 3, "active": 2}, [[3, 4]]),
        ({"start_step": 3, "active": 2, "warmup": 2}, [[5, 6]]),
        ({"start_step": -1}, [[1]]),
        ({"start_step": 0}, []),
        ({"start_step": 3, "is_rank": True, "rank_list": [0, 5]}, [[3]]),
        ({"start_step": 3, "is_rank": True, "rank_list": [5]}, []),
        ({"start_step": 3, "is_rank": False, "rank_list": [5]}, [[3]]),
    ],
)
def test_which_steps_are_recorded(folder, settings, expected):
    ask(folder, **settings)
    run(9)
    assert recorded_steps(folder) == expected


def test_a_program_is_asked_again(folder):
    ask(folder, start_step=2, metadata={"run": 7}, with_stack=True)
    run(4)
    ask(folder, start_step=-1, active=2)
    run(4)
    assert recorded_steps(folder) == [[2], [5, 6]]
    first = load(sorted((folder / "out").iterdir())[0])
    assert first.store.metadata["run"] == 7 and first.store.options["with_stack"]


def test_analysis_can_wait(folder):
    ask(folder, start_step=1, analyse=False)
    run(3)
    (path,) = (folder / "out").iterdir()
    assert not (path / "ASCEND_PROFILER_OUTPUT").exists() and recorded_steps(folder) == [[1]]


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"start_step": "soon"}, "start_step cannot be 'soon', it is reset to 0"),
        ({"start_step": 2, "active": 0}, "active cannot be 0, it is reset to 1"),
        ({"start_step": 2, "pace": 1}, "there is no pace: known are activities"),
        ({"start_step": 2, "activities": ["GPU"]}, "activities are CPU and NPU, not 'GPU'"),
        ({"start_step": 2, "experimental_config": {"speed": 1}}, "experimental_config has no speed"),
        ({"start_step": 2, "experimental_config": {"l2_cache": True}}, "only CANN's own recorder has it: l2_cache"),
    ],
)
def test_wrong_values_are_told_and_the_rest_is_done(folder, settings, said):
    ask(folder, **settings)
    with pytest.warns(RuntimeWarning, match=said):
        run(4)
    assert recorded_steps(folder) == ([[2]] if settings["start_step"] == 2 else [])


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "\xff"])
def test_a_file_that_cannot_be_read_is_told_once(folder, text):
    path = folder / "config" / config_file.NAME
    path.write_bytes(text.encode("latin-1"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run(3)
    assert [str(warning.message) for warning in told if "cannot be used" in str(warning.message)] and len(told) == 1
    ask(folder, start_step=-1)
    run(2)
    assert recorded_steps(folder) == [[4]]


def test_a_step_that_is_over(folder):
    run(5)
    ask(folder, start_step=3)
    with pytest.warns(RuntimeWarning, match="start_step 3 is over, step 6 has begun"):
        run(2)
    dp.set_state({"cur_step": 1})
    ask(folder, start_step=3, active=1)
    run(3)
    assert recorded_steps(folder) == [[3]]
    with pytest.raises(ValueError, match="cur_step"):
        dp.set_state({"step": 1})


def test_start_records_now(folder, tmp_path):
    ask(folder, start_step=0)
    dp.start()
    with pytest.raises(RuntimeError, match="runs already"):
        dp.start()
    run(2)
    assert recorded_steps(folder) == [[0]]
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"prof_dir": str(folder / "out"), "activities": ["CPU"], "analyse": True, "active": 2}))
    dp.start(other)
    run(3)
    assert recorded_steps(folder) == [[0], [2, 3]]
    with pytest.raises(FileNotFoundError):
        dp.start(tmp_path / "nothing.json")


def test_a_folder_that_cannot_be_written_is_told(folder):
    (folder / "file").write_text("")
    ask(folder, start_step=1, prof_dir=str(folder / "file"))
    with pytest.warns(RuntimeWarning, match="the recording could not be written"):
        run(3)


def test_before_init(monkeypatch, tmp_path):
    monkeypatch.setattr(dp, "_current", None)
    for call in (dp.step, dp.start, lambda: dp.set_state({"cur_step": 1})):
        with pytest.raises(RuntimeError, match="init"):
            call()
    with pytest.raises(NotADirectoryError, match="no folder"):
        dp.init(tmp_path / "nowhere")


SCRIPT = """
import mindtorch_v2 as torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(2)).sum().backward()
    optimizer.step()
"""


def test_no_change_of_the_program(tmp_path):
    (tmp_path / "config").mkdir()
    ask(tmp_path, start_step=2, active=2)
    variables = {**os.environ, "PROF_CONFIG_PATH": str(tmp_path / "config")}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert recorded_steps(tmp_path) == [[2, 3]]
    variables["PROF_CONFIG_PATH"] = str(tmp_path / "nowhere")
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "PROF_CONFIG_PATH=" in done.stderr and "there is no folder" in done.stderr
