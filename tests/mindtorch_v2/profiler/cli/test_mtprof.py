"""mtprof: what each command prints, and that errors are one line and an exit code."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load, profile, schedule
from mindtorch_v2.profiler.cli.command import names
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.results.writers import get
from mindtorch_v2.profiler.store.store import EventStore

FIXTURES = os.path.join(os.path.dirname(__file__), "..", "fixtures")
TORCH_TRACE = os.path.join(FIXTURES, "mlp_everything.json.gz")
EVERYTHING = dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops"), True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A saved profile and a trace of the same training run."""
    folder = tmp_path_factory.mktemp("recorded")
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(schedule=schedule(wait=0, warmup=1, active=6, repeat=1), **EVERYTHING) as prof:
        for _ in range(7):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
            prof.step()
    prof.overhead()
    prof.save(folder / "run.mtp")
    prof.export_chrome_trace(str(folder / "run.json.gz"))
    return folder, prof


def mtprof(capsys, *args):
    code = main([str(arg) for arg in args])
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.mark.parametrize("name", names())
def test_every_command_has_help_with_an_example(capsys, name):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"example:\n  mtprof {name}" in capsys.readouterr().out


def test_no_command_prints_help(capsys):
    code, out, _ = mtprof(capsys)
    assert code == 2
    assert all(f"\n  {name} " in out for name in names())


@pytest.mark.parametrize("kind", ["run.mtp", "run.json.gz"])
def test_table_is_the_profiles_own(capsys, recorded, kind):
    folder, prof = recorded
    code, out, _ = mtprof(capsys, "table", folder / kind, "-n", -1)
    assert code == 0
    want = {row.key: row.count for row in prof.key_averages()}
    assert {row.key: row.count for row in load(str(folder / kind)).key_averages()} == want
    assert all(name[:50] in out for name in want)
    assert "Profiler overhead: " + ("about" if kind.endswith(".mtp") else "not known; neither traces nor PyTorch's") in out


def test_table_of_a_file_that_does_not_tell_its_cost_says_how_it_could(capsys, tmp_path):
    with profile() as prof:
        torch.ones(2)
    prof.save(tmp_path / "run.mtp")
    assert "prof.overhead() before prof.save() measures it" in mtprof(capsys, "table", tmp_path / "run.mtp")[1]


def test_table_by_shape_and_bad_sort_key(capsys, recorded):
    folder, _ = recorded
    code, out, _ = mtprof(capsys, "table", folder / "run.mtp", "--by", "shape", "-n", -1)
    assert code == 0
    assert "[[4, 8], [8, 16], [], []]" in out or "[[16], [4, 8], [8, 16], [], []]" in out
    code, _, err = mtprof(capsys, "table", folder / "run.mtp", "--sort", "nonsense")
    assert code == 2
    assert "cannot sort by 'nonsense'" in err


def test_table_without_the_cost_of_recording(capsys, recorded):
    folder, prof = recorded
    code, out, _ = mtprof(capsys, "table", folder / "run.mtp", "-n", 3, "--corrected")
    assert code == 0
    head, *rows = out.splitlines()[-4:]
    assert head.split() == ["self", "corrected", "total", "corrected", "operator"]
    assert len(rows) == 3
    cost = prof.overhead()
    assert cost.self_ns.sum() < prof.profiler.store.self_ns.sum()
    code, _, err = mtprof(capsys, "table", folder / "run.json.gz", "--corrected")
    assert code == 3
    assert "does not tell what recording cost" in err


def test_events(capsys, recorded):
    folder, prof = recorded
    code, out, _ = mtprof(capsys, "events", folder / "run.mtp", "--name", "aten::addmm", "--json", "-n", -1)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert len(lines) == sum(event.name == "aten::addmm" for event in prof.events())
    assert all(line["name"] == "aten::addmm" and line["duration_ns"] > 0 for line in lines)
    code, out, _ = mtprof(capsys, "events", folder / "run.mtp", "--longer-than", "100s")
    assert (code, out) == (0, "")
    code, out, _ = mtprof(capsys, "events", folder / "run.mtp", "-n", 3, "--slowest")
    assert "more" in out.splitlines()[-1]
    with pytest.raises(SystemExit):
        main(["events", "x", "--longer-than", "5"])
    assert "'5' has no unit" in capsys.readouterr().err


