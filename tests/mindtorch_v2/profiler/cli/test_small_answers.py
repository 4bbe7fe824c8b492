"""mtprof's answers to wrong sort keys and to --version."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from importlib import metadata

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler.cli import reading
from mindtorch_v2.profiler.cli.commands.read.table import SORT_KEYS
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.formats import saved
from mindtorch_v2.profiler.store.store import EventStore

TRACE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "mlp_everything.json.gz")


@pytest.mark.parametrize("key", ["bogus", "cpu_children", "add"])
def test_a_wrong_sort_key_is_told_the_right_ones(capsys, key):
    assert main(["table", TRACE, "--sort", key]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"mtprof table: cannot sort by {key!r}, only by {', '.join(SORT_KEYS)}\n"


@pytest.mark.parametrize("option", ["--sort", "--sort-by"])
@pytest.mark.parametrize("key", [key for key in SORT_KEYS if "device_time" not in key])
def test_the_keys_that_are_told_are_right(capsys, key, option):
    assert main(["table", TRACE, option, key, "-n", "3"]) == 0
    assert "Self CPU time total" in capsys.readouterr().out


@pytest.mark.parametrize("installed", ["1.2.3", None])
def test_version(capsys, monkeypatch, installed):
    def version(name):
        assert name == "mindtorch_v2"
        if installed is None:
            raise metadata.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(metadata, "version", version)
    assert main(["--version"]) == 0
    own = installed or "(not installed)"
    assert capsys.readouterr().out == f"mtprof of mindtorch_v2 {own}, which follows torch {torch.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "answer"),
    [
        (["tabel", "x"], 2, "mtprof: there is no command 'tabel': did you mean `table`?\n"),
        (["flps"], 2, "mtprof: there is no command 'flps': did you mean `flops`?\n"),
        ([TRACE], 2, f"mtprof: there is no command {TRACE!r}: to read that file: `mtprof table {TRACE}`; "),
        (["zzzz"], 2, "mtprof: there is no command 'zzzz': there are advice, "),
        (["table", "{empty}"], 3, "mtprof table: {empty}: the file is empty: nothing was written to it\n"),
        (["events", TRACE, "--step", "99"], 2, "mtprof events: nothing was recorded in step 99: it has 0 to 1\n"),
        (["table"], 2, "mtprof table: the following arguments are required: path (see `mtprof table --help`)\n"),
        (["table", "nofile.json"], 3, "mtprof table: there is no file 'nofile.json'\n"),
        (["table", "no/file.json"], 3, "mtprof table: there is no folder 'no'\n"),
        (["table", "{folder}"], 3, "mtprof table: '{folder}' is a folder: name a recording in it"),
        (["table", __file__], 3, f"mtprof table: {__file__}: the file is neither a trace in JSON nor a saved profile\n"),
        (["table", TRACE, "-n", "x"], 2, "mtprof table: argument -n/--limit: 'x' is no whole number (see "),
        (
            ["table", TRACE, "--by", "line"],
            2,
            "mtprof table: argument --by: there is no 'line': there are name, shape, stack, ",
        ),
        (["table", TRACE, "--jsno"], 2, "mtprof table: unknown --jsno: did you mean `--json`? (see `mtprof table --help`)\n"),
        (["table", TRACE, "--xyz=1"], 2, "mtprof table: unknown --xyz=1 (see `mtprof table --help`)\n"),
        (["--json", "table", TRACE], 2, "mtprof: --json stands before the command: options of a command stand after it\n"),
        (["-n", "5", "table", TRACE], 2, "mtprof: -n stands before the command: options of a command stand after it\n"),
        (["events", TRACE, "--longer-than", "5"], 2, "mtprof events: argument --longer-than: '5' has no unit: ns, us, ms or s"),
        (["events", TRACE, "--id", "0"], 2, "mtprof events: there is no event 0: ids are 1 to "),
        (["tree", TRACE, "--by", "modules"], 2, "mtprof tree: argument --by: there is no 'modules': did you mean `module`?"),
        (["convert", TRACE, "--to", "crome"], 2, "mtprof convert: argument --to: there is no 'crome': did you mean `chrome`?"),
        (["convert", TRACE], 2, "mtprof convert: say the format with --to: chrome, "),
        (["report", TRACE, "-o", "/nowhere/x.html"], 3, "mtprof report: there is no folder '/nowhere'\n"),
        (["table", "{other}"], 3, "mtprof table: {other}: no event of a recording is in it: complete; 2 x not an event\n"),
        (["table", TRACE, __file__], 2, f"mtprof table: unknown {__file__}: one recording is read; `mtprof diff` compares two"),
        (["table", TRACE, "--step", "99"], 2, "mtprof table: unknown --step 99: that is an option of `mtprof events` (see "),
        (["what-if", TRACE, "--op", "aten::adm", "--faster", "2x"], 2, "mtprof what-if: no event is named aten::adm: did you "),
        (["replay", TRACE, "aten::adm"], 2, "mtprof replay: aten::adm: no event is named 'aten::adm': did you mean `aten::"),
        (["replay", TRACE, "zzz"], 2, "mtprof replay: zzz: no event is named 'zzz'\n"),
        (["top", "999999999"], 2, "mtprof top: there is no process 999999999\n"),
        (["attach", "999999999"], 2, "mtprof attach: there is no process 999999999\n"),
        (["run"], 2, "mtprof run: the following arguments are required: script (see `mtprof run --help`)\n"),
        (["run", "{folder}"], 2, "mtprof run: '{folder}' is a folder: name a script in it\n"),
        (["run", "nofile.py"], 2, "mtprof run: there is no file 'nofile.py'\n"),
        (["run", "--schedule", "1,1,2", __file__], 2, "mtprof run: argument --schedule: '1,1,2' is not four numbers "),
        (["run", "--listen", "port", __file__], 2, "mtprof run: argument --listen: 'port' is no port: 0 to 65535"),
        (["diff", TRACE], 2, "mtprof diff: two recordings are compared, or several with several: "),
        (["diff", TRACE, TRACE, "--fail-over", "five"], 2, "mtprof diff: argument --fail-over: 'five' is not a percentage"),
        (["top", "abc"], 2, "mtprof top: argument pid: 'abc' is no whole number (see"),
        (
            ["push", TRACE, "--as", "otlp", "--to", "http://127.0.0.1:1/v1"],
            3,
            "mtprof push: nothing was sent to http://127.0.0.1:1/v1: Connection refused\n",
        ),
        (
            ["events", "{stepless}", "--step", "99"],
            2,
            "mtprof events: nothing was recorded in step 99: it was recorded without steps, which `mtprof run --schedule` or ",
        ),
        (["top", "1", "--interval", "0"], 2, "mtprof top: argument --interval: '0' is no number of seconds above 0"),
        (["history", "{folder}/none"], 3, "mtprof history: there is no file '{folder}/none'\n"),
        (["push", TRACE], 2, "mtprof push: the following arguments are required: --as (see "),
        (["mcp", "--folder", "nowhere"], 2, "mtprof mcp: there is no folder 'nowhere'\n"),
        *(
            (
                ["table", TRACE, "--sort", key],
                2,
                f"mtprof table: cannot sort by {key!r}: no work of a device was recorded, only that of the CPU\n",
            )
            for key in ("cuda_time_total", "self_npu_time_total", *(key for key in SORT_KEYS if "device_time" in key))
        ),
    ],
)
def test_a_wrong_usage_is_told_what_is_right(capsys, tmp_path, arguments, code, answer):
    (empty := tmp_path / "empty.json").touch()
    (other := tmp_path / "other.json").write_text("[1, 2]")
    saved.save(EventStore.from_rows([{"name": "aten::mm", "start": 0, "end": 9}]), stepless := tmp_path / "stepless.mtp")
    names = {"empty": empty, "folder": tmp_path, "other": other, "stepless": stepless}
    try:
        ended = main([argument.format(**names) for argument in arguments])
    except SystemExit as wrong_usage:
        ended = wrong_usage.code
    printed = capsys.readouterr()
    assert (ended, printed.out) == (code, "")
    assert printed.err.startswith(answer.format(**names)) and printed.err.count("\n") == 1  # one line, whatever is wrong


def test_events_of_which_there_are_none_are_told_apart_from_an_empty_recording(capsys):
    assert main(["events", TRACE, "--name", "aten::adm"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("mtprof events: no event is of that kind: did you mean `aten::")


def test_an_option_behind_the_script_is_the_scripts_and_is_told_so(capsys, tmp_path):
    (script := tmp_path / "script.py").write_text("")
    assert main(["run", "-q", "-o", str(tmp_path / "x.mtp"), str(script), "--memory"]) == 0
    assert "mtprof: --memory was given to the script: options of `mtprof run` stand before it\n" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "table"])
def test_without_permission_the_file_is_named_and_no_script_runs(capsys, monkeypatch, tmp_path, command):
    def open_without_permission(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "closed.mtp")

    (script := tmp_path / "script.py").write_text("print('ran')")
    (tmp_path / "closed.mtp").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    # Everything is permitted to root, who may run this.
    if command == "run":
        monkeypatch.setattr(os, "access", lambda path, mode, **how: False)
        said = "mtprof run: 'new.mtp': no file can be made in its folder\n"
        assert main(["run", "-o", "new.mtp", str(script)]) == 3
    else:
        monkeypatch.setattr(reading, "read_any", open_without_permission)
        said = "mtprof table: 'closed.mtp': Permission denied\n"
        assert main(["table", "closed.mtp"]) == 3
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", said)


@pytest.mark.parametrize("command", ["table", "advice", "tree", "report"])
def test_a_recording_without_events_is_said_to_be_one(capsys, tmp_path, command):
    (trace := tmp_path / "trace.json").write_text('{"traceEvents": []}')
    main([command, str(trace)])
    printed = capsys.readouterr()
    assert printed.err.startswith(f"mtprof: {trace}: there are no events in it\n")
    assert "overhead" not in printed.out
    if command == "advice":
        assert printed.out.startswith("nothing was recorded, so there is nothing to advise\n")


def test_a_folder_where_a_file_is_to_be_written_is_told(capsys, tmp_path):
    assert main(["report", TRACE, "-o", str(tmp_path)]) == 3
    assert capsys.readouterr().err == f"mtprof report: {str(tmp_path)!r}: cannot write a file in place of the folder\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_standard_output_that_cannot_be_written_is_told_without_a_number():
    command = [sys.executable, "-m", "mindtorch_v2.profiler", "table", TRACE]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (3, "mtprof table: No space left on device")
