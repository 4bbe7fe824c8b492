"""mtprof run --stack-samples: stacks of some ops, without a trace of Python calls."""

from __future__ import annotations

import json

import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.cli.main import main

SCRIPT = """
import mindtorch_v2 as torch

def helper():
    return torch.empty(2, 2)

for _ in range(20):
    helper()
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("options", [(), ("--all",), ("--shapes",)])
def test_some_ops_have_stacks_and_no_call_is_traced(script, options):
    assert main(["run", "-q", "--stack-samples", "1e9", *options, "-o", "out.mtp", "script.py"]) == 0
    profile = load("out.mtp")
    ops = [event for event in profile.events() if event.name == "aten::empty"]
    assert len(ops) == 20
    assert any("helper" in frame for frame in ops[0].stack)  # there is always time for the first sample
    assert not [event.name for event in profile.events() if "helper" in event.name]


def test_the_rate_reaches_the_recording(script, capsys):
    assert main(["run", "-q", "--stack-samples", "0.001", "-o", "out.mtp", "script.py"]) == 0
    assert main(["validate", "out.mtp"]) == 0
    assert "sampled at most 0.001 times a second" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["0", "-1", "many", "nan", "1e10"])
def test_a_rate_that_is_none(script, capsys, value):
    with pytest.raises(SystemExit) as ended:
        main(["run", f"--stack-samples={value}", "script.py"])
    assert ended.value.code == 2
    assert f"'{value}' is no number of stacks a second" in capsys.readouterr().err


@pytest.mark.parametrize(("other", "why"), [("--stack", "records every call"), ("--torch", "samples no stacks")])
def test_what_it_does_not_go_with(script, capsys, other, why):
    assert main(["run", "--stack-samples", "10", other, "script.py"]) == 2
    assert why in capsys.readouterr().err


def test_lines_and_advice_say_that_stacks_were_sampled(script, capsys):
    assert main(["run", "-q", "--stack-samples", "0.001", "-o", "out.mtp", "script.py"]) == 0
    capsys.readouterr()
    said = "Only ops with a stack count: stacks of 1 of 20 ops, sampled at most 0.001 times a second."
    for form in ([], ["--hot"]):
        assert main(["lines", "out.mtp", *form]) == 0
        assert capsys.readouterr().out.splitlines()[0] == said
    assert main(["lines", "out.mtp", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sampled"].startswith("stacks of 1 of 20 ops")
    assert main(["advice", "out.mtp"]) == 0
    assert "not looked for: with_stack was sampled: " in capsys.readouterr().out