def test_tree_by_call_and_by_module(capsys, recorded):
    folder, _ = recorded
    code, out, _ = mtprof(capsys, "tree", folder / "run.mtp", "--least", 0)
    assert code == 0
    lines = out.splitlines()
    linear = next(n for n, line in enumerate(lines) if line.endswith("aten::linear"))
    assert any(line.endswith("aten::addmm") and line.index("aten") > lines[linear].index("aten") for line in lines[linear:])
    code, out, _ = mtprof(capsys, "tree", folder / "run.mtp", "--by", "module", "--least", 0)
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()[1:]].count("Sequential") == 1
    assert {line.split()[-1] for line in out.splitlines()[1:]} == {"Sequential", "0", "1", "2"}


def test_memory_and_flops(capsys, recorded):
    folder, _ = recorded
    code, out, _ = mtprof(capsys, "memory", folder / "run.mtp")
    assert code == 0
    assert "peak: " in out and "aten::" in out
    assert "held then: " in out and "optimizer_state" not in out and "gradient" in out
    assert "parameter" in out  # which were there before the recording
    assert re.search(r"in use [\d.]+ K?B at the start, [\d.]+ K?B at the end", out)
    assert re.search(r"peak: .*; [\d.]+ K?B of it from before the recording, [\d.]+ K?B allocated since", out)
    assert re.search(r" \d+  from before the recording$", out, re.MULTILINE) and "not known" not in out
    code, out, _ = mtprof(capsys, "memory", folder / "run.json.gz")
    assert code == 0
    assert "in use at least " in out and "What was there before and was not freed meanwhile is not known" in out
    code, out, _ = mtprof(capsys, "flops", folder / "run.mtp")
    assert code == 0
    assert "aten::addmm" in out and "GFLOP/s" in out


@pytest.mark.parametrize(("command", "hint"), [("memory", "--memory"), ("flops", "--flops"), ("tree", "--modules")])
def test_what_was_not_recorded_is_said(capsys, tmp_path, command, hint):
    with profile() as prof:
        torch.ones(3) + 1
    prof.save(tmp_path / "plain.mtp")
    more = ["--by", "module"] if command == "tree" else []
    code, out, err = mtprof(capsys, command, tmp_path / "plain.mtp", *more)
    assert (code, out) == (3, "")
    assert hint in err


def test_advice_as_text_and_json(capsys, recorded):
    folder, prof = recorded
    code, out, _ = mtprof(capsys, "advice", folder / "run.mtp", "--json")
    assert code == 0
    assert [f["rule"] for f in json.loads(out)["findings"]] == [f.rule for f in prof.advice()]
    code, out, _ = mtprof(capsys, "advice", folder / "run.mtp")
    assert code == 0
    assert out


def test_diff_with_itself(capsys, recorded):
    folder, _ = recorded
    code, out, _ = mtprof(capsys, "diff", folder / "run.mtp", folder / "run.mtp", "--fail-over", "5%", "--fail-op-over", "5%")
    assert code == 0
    assert "no op changed" in out


def steps_of(path, ns, steps=10):
    """A saved recording of a few steps; the only op of each takes so many nanoseconds and a few more."""
    rows = []
    for step in range(steps):
        start = step * 10 * ns
        rows.append({"name": "aten::mm", "start": start + 10, "end": start + 10 + ns + step})
        rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": start, "end": start + 20 + ns + step})
    get("saved")(EventStore.from_rows(rows), path)
    return path


