"""`pytest --mtprof` on a sample project, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.testing import Budget, median_interval

ROOT = Path(__file__).resolve().parents[3]
CI_PAGE = ROOT / "docs" / "ci.md"
SAMPLE = """
import time
import pytest
import mindtorch_v2 as torch

@pytest.fixture
def x():
    return torch.ones(4, 4)

@pytest.mark.mtprof(max_ops=1)
def test_ops_within(x):
    x.neg()

@pytest.mark.mtprof(max_ops=1)
def test_ops_over(x):
    x.neg().exp()

@pytest.mark.mtprof(max_bytes=64)
def test_bytes_within(x):
    x.neg()

@pytest.mark.mtprof(max_bytes=64)
def test_bytes_over(x):
    y = x.neg()
    x.exp()

@pytest.mark.mtprof(max_syncs=1)
def test_syncs_within(x):
    x.sum().item()

@pytest.mark.mtprof(max_syncs=1)
def test_syncs_over(x):
    x.sum().item() + x.sum().item()

@pytest.mark.mtprof(max_time=30)
def test_time_within(x):
    x.neg()

@pytest.mark.mtprof(max_time=0.001, runs=3)
def test_time_over(x):
    time.sleep(0.002)

def test_without_a_budget(x):
    x.neg()

def test_that_fails_itself(x):
    assert x.sum().item() == 0

@pytest.mark.parametrize("word", ["a", "b"])
def test_parameters(word):
    assert word
"""


def run(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "--color=no", "-p", "mtprof_pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    # pytest writes longer summaries where CI or BUILD_NUMBER is set.
    for name in ("PYTEST_ADDOPTS", "CI", "BUILD_NUMBER"):
        environment.pop(name, None)
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_sample.py").write_text(SAMPLE)
    (folder / "test_of_the_docs.py").write_text(re.search(r"```python\n(.*?)```", CI_PAGE.read_text(), re.DOTALL)[1])
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    ended = run(folder, "--mtprof", "--mtprof-save", "over", "--mtprof-json", "figures.json", "--junitxml", "junit.xml")
    return folder, ended


def test_tests_over_their_budget_fail(project):
    folder, ended = project
    assert ended.returncode == 1, ended.stderr
    figures = {row["test"].rpartition("::")[2]: row for row in json.loads((folder / "figures.json").read_text())["tests"]}
    failed = {name for name, row in figures.items() if row["outcome"] == "failed"}
    assert failed == {"test_ops_over", "test_bytes_over", "test_syncs_over", "test_time_over"}
    assert "test_that_fails_itself" in ended.stdout and "5 failed" in ended.stdout
    assert [figures[f"test_{what}_over"][what] for what in ("ops", "bytes", "syncs")] == [2, 128, 2]
    assert figures["test_time_within"]["runs"] == 7 and figures["test_time_over"]["runs"] == 3
    assert figures["test_parameters[a]"]["ops"] == 0
    assert all(figures[name]["outcome"] == "passed" for name in ("test_forward", "test_is_quick"))  # those of docs/ci.md


@pytest.mark.parametrize(
    "said",
    [
        "over budget: 2 ops, over the limit of 1; recording: over",
        "over budget: 128 bytes at the peak, over the limit of 64",
        "over budget: 2 values read from tensors, over the limit of 1",
        "in 3 runs), and 1 ms is allowed",
        "=== mtprof ===",
        "test_sample.py::test_without_a_budget",
    ],
)
def test_what_is_said(project, said):
    assert said in project[1].stdout


def test_one_is_no_plural():
    assert Budget(max_syncs=0).broken({"syncs": 1}) == ["1 value read from a tensor, over the limit of 0"]


def test_recordings_of_tests_over_budget_are_kept(project):
    folder, _ = project
    assert len(list((folder / "over").iterdir())) == 4
    [row] = [row for row in load(folder / "over" / "test_sample.py_test_ops_over.mtp").key_averages() if row.key == "aten::exp"]
    assert row.count == 1


def test_the_junit_report_has_the_figures(project):
    tree = ElementTree.parse(project[0] / "junit.xml")
    [case] = [case for case in tree.iter("testcase") if case.get("name") == "test_ops_within"]
    [value] = [entry.get("value") for entry in case.iter("property") if entry.get("name") == "mtprof"]
    assert "'ops': 1" in value


def test_without_the_option_nothing_is_recorded_or_imported(tmp_path):
    (tmp_path / "test_plain.py").write_text(
        "import sys\nimport pytest\n@pytest.mark.mtprof(max_ops=0)\ndef test_it():\n"
        "    assert not [name for name in sys.modules if name.startswith(('numpy', 'mindtorch_v2'))]\n"
    )
    ended = run(tmp_path, "--strict-markers")
    assert ended.returncode == 0, ended.stdout
    assert "mtprof" not in ended.stdout


def test_a_wrong_marker_is_told_before_any_test_runs(tmp_path):
    (tmp_path / "test_wrong.py").write_text(
        "import pytest\n@pytest.mark.mtprof(max_opps=1)\ndef test_it():\n    print('began')\n"
    )
    ended = run(tmp_path, "-s", "--mtprof")
    said = "test_wrong.py::test_it: the marker mtprof has no max_opps: did you mean max_ops?"
    assert ended.returncode == 4 and said in ended.stderr
    assert "began" not in ended.stdout


@pytest.mark.parametrize("option", ["--mtprof-json", "--mtprof-save"])
def test_options_that_need_another_one_are_refused_without_it(tmp_path, option):
    (tmp_path / "test_plain.py").write_text("def test_it(): pass\n")
    ended = run(tmp_path, option, "x")
    assert ended.returncode == 4 and f"{option} needs --mtprof" in ended.stderr
    assert not (tmp_path / "x").exists()


def test_an_error_of_a_repeated_run_says_that_it_is_one(tmp_path):
    (tmp_path / "test_repeated.py").write_text(
        "import pytest\n@pytest.mark.mtprof(max_time=1)\ndef test_it(tmp_path):\n    (tmp_path / 'x').mkdir()\n"
        "@pytest.mark.mtprof(max_time=1)\ndef test_first():\n    raise ValueError\n"
    )
    ended = run(tmp_path, "--mtprof")
    assert ended.stdout.count("mtprof: the test ran before, with the same fixtures") == 1


UNITTEST = """
import time
import unittest
import pytest
import mindtorch_v2 as torch

