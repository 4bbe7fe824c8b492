"""Time, memory and calls by line, of made-up events with exact times and of a real program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.analysis.source.files import CHANGED, FOUND, MISSING
from mindtorch_v2.profiler.analysis.source.lines import source_lines
from mindtorch_v2.profiler.analysis.source.places import parsed
from mindtorch_v2.profiler.cli.main import main as mtprof
from mindtorch_v2.profiler.store.store import EventStore

PROGRAM = """\
def work(x):
    total = 0
    for i in range(9):
        total += i
    y = layer(x)
    return y * 2


loss = work(1)
loss.backward()
"""
MODULE = "prog.py(9): <module>"
IN_WORK = ("prog.py(5): work", MODULE)
PYTHON, OP = observer.PYTHON, observer.OP


def rows():
    """work() takes 100 to 900: Python to 400, a layer of a library to 700 with an op in it, then an op of its own."""
    return [
        {
            "name": "aten::addmm",
            "start": 450,
            "end": 650,
            "seq": 7,
            "stack": ("mindtorch_v2/nn/modules/linear.py(63): forward", *IN_WORK),
        },
        {"name": "mindtorch_v2/nn/modules/linear.py(62): forward", "kind": PYTHON, "start": 400, "end": 700, "stack": IN_WORK},
        {"name": "aten::mul", "start": 700, "end": 890, "stack": ("prog.py(6): work", MODULE)},
        {"name": "prog.py(1): work", "kind": PYTHON, "start": 100, "end": 900, "stack": (MODULE,)},
        {"name": "range", "kind": observer.SCOPE, "start": 50, "end": 950, "stack": (MODULE,)},
        {
            "name": "AddmmBackward0",
            "kind": observer.BACKWARD,
            "start": 1100,
            "end": 1400,
            "seq": 7,
            "fwd_thread": 1,
            "stack": ("prog.py(10): <module>",),
        },
        {
            "name": "autograd::engine::evaluate_function: AddmmBackward0",
            "kind": observer.ENGINE,
            "start": 1050,
            "end": 1450,
            "stack": ("prog.py(10): <module>",),
        },
        {"name": "prog.py(9): <module>", "kind": PYTHON, "start": 0, "end": 1500},
    ]


MEMORY = [{"time": 500, "bytes": 64, "addr": 1}, {"time": 800, "bytes": 32, "addr": 2}, {"time": 820, "bytes": -64, "addr": 1}]


@pytest.fixture
def program(tmp_path, monkeypatch):
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return path


def lines_of(store):
    (file,) = source_lines(store).files
    return file.lines


@pytest.mark.parametrize(
    "number, figures",
    [
        # The time before the first call in work() is placed on its loop, and may be of the lines up to the call.
        (3, {"self_ns": 300, "python_ns": 300, "total_ns": 300, "python_to": 4, "calls": 0}),
        # The library's function and the op in it belong to the line that called it; its backward ran elsewhere.
        (5, {"self_ns": 300, "python_ns": 0, "total_ns": 300, "calls": 1, "bytes": 64, "backward_ns": 300}),
        (6, {"self_ns": 200, "python_ns": 10, "total_ns": 200, "calls": 1, "bytes": 32, "backward_ns": 0}),
        # A named range is no call: what is around work() is the module's own time.
        (9, {"self_ns": 100, "python_ns": 100, "total_ns": 900, "calls": 1}),
        (10, {"self_ns": 600, "python_ns": 200, "total_ns": 600, "calls": 0, "backward_ns": 0}),
    ],
)
def test_figures_of_a_line(program, number, figures):
    lines = lines_of(EventStore.from_rows(rows(), MEMORY))
    assert sorted(lines) == [3, 5, 6, 9, 10]
    assert {name: getattr(lines[number], name) for name in figures} == figures


def test_all_time_belongs_to_a_line(program):
    store = EventStore.from_rows(rows())
    assert sum(line.self_ns for line in lines_of(store).values()) == 1500
    assert lines_of(store)[5].ops == {"aten::addmm": 200}


def test_time_without_a_line_of_the_program_is_elsewhere(program):
    other = {"name": "aten::sum", "thread": 2, "start": 10, "end": 60, "stack": ("torch/worker.py(3): run",)}
    assert source_lines(EventStore.from_rows([*rows(), other])).elsewhere_ns == 50


def test_without_stacks_there_are_no_files():
    assert source_lines(EventStore.from_rows([{"name": "aten::mm", "start": 0, "end": 9}])).files == []


def test_a_missing_and_a_changed_file_are_told(program):
    noted = {"prog.py": {"path": str(program), "digest": "0" * 64, "own": True}}
    (file,) = source_lines(EventStore.from_rows(rows(), options={"sources": noted})).files
    assert file.source.state == CHANGED and "changed" in file.note
    program.unlink()
    (file,) = source_lines(EventStore.from_rows(rows())).files
    assert file.source.state == MISSING and "not here" in file.note
    # The function cannot be read, so its Python time is on the line of the call that follows.
    assert file.lines[5].python_ns == 300


def test_a_function_that_lies_in_an_installed_package_is_not_the_programs(program):
    noted = {"prog.py": {"path": str(program), "digest": None, "own": False}}
    assert source_lines(EventStore.from_rows(rows(), options={"sources": noted})).files == []


@pytest.mark.parametrize("text, parts", [("a(b).py(3): f: g", ("a(b).py", 3, "f: g")), ("<built-in method x>", None)])
def test_frames(text, parts):
    assert parsed(text) == parts


SCRIPT = """\
import mindtorch_v2 as torch
from mindtorch_v2 import nn