def test_diff_over_the_limit(capsys, tmp_path):
    fast, slow = steps_of(tmp_path / "fast.mtp", 100_000), steps_of(tmp_path / "slow.mtp", 400_000)
    code, out, _ = mtprof(capsys, "diff", fast, slow, "--fail-over", "5%", "--json", "--html", tmp_path / "d.html")
    assert code == 1
    comparison = json.loads(out)
    assert (comparison["step"]["verdict"], comparison["changes"][0]["verdict"]) == ("slower", "slower")
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "aten::mm" in page and "slower" in page and "<script" not in page
    assert mtprof(capsys, "diff", fast, slow, "--fail-over", "400%")[0] == 0
    assert mtprof(capsys, "diff", fast, slow, "--fail-over", "400%", "--fail-op-over", "50%")[0] == 1
    assert mtprof(capsys, "diff", slow, fast, "--fail-over", "5%")[0] == 0
    # One op, one recording of each: a machine may have become half as fast.
    doubled = steps_of(tmp_path / "doubled.mtp", 200_000)
    assert mtprof(capsys, "diff", fast, doubled, "--fail-over", "5%")[0] == 0


def test_a_limit_needs_steps(capsys, tmp_path):
    few = steps_of(tmp_path / "few.mtp", 1000, steps=4)
    code, out, err = mtprof(capsys, "diff", few, few, "--fail-over", "5%", "--html", tmp_path / "d.html")
    assert code == 3 and "too few steps" in out
    assert err.startswith("mtprof diff: too few steps to tell")
    assert "too few steps" in (tmp_path / "d.html").read_text(encoding="utf-8")
    assert mtprof(capsys, "diff", few, few)[0] == 0


def test_diff_of_several(capsys, tmp_path):
    before = [steps_of(tmp_path / f"before{n}.mtp", 100_000 + 500 * n) for n in range(4)]
    after = [steps_of(tmp_path / f"after{n}.mtp", 200_000 + 500 * n) for n in range(4)]
    code, out, _ = mtprof(capsys, "diff", *before, "--to", *after, "--fail-over", "5%", "--html", tmp_path / "d.html")
    assert code == 1
    assert "steps compared: 40 and 40 of 4 and 4 recordings;" in out
    assert "40 and 40 steps of 4 and 4 recordings" in (tmp_path / "d.html").read_text(encoding="utf-8")
    assert mtprof(capsys, "diff", *before, "--to", *before, "--fail-over", "5%")[0] == 0


@pytest.mark.parametrize("paths", [["a"], ["a", "a", "a"], ["a", "--to", "a", "a"]])
def test_diff_says_what_it_compares(capsys, tmp_path, paths):
    path = steps_of(tmp_path / "a.mtp", 1000)
    code, out, err = mtprof(capsys, "diff", *(path if word == "a" else word for word in paths))
    assert (code, out) == (2, "")
    assert err.startswith("mtprof diff: ") and f"got {paths.count('a') if '--to' not in paths else '1 and 2'}" in err


@pytest.mark.parametrize("option", ["--confidence=100%", "--confidence=1%", "--least=-5%"])
def test_diff_refuses_what_is_no_probability(capsys, tmp_path, option):
    path = steps_of(tmp_path / "a.mtp", 1000)
    code, out, err = mtprof(capsys, "diff", path, path, option)
    assert (code, out) == (2, "")
    assert err.startswith(f"mtprof diff: {option[2:].partition('=')[0]} must ")


