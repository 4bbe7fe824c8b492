"""%%profile, with a shell that does what IPython's does; `make interop` runs a notebook."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import profiler


class Shell:
    def __init__(self):
        self.user_ns = {"torch": torch}
        self.shown = []
        self.execution_count = 3
        self.magics_manager = SimpleNamespace(magics={"cell": {}})

    def transform_cell(self, cell):
        return cell.replace("%pi", "3.0")

    def displayhook(self, value):
        self.shown.append(value)

    def register_magic_function(self, function, kind, name):
        self.magics_manager.magics[kind][name] = function

    def run(self, line, cell):
        return self.magics_manager.magics["cell"]["profile"](line, cell)


@pytest.fixture
def shell():
    shell = Shell()
    profiler.load_ipython_extension(shell)
    yield shell
    profiler.unload_ipython_extension(shell)
    assert shell.magics_manager.magics == {"cell": {}}


CELL = "x = torch.ones(3) * %pi\nx.sum()\n"


def test_a_cell_is_run_and_its_averages_are_shown(shell):
    averages = shell.run("prof --shapes", CELL)
    assert {"aten::ones", "aten::mul", "aten::sum"} <= {row.key for row in averages}
    assert shell.shown == [torch.tensor(9.0)] and shell.user_ns["x"].tolist() == [3.0] * 3
    assert shell.user_ns["prof"].key_averages(group_by_input_shape=True)[0].input_shapes is not None
    shell.run("", CELL.rstrip() + ";")
    assert len(shell.shown) == 1  # a semicolon hides the value


def test_stacks_begin_in_the_cell(shell):
    shell.run("prof --stack", "def step():\n    return torch.ones(2).add(1)\nstep()\n")
    stacks = [event.stack for event in shell.user_ns["prof"].events() if event.name == "aten::add"]
    assert stacks and all(any("step" in frame for frame in stack) for stack in stacks)
    assert all(stack[-1] == "<cell>(3): <module>" for stack in stacks)
    calls = [event.name for event in shell.user_ns["prof"].events() if event["kind"] == "python"]
    assert not any("test_notebook_magic" in name for name in calls)


def test_the_report_is_shown_in_the_cell_and_the_recording_saved(shell, tmp_path):
    report = shell.run(f"--all --report --save {tmp_path}/cell.mtp", CELL)
    html = report._repr_html_()
    assert html.startswith("<iframe") and 'sandbox="allow-scripts"' in html and "characters>" in repr(report)
    assert any(row.key == "aten::mul" for row in profiler.load(tmp_path / "cell.mtp").key_averages())


def test_what_a_cell_raises_is_raised_and_the_profile_kept(shell):
    with pytest.raises(ZeroDivisionError):
        shell.run("prof", "torch.ones(2)\n1 / 0\n")
    assert any(row.key == "aten::ones" for row in shell.user_ns["prof"].key_averages())


@pytest.mark.parametrize("line", ["--nonsense", "two names", "no-name"])
def test_a_wrong_line_is_refused_before_the_cell_runs(shell, line):
    with pytest.raises(ValueError, match="%%profile"):
        shell.run(line, "ran = True")
    assert "ran" not in shell.user_ns
