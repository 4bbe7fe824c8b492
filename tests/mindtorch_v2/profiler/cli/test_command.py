"""Commands are found by the files of their folder, and have what main() needs of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mindtorch_v2.profiler.cli import command, commands
from mindtorch_v2.profiler.cli.main import main


def test_every_file_of_the_folder_is_a_command():
    files = {name.removesuffix(".py") for name in os.listdir(commands.__path__[0]) if name.endswith(".py")}
    assert command.names() == sorted(name.replace("_", "-") for name in files - {"__init__"})


@pytest.mark.parametrize("name", command.names())
def test_a_command_has_what_the_protocol_asks_for(name):
    module = command.load(name)
    assert isinstance(module, command.Command)
    assert command.summary(module).endswith(".")
    assert module.EXAMPLE.startswith(f"mtprof {name}")


def test_a_new_file_is_a_new_command(capsys, monkeypatch, tmp_path):
    (tmp_path / "greet.py").write_text(
        '"""Greet someone."""\n'
        'EXAMPLE = "mtprof greet Ada"\n'
        'def add_arguments(parser): parser.add_argument("name")\n'
        "def run(args):\n"
        '    print(f"hello {args.name}")\n'
        "    return 7\n"
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{commands.__name__}.greet", raising=False)
    assert main(["greet", "Ada"]) == 7
    assert capsys.readouterr().out == "hello Ada\n"
    assert main([]) == 2
    assert "Greet someone\n" in capsys.readouterr().out
    del sys.modules[f"{commands.__name__}.greet"]


def test_only_the_command_that_runs_is_imported():
    code = (
        "import json, sys\n"
        "from mindtorch_v2.profiler.cli import commands, main\n"
        "try: main.main(['flops', '--help'])\n"
        "except SystemExit: pass\n"
        "start = commands.__name__ + '.'\n"
        "print(json.dumps([name.removeprefix(start) for name in sys.modules if name.startswith(start)]))\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed.splitlines()[-1]) == ["flops"]
