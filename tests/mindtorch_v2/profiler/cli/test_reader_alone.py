"""`mtprof` reads, analyzes and reports without the runtime: no op is imported, and the answers are the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.formats import saved
from mindtorch_v2.profiler.results.loaded import load

FIXTURES = Path(__file__).parents[1] / "fixtures"

COMMANDS = [
    ["--version"],
    ["table", "{trace}", "-n", "5"],
    ["events", "{trace}", "-n", "5"],
    ["tree", "{trace}", "--by", "call"],
    ["memory", "{trace}"],
    ["advice", "{trace}", "--json"],
    ["validate", "{trace}"],
    ["lines", "{trace}"],
    ["device", "{gpu}", "--json"],
    ["diff", "{saved}", "{saved}", "--json"],
    ["convert", "{trace}", "--to", "chrome", "-o", "{folder}/out.json"],
    ["report", "{trace}", "-o", "{folder}/out.html"],
]

PROGRAM = """
import contextlib, io, json, sys
import mtprof
answers = []
for command in json.loads(sys.argv[1]):
    sys.argv = ["mtprof", *command]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = mtprof.main()
    answers.append([code, printed.getvalue(), sorted(name for name in sys.modules if name.startswith("mindtorch_v2._ops"))])
print(json.dumps(answers))
"""


def run_alone(commands, **environment):
    process = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(commands)], capture_output=True, text=True, check=True)
    return json.loads(process.stdout)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    saved.save(load(FIXTURES / "gpt_steps.json.gz").store, folder / "a.mtp")
    return {
        "trace": FIXTURES / "mlp_everything.json.gz",
        "gpu": FIXTURES / "gpu_by_hand.json",
        "saved": folder / "a.mtp",
        "folder": folder,
    }


def test_reading_commands_import_no_op_and_answer_the_same(places, capsys):
    commands = [[part.format(**places) for part in command] for command in COMMANDS]
    for command, (code, text, ops) in zip(commands, run_alone(commands), strict=True):
        assert not ops, command
        assert main(command) == code == 0, command
        assert capsys.readouterr().out == text, command


def test_the_runtime_comes_when_a_command_needs_it(places, capsys):
    """FLOPs of PyTorch's traces are worked out by the formulas of the ops."""
    command = ["flops", str(places["trace"]), "--json"]
    ((code, text, ops),) = run_alone([command])
    assert code == 0 and ops
    assert main(command) == 0 and capsys.readouterr().out == text


def test_help_imports_no_op():
    program = "import sys, mtprof\nsys.argv = ['mtprof', '--help']\ntry: mtprof.main()\nexcept SystemExit: print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "Record a program:" in printed and "mindtorch_v2._ops" not in printed
