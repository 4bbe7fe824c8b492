"""`mtprof run --torch`, with a stand-in for torch whose profiler writes a trace that PyTorch wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.cli.run_torch import imports_torch

TRACE = Path(__file__).parents[1] / "fixtures" / "gpt_steps.json.gz"
PROFILER = f"""
import gzip, shutil

def schedule(**steps):
    return steps

class profile:
    def __init__(self, schedule, on_trace_ready, **options):
        self.schedule, self.on_trace_ready, self.options = schedule, on_trace_ready, options
        self.step_num, self.profiler = 0, self
        self.kineto_results = None

    def start(self):
        print("options:", sorted(name for name, value in self.options.items() if value), self.schedule)

    def step(self):
        self.step_num += 1
        print("step", self.step_num)

    def stop(self):
        self.kineto_results = object()
        if self.schedule is None or self.step_num > 2:
            self.on_trace_ready(self)

    def export_chrome_trace(self, path):
        with gzip.open({str(TRACE)!r}) as packed, open(path, "wb") as file:
            shutil.copyfileobj(packed, file)
"""
OPTIM = """
class Optimizer:
    @staticmethod
    def profile_hook_step(function):
        def step(self):
            print("range begins")
            function(self)
            print("range ends")
        return step

    def __init__(self):
        type(self).step = self.profile_hook_step(type(self).step)

class SGD(Optimizer):
    def step(self):
        print("update")
"""
SCRIPT = """
import sys
import torch
import torch.optim
optimizer = torch.optim.SGD()
for _ in range(int(sys.argv[1])):
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "profiler.py").write_text(PROFILER)
    (package / "optim.py").write_text(OPTIM)
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def run_mtprof(*args, cwd):
    command = [sys.executable, "-m", "mindtorch_v2.profiler", "run", *map(str, args)]
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, timeout=300, check=False)


def test_a_whole_run(folder):
    ended = run_mtprof("--torch", "--shapes", "--stack", "script.py", 1, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0] == "options: ['record_shapes', 'with_stack'] None"
    assert "step 1" not in ended.stdout
    assert "aten::addmm" in ended.stderr and ended.stderr.endswith("mtprof: wrote script.mtp\n")
    assert len(load(folder / "script.mtp")) == len(load(TRACE))


def test_a_schedule_steps_after_the_range_of_the_optimizer(folder):
    ended = run_mtprof("--torch", "--schedule", "1,1,1,1", "-q", "-m", "script", 3, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    first, *rest = ended.stdout.splitlines()
    assert first == "options: [] {'wait': 1, 'warmup': 1, 'active': 1, 'repeat': 1}"
    assert rest == [line for number in (1, 2, 3) for line in ("range begins", "update", "range ends", f"step {number}")]
    assert (folder / "script.mtp").exists()


def test_a_schedule_that_records_nothing(folder):
    ended = run_mtprof("--torch", "--schedule", "1,1,1,1", "script.py", 1, cwd=folder)
    assert ended.stderr.endswith("there were 1; script.mtp was not written\n")
    assert not (folder / "script.mtp").exists()


def test_torch_that_cannot_be_imported(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no libtorch')")
    (tmp_path / "script.py").write_text("print('ran')")
    ended = run_mtprof("--torch", "script.py", cwd=tmp_path)
    assert ended.returncode == 2 and ended.stdout == ""
    assert ended.stderr == ("mtprof run: --torch needs the torch of this environment, which cannot be imported: no libtorch\n")


def test_torch_and_as_torch_exclude_each_other(folder):
    ended = run_mtprof("--torch", "--as-torch", "script.py", cwd=folder)
    assert ended.returncode == 2 and "not allowed with argument" in ended.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import torch", True),
        ("import os, torch.nn as nn", True),
        ("def f():\n    from torch.utils import data", True),
        ("import torchvision", False),
        ("from . import torch", False),
        ("from .torch import x", False),
        ("print('import torch')", False),
        ("def (:", False),
    ],
)
def test_scripts_that_import_torch(text, found, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(text)
    assert imports_torch(str(path), module=False) is found


def test_modules_that_import_torch(tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "__main__.py").write_text("import torch")
    (package / "other.py").write_text("import torch")
    (package / "inner" / "__main__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    names = (
        "some_package",
        "some_package.other",
        "some_package.inner",
        "some_package.absent",
        "absent_package",
        "sys",
        "json.tool",
    )
    assert [name for name in names if imports_torch(name, module=True)] == ["some_package", "some_package.other"]