class Case(unittest.TestCase):
    def setUp(self):
        self.x = torch.ones(4, 4)
        self.calls = 0

    @pytest.mark.mtprof(max_ops=1)
    def test_within(self):
        self.x.neg()

    @pytest.mark.mtprof(max_ops=1)
    def test_over(self):
        self.x.neg().exp()

    @pytest.mark.mtprof(max_time=0.001, runs=3)
    def test_time_over(self):
        time.sleep(0.002)

    def test_that_fails_itself(self):
        self.assertEqual(1, 2)

class Later(unittest.IsolatedAsyncioTestCase):
    async def test_plain(self):
        pass

    @pytest.mark.mtprof(max_ops=0)
    async def test_with_a_budget(self):
        pass
"""


def test_methods_of_unittest_are_recorded_and_checked(tmp_path):
    (tmp_path / "test_case.py").write_text(UNITTEST)
    ended = run(tmp_path, "--mtprof", "--mtprof-json", "x.json")
    figures = {row["test"].rpartition("::")[2]: row for row in json.loads((tmp_path / "x.json").read_text())["tests"]}
    assert {name: row["outcome"] for name, row in figures.items()} == {
        "test_within": "passed", "test_over": "failed", "test_time_over": "failed",
    }  # fmt: skip
    assert (figures["test_within"]["ops"], figures["test_over"]["ops"], figures["test_time_over"]["runs"]) == (1, 2, 3)
    assert "4 failed, 2 passed" in ended.stdout and "AssertionError: 1 != 2" in ended.stdout
    assert "the budget of a coroutine of a unittest.TestCase cannot be checked" in ended.stdout


def test_pytest_finds_the_plugin():
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert entry == {"mtprof": "mtprof_pytest"}


@pytest.mark.parametrize("limit", [-1, "3", True])
def test_a_limit_is_a_number(limit):
    with pytest.raises(ValueError, match="max_ops of the marker mtprof"):
        Budget(max_ops=limit)


def test_the_interval_of_a_median():
    # By the sign test: of 8 values the 1st and 8th (99.2 %), of 9 the 2nd and 8th (96.1 %), of 20 the 6th and 15th (95.9 %).
    for count, low in ((1, 0), (5, 0), (8, 0), (9, 1), (20, 5)):
        assert median_interval(list(range(count))[::-1]) == (low, count - 1 - low)
