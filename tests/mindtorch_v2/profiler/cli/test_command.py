"""Commands are found by the files of their folder, and have what main() needs of them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from mindtorch_v2.profiler.cli import command, commands
from mindtorch_v2.profiler.cli.commands import live
from mindtorch_v2.profiler.cli.main import main


def test_every_file_of_a_group_is_a_command():
    files = [path for path in Path(commands.__path__[0]).glob("*/*.py") if path.stem != "__init__"]
    assert command.names() == sorted(path.stem.replace("_", "-") for path in files)
    assert {path.parent.name for path in files} == set(commands.GROUPS)


def test_the_help_names_every_command_by_group_within_80_columns(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    titles = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "Record a program:",
        "See what it did:",
        "Compare recordings, and see what is possible:",
        "Files of recordings:",
        "Processes that run, and other programs:",
        "options:",
        "exit codes:",
    ]
    assert [name for name in command.names() if f"\n  {name} " not in text] == []


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
    monkeypatch.setattr(live, "__path__", [*live.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{live.__name__}.greet", raising=False)
    assert main(["greet", "Ada"]) == 7
    assert capsys.readouterr().out == "hello Ada\n"
    assert main([]) == 2
    assert "  greet     Greet someone\n" in capsys.readouterr().out
    del sys.modules[f"{live.__name__}.greet"]


def test_help_where_the_package_comes_by_a_loader_without_sources(capsys, monkeypatch):
    """As pytest's, which takes the package while an installation leaves its .egg-info beside it."""

    class Taking:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return ModuleSpec(name, Taking()) if name.startswith(f"{commands.__name__}.") else None

    monkeypatch.setattr(sys, "meta_path", [Taking, *sys.meta_path])
    for name in [name for name in sys.modules if name.startswith(f"{commands.__name__}.") and name.count(".") > 4]:
        monkeypatch.delitem(sys.modules, name)
    assert main([]) == 2
    assert "  table     " in capsys.readouterr().out


def test_only_the_command_that_runs_is_imported():
    code = (
        "import json, sys\n"
        "from mindtorch_v2.profiler.cli import commands, main\n"
        "try: main.main(['flops', '--help'])\n"
        "except SystemExit: pass\n"
        "start = commands.__name__ + '.'\n"
        "print(json.dumps([name.removeprefix(start) for name in sys.modules\n"
        "                  if name.startswith(start) and '.' in name.removeprefix(start)]))\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(printed.splitlines()[-1]) == ["read.flops"]