@pytest.mark.parametrize("to", ["chrome", "saved", "perfetto", "speedscope", "collapsed", "pprof", "csv", "html"])
def test_convert(capsys, recorded, tmp_path, to):
    folder, _ = recorded
    code, out, err = mtprof(capsys, "convert", folder / "run.mtp", "--to", to, "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert (tmp_path / "out").stat().st_size > 100
    assert out.strip() == str(tmp_path / "out")


def test_convert_needs_a_format_and_another_file(capsys, recorded):
    folder, _ = recorded
    code, _, err = mtprof(capsys, "convert", folder / "run.mtp", "-o", "x.unknown")
    assert code == 2
    assert "--to" in err
    code, _, err = mtprof(capsys, "convert", folder / "run.mtp", "--to", "saved")
    assert code == 2
    assert "would replace the input" in err
    same = folder / ".." / folder.name / "run.mtp"
    for command, *options in (("convert", "--to", "csv"), ("report",), ("repair",)):
        code, _, err = mtprof(capsys, command, folder / "run.mtp", *options, "-o", same)
        assert (code, "would replace the input" in err) == (2, True)


@pytest.mark.parametrize("command", ["memory", "flops", "events", "table"])
def test_a_negative_limit_shows_all(capsys, recorded, command):
    folder, _ = recorded
    everything, more, first = (mtprof(capsys, command, folder / "run.mtp", "-n", n)[1] for n in ("-1", "100000", "1"))
    assert everything == more
    assert len(first.splitlines()) < len(everything.splitlines())


def test_a_converted_page_has_what_the_report_has(capsys, recorded, tmp_path):
    folder, _ = recorded
    for command in (("report",), ("convert", "--to", "html")):
        assert mtprof(capsys, command[0], folder / "run.mtp", *command[1:], "-o", tmp_path / f"{command[0]}.html")[0] == 0
    assert (tmp_path / "report.html").read_bytes() == (tmp_path / "convert.html").read_bytes()


def test_report(capsys, recorded, tmp_path):
    folder, _ = recorded
    code, _, _ = mtprof(capsys, "report", folder / "run.mtp", "-o", tmp_path / "r.html", "--title", "My run")
    assert code == 0
    assert "My run" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_validate(capsys, recorded, tmp_path):
    folder, _ = recorded
    for path in (folder / "run.mtp", folder / "run.json.gz", TORCH_TRACE):
        code, out, _ = mtprof(capsys, "validate", path)
        assert code == 0, out
        assert out.splitlines()[-1].endswith(": fine")
    whole = (folder / "run.mtp").read_bytes()
    (tmp_path / "half.mtp").write_bytes(whole[: len(whole) // 2])
    code, out, err = mtprof(capsys, "validate", tmp_path / "half.mtp")
    assert code == 1
    assert "Traceback" not in out + err


@pytest.mark.parametrize("command", ["table", "events", "tree", "memory", "flops", "advice", "report", "convert", "validate"])
@pytest.mark.parametrize("content", [None, b"", b"hello", b"{", b"\x1f\x8b"])
def test_a_file_that_is_no_recording_is_one_line(capsys, tmp_path, command, content):
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    more = ["--to", "csv", "-o", tmp_path / "o.csv"] if command == "convert" else []
    code, out, err = mtprof(capsys, command, path, *more)
    assert code == 3
    assert "Traceback" not in out + err
    assert str(path) in out + err


def test_a_torch_trace_cut_in_half_is_told_and_read(capsys, tmp_path):
    whole = gzip.decompress(Path(TORCH_TRACE).read_bytes())
    half = tmp_path / "half.json"
    half.write_bytes(whole[: len(whole) // 2])
    code, out, err = mtprof(capsys, "table", half)
    assert code == 0
    assert "aten::" in out
    assert str(half) in err and "Traceback" not in err


SCRIPT = """
import sys
import mindtorch_v2 as torch

class Thing:
    pass

x = torch.ones(4, 4)
for _ in range(5):
    x = x @ x
print("argv", sys.argv[1:], __name__)
import pickle
assert pickle.loads(pickle.dumps(Thing())).__class__ is Thing
if "fail" in sys.argv:
    raise ValueError("the script's own")
if "exit" in sys.argv:
    sys.exit(7)
if "interrupt" in sys.argv:
    import os, signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    os.kill(os.getpid(), signal.SIGINT)
"""


def run_mtprof(*args, cwd):
    return subprocess.run(
        [sys.executable, "-m", "mindtorch_v2.profiler", "run", *map(str, args)],
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(("word", "code"), [("fine", 0), ("fail", 1), ("exit", 7), ("interrupt", 130)])
def test_run_keeps_arguments_and_exit_code_and_always_writes(tmp_path, word, code):
    (tmp_path / "script.py").write_text(SCRIPT)
    ended = run_mtprof("--shapes", "-o", "out.mtp", "script.py", word, "--flag", cwd=tmp_path)
    assert ended.returncode == code, ended.stderr
    assert f"argv ['{word}', '--flag'] __main__" in ended.stdout
    assert "aten::matmul" in ended.stderr
    assert [row.count for row in load(str(tmp_path / "out.mtp")).key_averages() if row.key == "aten::matmul"] == [5]
    if word == "fail":
        assert "ValueError: the script's own" in ended.stderr
        assert "run_script.py" not in ended.stderr


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the streams")
def test_streams_that_are_closed_are_written_to_in_vain(tmp_path):
    """As cron jobs and daemons may have them. The script's file has none of their numbers, which C code would print to."""
    program = (
        "import mindtorch_v2 as torch\ntorch.ones(2) + 1\nwith open('number', 'w') as file: print(file.fileno(), file=file)\n"
    )
    (tmp_path / "script.py").write_text(program)

    def ended(streams, *arguments):
        shell = ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-m", "mindtorch_v2.profiler"]
        done = subprocess.run([*shell, *arguments], cwd=tmp_path, capture_output=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    assert ended("<&- >&- 2>&-", "run", "-o", "out.mtp", "script.py") == (0, b"", b"")
    assert int((tmp_path / "number").read_text()) > 2
    assert ended(">&-", "table", "out.mtp") == ended(">&-", "report", "out.mtp") == (0, b"", b"")
    assert (tmp_path / "out.html").exists()
    assert ended("2>&-", "table", "none.mtp") == (3, b"", b"")  # what stderr was for is not printed to stdout
    assert ended("<&-", "table", "-") == (2, b"", b"mtprof table: there is no standard input to read from\n")


TORCH_SCRIPT = """
import torch
import torch.nn.functional as F
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    F.mse_loss(model(torch.ones(3, 4)), torch.zeros(3, 2)).backward()
    optimizer.step()
"""


def test_run_as_torch_with_a_schedule(tmp_path):
    (tmp_path / "plain_torch.py").write_text(TORCH_SCRIPT)
    ended = run_mtprof("--as-torch", "--schedule", "1,1,2,1", "-q", "plain_torch.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    counts = {row.key: row.count for row in load(str(tmp_path / "plain_torch.mtp")).key_averages()}
    assert counts["Optimizer.step#SGD.step"] == 2
    assert counts["aten::linear"] == 2


@pytest.mark.parametrize("schedule", [(), ("--schedule", "1,0,1,1")])
def test_run_records_no_frame_of_its_own(tmp_path, schedule):
    (tmp_path / "script.py").write_text(TORCH_SCRIPT)
    assert run_mtprof("-q", "--stack", "--as-torch", *schedule, "-o", "out.mtp", "script.py", cwd=tmp_path).returncode == 0
    store = load(tmp_path / "out.mtp").store
    outermost = {store.names[name].partition("(")[0] for name in store.name[(store.parent < 0) & (store.kind != observer.STEP)]}
    assert outermost == {"script.py"}
    assert all(stack[-1].startswith("script.py(") for stack in store.stacks if stack)


def test_run_a_module_and_other_outputs(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "__init__.py").write_text("")
    (tmp_path / "there" / "prog.py").write_text(SCRIPT)
    for name in ("trace.json", "page.html"):
        ended = run_mtprof("-q", "-o", name, "-m", "there.prog", "x", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("missing.py",), 2, "there is no file"),
        (("-o", "nowhere/out.mtp", "script.py"), 3, "there is no folder"),
        (("-o", "folder.mtp", "script.py"), 3, "mtprof run: 'folder.mtp': cannot write a file in place of the folder\n"),
        (("--schedule", "1,2", "script.py"), 2, "is not four numbers wait,warmup,active,repeat, such as 2,2,10,1 (see"),
        (
            ("--schedule", "wait=1,2,3,4", "script.py"),
            2,
            "is not four numbers wait,warmup,active,repeat, such as 2,2,10,1 (see",
        ),
    ],
)
def test_run_says_what_is_wrong_before_it_runs(tmp_path, args, code, text):
    (tmp_path / "script.py").write_text("print('ran')")
    (tmp_path / "folder.mtp").mkdir()
    ended = run_mtprof(*args, cwd=tmp_path)
    assert ended.returncode == code
    assert text in ended.stderr
    assert "ran" not in ended.stdout
    assert "Traceback" not in ended.stderr


def test_demo(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2.profiler", "demo", "-o", "demo"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert sorted(os.listdir(tmp_path / "demo")) == ["profile.html", "profile.json.gz", "profile.mtp"]
    assert "Optimizer.step#AdamW.step" in {row.key for row in load(str(tmp_path / "demo" / "profile.mtp")).key_averages()}