def slow():
    return sum(i * i for i in range(2000))

model = nn.Linear(8, 4)
for _ in range(3):
    slow()
    loss = model(torch.ones(2, 8)).sum()
    loss.backward()
"""


def test_of_a_real_program_from_the_command_line(tmp_path, capsys):
    (tmp_path / "own.py").write_text(SCRIPT)
    target = tmp_path / "own.mtp"
    program = "import sys, mtprof; sys.exit(mtprof.main())"  # as the installed command does; its frame is not the script's
    command = [sys.executable, "-c", program, "run", "--all", "-q", "-o", str(target), "own.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert mtprof(["lines", str(target), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (file,) = answer["files"]
    assert (file["name"], file["state"], file["path"]) == ("own.py", FOUND, str(tmp_path / "own.py"))
    found = {line["number"]: line for line in file["lines"]}
    assert found[9]["calls"] == 3 and found[9]["text"].strip() == "slow()"
    assert found[10]["calls"] == 9  # ones, the module and sum, three times
    assert "aten::addmm" in found[10]["ops"] and found[10]["backward_ns"] > 0 and found[10]["bytes"] > 0
    assert found[5]["python_ns"] > 0
    assert mtprof(["lines", str(target), "--hot", "-n", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    (tmp_path / "own.py").write_text("# another\n" + SCRIPT)
    assert mtprof(["lines", str(target), "--whole", "--ops"]) == 0
    printed = capsys.readouterr().out
    assert "has changed since it was recorded" in printed and "# another" in printed
    assert mtprof(["lines", str(target), "--file", "nothing.py"]) == 2
    assert "own.py" in capsys.readouterr().err


def test_traces_of_pytorch_are_said_to_know_functions_only(tmp_path):
    trace = Path(__file__).parents[1] / "fixtures" / "mlp_everything.json.gz"
    recording = load(trace)
    assert source_lines(recording.store).by_function
    recording.save(tmp_path / "saved.mtp")
    assert source_lines(load(tmp_path / "saved.mtp").store).by_function


LOOP = """\
import torch


def train(step):
    for number in range(9):
        step(number)


train(step)
"""


def test_where_only_functions_are_known_a_running_one_counts_where_it_is_defined(tmp_path, monkeypatch):
    (tmp_path / "loop.py").write_text(LOOP)
    monkeypatch.chdir(tmp_path)
    store = EventStore.from_rows(
        [
            {"name": "aten::mul", "start": 300, "end": 500},
            {"name": "loop.py(6): train", "kind": PYTHON, "start": 100, "end": 900},  # PyTorch's: the line it had come to
            {"name": "aten::add", "start": 1100, "end": 1200},
            {"name": "loop.py(4): train", "kind": PYTHON, "start": 1000, "end": 1300},
            {"name": "loop.py(9): <module>", "kind": PYTHON, "start": 0, "end": 1500},
        ]
    )
    lines = lines_of(store)
    assert sorted(lines) == [1, 4]
    assert (lines[4].total_ns, lines[4].python_ns, lines[4].calls) == (800 + 300, 600 + 200, 2)
    assert (lines[1].self_ns, lines[1].python_ns) == (400, 400)
