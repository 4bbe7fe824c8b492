"""Recorded calls as scripts that run."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.analysis.replay import ReplayError, find_call, script
from mindtorch_v2.profiler.cli.main import main as mtprof
from mindtorch_v2.profiler.formats import saved
from mindtorch_v2.profiler.store.store import EventStore

CALLS = {
    "aten::addmm": lambda: torch.addmm(torch.ones(3), torch.ones(2, 4), torch.ones(3, 4).t()),
    "aten::sum": lambda: torch.ones(2, 3, dtype=torch.float64).sum(1, keepdim=True),
    "aten::cat": lambda: torch.cat([torch.ones(2, 3), torch.ones(4, 3)], 0),
    "aten::gelu": lambda: torch.nn.functional.gelu(torch.ones(5)),
    "aten::embedding": lambda: torch.nn.functional.embedding(torch.tensor([1, 2]), torch.ones(3, 4)),
    "aten::mul": lambda: torch.ones(4, 1).expand(4, 6) * 2,
    "aten::zeros": lambda: torch.zeros(2, 3, dtype=torch.int64),
    "aten::add_": lambda: torch.ones(4).add_(torch.ones(4), alpha=3),
}


@pytest.fixture(scope="module")
def store():
    with profile(record_shapes=True) as prof:
        for call in CALLS.values():
            call()
    return prof._recording()


@pytest.mark.parametrize("name", CALLS)
def test_the_script_runs_and_the_call_has_the_same_inputs(store, name, tmp_path, monkeypatch):
    text = script(store, find_call(store, name), runs=2)
    path = tmp_path / "replay.py"
    path.write_text(text)
    monkeypatch.setattr(sys, "argv", [str(path), "mindtorch_v2"])
    printed = io.StringIO()
    with profile(record_shapes=True) as again, contextlib.redirect_stdout(printed):
        runpy.run_path(str(path))
    assert printed.getvalue().startswith(f"{name} of mindtorch_v2: ")
    repeated = again._recording()
    wanted = store.input_infos[store.shapes[find_call(store, name)]]
    found = {
        repeated.input_infos[n] for n, row in zip(repeated.shapes, repeated.name, strict=True) if repeated.names[row] == name
    }
    assert any(one[:1] + one[2:3] == wanted[:1] + wanted[2:3] and one.types[:1] == wanted.types[:1] for one in found)


def test_what_cannot_be_replayed_is_told(store):
    bare = EventStore.from_rows(
        [{"name": "aten::mm", "start": 0, "end": 9}, {"name": "block", "kind": 3, "start": 20, "end": 30}]
    )
    for event, reason in (
        ("aten::mm", "record_shapes=True"),
        ("block", "is no op"),
        ("none", "no event"),
        ("#77", "there is no event #77: ids are 1 to 2"),
        ("2", "is no op"),
    ):
        with pytest.raises(ReplayError, match=reason):
            find_call(bare, event)


def test_command(store, tmp_path, capsys):
    path, target = str(tmp_path / "p.mtp"), tmp_path / "cat.py"
    saved.export(store, path)
    assert mtprof(["replay", path, "aten::cat", "-o", str(target)]) == 0
    assert "torch.ops.aten.cat(" in target.read_text()
    capsys.readouterr()
    assert mtprof(["replay", path, "aten::cat", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert mtprof(["replay", path, str(found["id"])]) == 0
    assert capsys.readouterr().out == found["script"]
    assert mtprof(["replay", path, "aten::nothing"]) == 2


def test_the_id_of_a_call_is_the_one_that_other_commands_tell(tmp_path, capsys):
    """With stacks, rows of Python calls have ids, too."""
    with profile(record_shapes=True, with_stack=True) as prof:
        torch.ones(2, 3).neg()
    prof.save(path := str(tmp_path / "p.mtp"))
    assert mtprof(["events", path, "--name", "aten::neg", "--json"]) == 0
    event = json.loads(capsys.readouterr().out)
    assert event["id"] > 2
    for asked in ("aten::neg", str(event["id"])):
        assert mtprof(["replay", path, asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["name"], found["id"]) == ("aten::neg", event["id"]) and f"event {event['id']}." in found["script"]


def test_the_line_is_that_of_the_program(store):
    """The innermost frame is often a library's."""
    row = find_call(store, "aten::gelu")
    frames = ("mindtorch_v2/nn/functional.py(9): gelu", "train.py(3): <module>")
    inputs = store.input_infos[store.shapes[row]]
    again = EventStore.from_rows([{"name": "aten::gelu", "start": 0, "end": 5, "stack": frames, "inputs": inputs}])
    assert "called at train.py(3)." in script(again, 0)
