"""mtprof run when things go wrong: what is said, what is kept, and with which exit code it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.cli.main import main

STEPS = """
import sys
import mindtorch_v2 as torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(int(sys.argv[1])):
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
sys.exit(int(sys.argv[2]))
"""
KEPT = b"a recording of yesterday"


def run_mtprof(*args, cwd):
    return subprocess.run(
        [sys.executable, "-m", "mindtorch_v2.profiler", "run", *map(str, args)],
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def no_torch(folder):
    """Let `import torch` fail for scripts in the folder, as where torch is not installed."""
    (folder / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")


@pytest.mark.parametrize(
    ("schedule", "steps", "code", "needed"),
    [
        ("1,1,2,1", 0, 0, 3),
        ("1,1,2,1", 0, 5, 3),
        ("2,1,2,1", 2, 0, 4),
        ("2,1,2,1", 2, 7, 4),
        ("2,1,2,1", 3, 0, 4),  # what follows the last step is none
        ("2,1,2,1", 3, 7, 4),
    ],
)
def test_a_schedule_that_never_gets_to_recording(tmp_path, schedule, steps, code, needed):
    (tmp_path / "script.py").write_text(STEPS)
    (tmp_path / "script.mtp").write_bytes(KEPT)
    ended = run_mtprof("--schedule", schedule, "script.py", steps, code, cwd=tmp_path)
    assert ended.returncode == (code or 4), ended.stderr
    assert ended.stderr.splitlines()[-1] == (
        f"mtprof: nothing was recorded: the schedule needs {needed} steps of an optimizer or more, and there were {steps}; "
        "script.mtp was not written"
    )
    assert "Traceback" not in ended.stderr
    assert (tmp_path / "script.mtp").read_bytes() == KEPT


def test_a_schedule_that_is_cut_short_keeps_what_there_is(tmp_path):
    (tmp_path / "script.py").write_text(STEPS)
    ended = run_mtprof("-q", "--schedule", "1,1,4,1", "script.py", 3, 0, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "mtprof: wrote script.mtp\n")
    counts = {row.key: row.count for row in load(str(tmp_path / "script.mtp")).key_averages()}
    assert counts["aten::linear"] == 1


@pytest.mark.parametrize(
    ("schedule", "steps", "code", "kept"),
    [
        ("0,1,2,2", 3, 0, [1, 2]),  # ended in the second warm-up
        ("1,0,3,0", 5, 0, [1, 2, 3]),  # while it waited
        ("1,1,3,0", 8, 0, [2, 3, 4]),  # one step after the second warm-up
        ("1,1,3,0", 9, 0, [2, 3, 4]),
        ("1,1,3,0", 10, 0, [7, 8, 9]),
        ("1,1,3,0", 11, 0, [7, 8, 9]),
        ("1,1,3,0", 8, 7, [7, 8]),  # of a script that failed, what it did last
    ],
)
def test_of_a_repeated_schedule_the_last_window_is_kept_that_is_worth_it(tmp_path, schedule, steps, code, kept):
    (tmp_path / "script.py").write_text(STEPS)
    ended = run_mtprof("-q", "--schedule", schedule, "-o", "script.json", "script.py", steps, code, cwd=tmp_path)
    cold = "mtprof: without warm-up the first step that is recorded may take longer than usual\n"
    assert (ended.returncode, ended.stderr) == (code, cold * (schedule == "1,0,3,0") + "mtprof: wrote script.json\n")
    recorded = load(str(tmp_path / "script.json"))
    assert [int(name.removeprefix("ProfilerStep#")) for name in recorded.store.names if "ProfilerStep" in name] == kept
    assert {row.key: row.count for row in recorded.key_averages()}["aten::linear"] == min(len(kept), steps - kept[0])


@pytest.mark.parametrize("options", [[], ["--all"], ["--schedule", "1,1,2,1"]])
def test_a_script_for_torch_without_as_torch(tmp_path, options):
    no_torch(tmp_path)
    (tmp_path / "script.py").write_text("import torch\n")
    (tmp_path / "script.mtp").write_bytes(KEPT)
    ended = run_mtprof(*options, "script.py", cwd=tmp_path)
    assert ended.returncode == 1
    *_, error, hint, last = ended.stderr.splitlines()
    assert error == "ModuleNotFoundError: No module named 'torch'"
    assert hint == "mtprof: torch is not installed here; with --as-torch, `import torch` in the script means this package"
    assert last.startswith("mtprof: nothing was recorded") and last.endswith("; script.mtp was not written")
    assert (tmp_path / "script.mtp").read_bytes() == KEPT


def test_what_was_recorded_before_torch_was_missed_is_kept(tmp_path):
    no_torch(tmp_path)
    (tmp_path / "script.py").write_text("import mindtorch_v2 as ours\nours.ones(3)\nimport torch\n")
    ended = run_mtprof("-q", "script.py", cwd=tmp_path)
    assert ended.returncode == 1
    assert "--as-torch" in ended.stderr
    assert next(row.key for row in load(str(tmp_path / "script.mtp")).key_averages()) == "aten::ones"


def test_a_script_that_used_the_installed_torch(tmp_path):
    (tmp_path / "torch.py").write_text("")
    # The hint comes before the script has run.
    (tmp_path / "script.py").write_text("import torch, sys\nsys.stderr.flush()\nprint('hint')\n")
    ended = run_mtprof("-q", "script.py", cwd=tmp_path)
    assert ended.returncode == 0
    assert ended.stderr == (
        "mtprof: the script imports torch, of which nothing is recorded: --torch records it by torch.profiler, and with "
        "--as-torch `import torch` means this package\n"
        "mtprof: nothing was recorded: the script ran no op; script.mtp was not written\n"
    )
    assert ended.stdout == "hint\n"


@pytest.mark.parametrize("options", [(), ("-q", "--memory"), ("--json",)])
def test_a_script_without_ops_replaces_no_file(tmp_path, options):
    (tmp_path / "script.py").write_text("print('fine')")
    (tmp_path / "script.mtp").write_bytes(KEPT)
    ended = run_mtprof(*options, "script.py", cwd=tmp_path)
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "fine")
    assert ended.stderr == "mtprof: nothing was recorded: the script ran no op; script.mtp was not written\n"
    assert (tmp_path / "script.mtp").read_bytes() == KEPT


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import sys; sys.exit(2)", 2, ""),
        ("sys.exit('no data')", 1, "NameError: name 'sys' is not defined"),
        ("def (:", 1, "SyntaxError"),
    ],
)
def test_a_script_that_fails_at_once_replaces_no_file(tmp_path, text, code, said):
    (tmp_path / "script.py").write_text(text)
    (tmp_path / "script.mtp").write_bytes(KEPT)
    ended = run_mtprof("script.py", cwd=tmp_path)
    assert ended.returncode == code
    assert said in ended.stderr and "run_script.py" not in ended.stderr
    assert ended.stderr.splitlines()[-1] == "mtprof: nothing was recorded before the script ended; script.mtp was not written"
    assert (tmp_path / "script.mtp").read_bytes() == KEPT


@pytest.mark.parametrize("name", ["no.such.mod", "nosuch", "package"])
def test_a_module_that_is_not_there(tmp_path, name):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    ended = run_mtprof("-m", name, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"mtprof run: cannot run '{name}': ") and len(ended.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("*.mtp"))


def test_a_module_that_fails_to_import_another_tells_where(tmp_path):
    (tmp_path / "prog.py").write_text("import nosuch\n")
    ended = run_mtprof("-m", "prog", cwd=tmp_path)
    assert ended.returncode == 1
    assert "prog.py" in ended.stderr and "ModuleNotFoundError: No module named 'nosuch'" in ended.stderr


@pytest.mark.parametrize("name", ["out.jsn", "out.xyz", "out", "out.gz"])
def test_an_ending_that_means_no_format_is_refused_before_the_script_runs(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("print('ran')")
    assert main(["run", "-o", name, "script.py"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"mtprof run: what format is '{name}'? Its name must end in .mtp, .json, .json.gz or .html\n"
    assert os.listdir(tmp_path) == ["script.py"]


WAITING = """
import os, signal, sys, time
import mindtorch_v2 as torch
torch.ones(2, 2) @ torch.ones(2, 2)
if "own" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
if "child" in sys.argv:
    child = os.fork()
    if not child:
        time.sleep(60)
    os.kill(child, signal.SIGTERM)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
finally:
    print("cleaned up")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("word", "code", "printed"),
    [
        ("plain", 128 + signal.SIGTERM, "cleaned up\n"),
        ("own", 9, "cleaned up\n"),
        ("child", 128 + signal.SIGTERM, f"child {-signal.SIGTERM}\ncleaned up\n"),
    ],
)
def test_sigterm_keeps_what_was_recorded(tmp_path, word, code, printed):
    (tmp_path / "script.py").write_text(WAITING)
    ended = run_mtprof("script.py", word, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (code, printed), ended.stderr
    assert "Traceback" not in ended.stderr
    assert "aten::matmul" in {row.key for row in load(str(tmp_path / "script.mtp")).key_averages()}
