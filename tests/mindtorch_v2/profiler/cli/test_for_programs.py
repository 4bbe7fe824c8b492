"""What programs read: --json of every command that answers a question, and comparisons in the forms of CI systems."""

from __future__ import annotations

import json
import os
import re
import subprocess
from xml.etree import ElementTree

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.cli import command
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore

TRACE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "mlp_everything.json.gz")


def answer(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, capsys.readouterr().out


def test_table(capsys):
    code, out = answer(capsys, "table", TRACE, "--json", "-n", "3", "--sort", "count")
    table = json.loads(out)
    averages = sorted(load(TRACE).key_averages(), key=lambda row: -row.count)
    assert code == 0 and len(table["rows"]) == 3 and table["rows_in_all"] == len(averages)
    assert [row["count"] for row in table["rows"]] == [row.count for row in averages[:3]]
    assert table["overhead_ns"] is None and table["self_cpu_time_total"] > 0


def test_memory(capsys):
    [use] = json.loads(answer(capsys, "memory", TRACE, "--json", "-n", "2")[1])
    assert use["device"] == "cpu" and len(use["holders"]) == 2 < use["holders_in_all"]
    assert use["peak"] >= sum(holder["bytes"] for holder in use["holders"])


def test_flops(capsys):
    code, out = answer(capsys, "flops", TRACE, "--json", "-n", "1")
    figures = json.loads(out)
    assert code == 0 and len(figures["operators"]) == 1 <= figures["operators_in_all"]
    assert figures["operators"][0]["flops"] <= figures["flops"]


@pytest.mark.parametrize(("by", "names"), [("call", ["aten::linear", "aten::mm"]), ("module", ["net", "net.fc"])])
def test_tree(capsys, tmp_path, by, names):
    rows = [
        {"name": "aten::dot", "start": 15, "end": 20, "module": "net.fc"},
        {"name": "aten::mm", "start": 10, "end": 90, "module": "net.fc"},
        {"name": "aten::linear", "start": 0, "end": 100, "module": "net"},
    ]
    writers.get("saved")(EventStore.from_rows(rows), tmp_path / "x.mtp")
    [node] = json.loads(answer(capsys, "tree", tmp_path / "x.mtp", "--by", by, "--json", "--depth", "2")[1])
    [below] = node["children"]
    assert [each.get("path", each.get("name")) for each in (node, below)] == names and below["children"] == []


def test_validate(capsys):
    assert json.loads(answer(capsys, "validate", TRACE, "--json")[1])["errors"] == 0


def test_every_command_has_json():
    assert [name for name in command.names() if "--json" not in command.options(command.load(name))] == ["mcp"]


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (["report", TRACE, "-o", "x.html"], {"events"}),
        (["convert", TRACE, "-o", "x.speedscope.json"], {"events", "format"}),
        (["convert", TRACE, "--to", "ascend", "-o", "x"], {"events", "format"}),
        (["repair", TRACE, "-o", "x.mtp"], {"events", "allocations", "lost", "complete"}),
        (["run", "-q", "-o", "x.mtp", "own.py"], {"events", "steps", "script_code", "why_empty"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_was_written(capsys, tmp_path, monkeypatch, arguments, keys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("import mindtorch_v2\nprint('its own')\nmindtorch_v2.ones(2)\n")
    code, out = answer(capsys, arguments[0], "--json", *arguments[1:])
    told = json.loads(out.splitlines()[-1])
    written = tmp_path / arguments[arguments.index("-o") + 1]
    sizes = [path.stat().st_size for path in (written.rglob("*") if written.is_dir() else [written]) if path.is_file()]
    assert code == 0 and set(told) == {"path", "bytes"} | keys
    assert (told["path"], told["bytes"]) == (str(written), sum(sizes)) and told["events"] > 0


def test_what_was_not_written(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("")
    code, out = answer(capsys, "run", "-q", "--schedule", "1,1,1,1", "--json", "own.py")
    told = json.loads(out)
    assert code == 4 and told["path"] is None and "needs 3 steps" in told["why_empty"]


# ------------------------------------------------------------------------------ comparisons


def steps(path, factor, name="aten::a|*b*"):
    """A recording of ten steps with two ops, of which one takes `factor` times as long."""
    rows, now = [], 0
    for step in range(10):
        begin = now
        for op, length in ((name, int(1000 * factor) + step), ("aten::c", 9000 + step)):
            rows.append({"name": op, "start": now, "end": now + length})
            now += length + 10
        rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": begin, "end": now})
        now += 10
    writers.get("saved")(EventStore.from_rows(rows), path)
    return path


@pytest.fixture
def sides(tmp_path):
    return steps(tmp_path / "a.mtp", 1), steps(tmp_path / "b.mtp", 9)


def test_markdown(capsys, sides):
    code, out = answer(capsys, "diff", *sides, "--format", "markdown", "--fail-op-over", "50%")
    assert code == 1
    heading, *rest = out.splitlines()
    assert heading.startswith("### Step: ")
    [row] = [line for line in rest if line.startswith("| aten::a")]
    assert row.count("**over the limit**") == 1 and "aten::a\\|\\*b\\*" in row
    assert row.replace("\\|", "").count("|") == 7
    assert "No op changed" in answer(capsys, "diff", sides[0], sides[0], "--format", "markdown")[1]


def test_junit(capsys, sides):
    code, out = answer(capsys, "diff", *sides, "--format", "junit", "--fail-op-over", "50%")
    suite = ElementTree.fromstring(out)
    assert code == 1 and suite.get("failures") == "1" and suite.get("tests") == str(len(suite))
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["aten::a|*b*"]
    code, out = answer(capsys, "diff", *sides, "--format", "junit")
    assert code == 0 and ElementTree.fromstring(out).get("failures") == "0"


def test_annotations_of_github(capsys, sides):
    lines = answer(capsys, "diff", *sides, "--format", "github", "--fail-op-over", "50%")[1].splitlines()
    assert next(line for line in lines if line.startswith("::error")).startswith("::error title=aten%3A%3Aa|*b*::")
    assert all(line.startswith(("::error", "::notice")) for line in lines)
    as_percent = answer(capsys, "diff", sides[0], sides[0], "--format", "github")[1]
    assert "%25" in as_percent and "%" not in as_percent.replace("%25", "").replace("%3A", "")


def on_slow_machine(path, ops, one):
    """Ten steps of 30 kinds of op that take so many nanoseconds, and one of another length."""
    rows = []
    for start in range(0, 1_000_000, 100_000):
        names = [(f"aten::op{number}", start + 3000 * number, ops) for number in range(30)]
        names.append(("aten::one", start + 90_000, one))
        rows += [{"name": name, "start": begin, "end": begin + took + start // 100_000} for name, begin, took in names]
        rows.append({"name": f"ProfilerStep#{start // 100_000}", "kind": observer.STEP, "start": start, "end": start + 99_000})
    writers.get("saved")(EventStore.from_rows(rows), path)
    return path


@pytest.mark.parametrize("form", ["text", "markdown", "junit", "github"])
def test_every_form_tells_the_change_that_its_interval_is_of(capsys, tmp_path, form):
    sides = on_slow_machine(tmp_path / "a.mtp", 1000, 1000), on_slow_machine(tmp_path / "b.mtp", 2000, 8000)
    lines = answer(capsys, "diff", *sides, "--format", form)[1].splitlines()
    [line] = [line for line in lines if "1 us" in line and "8 us" in line]
    assert re.search(r"[ (]4x[ ,].*\b3\.98x to 8\.02x", line) and "+" not in line


def test_json_names_what_is_over_the_limit(capsys, sides):
    for option in (["--json"], ["--format", "json"]):
        figures = json.loads(answer(capsys, "diff", *sides, *option, "--fail-op-over", "50%")[1])
        assert figures["over_limit"] == ["aten::a|*b*"] and figures["steps"] == {"a": 10, "b": 10}


def test_the_changes_in_json_are_bounded_and_counted(capsys, tmp_path):
    sides = on_slow_machine(tmp_path / "a.mtp", 1000, 1000), on_slow_machine(tmp_path / "b.mtp", 1000, 8000)
    for limit, count in ((2, 2), (-1, 32)):
        figures = json.loads(answer(capsys, "diff", *sides, "--json", "-n", limit)[1])
        assert (len(figures["changes"]), figures["changes_in_all"]) == (count, 32)
        assert {change["name"] for change in figures["changes"][:2]} == {"aten::one", "(between events)"}


def with_memory(path, size):
    """Ten steps that allocate and free `size` bytes each."""
    rows, memory = [], []
    for step in range(10):
        at = 1000 * step
        rows += [
            {"name": "aten::a", "start": at + 10, "end": at + 90},
            {"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": at, "end": at + 900},
        ]
        memory += [
            {"time": at + 20, "bytes": size, "addr": 1 + step},
            {"time": at + 80, "bytes": -size, "addr": 1 + step},
        ]
    writers.get("saved")(EventStore.from_rows(rows, memory=memory), path)
    return path


@pytest.mark.parametrize(("after", "limit", "code"), [(1000, "5%", 0), (1040, "5%", 0), (1060, "5%", 1), (900, "0%", 0)])
def test_memory_over_a_limit(capsys, tmp_path, after, limit, code):
    paths = [with_memory(tmp_path / "a.mtp", 1000), with_memory(tmp_path / "b.mtp", after)]
    names = ["peak of memory, cpu", "memory allocated in a step"]
    got, out = answer(capsys, "diff", *paths, "--fail-over-memory", limit, "--json")
    figures = json.loads(out)
    assert got == code and figures["over_limit"] == (names if code else [])
    assert figures["memory"] == [{"name": name, "a_bytes": [1000], "b_bytes": [after]} for name in names]
    _, out = answer(capsys, "diff", *paths, "--fail-over-memory", limit, "--format", "github")
    assert out.count("::error") == (2 if code else 0) and "title=peak of memory%2C cpu::peak of memory, cpu: 1000 B" in out
    _, out = answer(capsys, "diff", *paths, "--fail-over-memory", limit, "--format", "junit")
    assert ElementTree.fromstring(out).get("failures") == ("2" if code else "0")
    _, out = answer(capsys, "diff", *paths, "--fail-over-memory", limit, "--format", "markdown")
    assert out.count("Over the limit") == (2 if code else 0)


def test_a_limit_of_memory_needs_memory(capsys, sides):
    assert main(["diff", *map(str, sides), "--fail-over-memory", "5%"]) == 3
    assert "not every recording has memory" in capsys.readouterr().err


# ------------------------------------------------------------------------------ histories


@pytest.fixture
def folder(tmp_path):
    """Three recordings; the last one has an op that takes ninety times as long."""
    for number, factor in enumerate((1, 1, 90)):
        path = steps(tmp_path / f"{number}.mtp", factor, "aten::<b>")
        os.utime(path, ns=(number, number))
    (tmp_path / "notes.txt").touch()
    return tmp_path


def test_a_history(capsys, folder):
    code, out = answer(capsys, "history", folder, "--json", "--html", folder / "trend.html", "--fail")
    told = json.loads(out)
    assert code == 1 and told["recordings_in_all"] == 3
    assert [point["label"] for point in told["recordings"]] == ["0", "1", "2"]
    assert [point["verdict"] for point in told["recordings"]] == ["", "no evidence", "slower"]
    assert told["recordings"][2]["largest"] == "aten::<b>" and told["recordings"][0]["ops"] == 2
    page = (folder / "trend.html").read_text()
    assert "aten::&lt;b&gt;" in page and "<b>" not in page and "<script" not in page and page.count("<circle") == 3
    code, out = answer(capsys, "history", folder, "-n", "2")
    assert code == 0 and [line.split()[0] for line in out.splitlines()[1:]] == ["1", "2"]


def test_a_history_by_commits(capsys, folder, monkeypatch):
    def git(*arguments):
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments]
        return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=True).stdout.strip()

    git("init", "-q")
    git("config", "i18n.logOutputEncoding", "ISO-8859-1")  # of those who read logs in such a terminal
    commits = []
    for number in (2, 0, 1):
        git("commit", "-q", "--allow-empty", "-m", f"größer {number}".encode())
        commits.append(git("rev-parse", "HEAD"))
        (folder / f"{number}.mtp").rename(folder / f"run-{commits[-1][:12]}.mtp")
    monkeypatch.chdir(folder)
    told = json.loads(answer(capsys, "history", folder, "--git", f"{commits[0]}..HEAD", "--json")[1])
    assert [point["label"] for point in told["recordings"]] == [f"{commits[1][:9]} größer 0", f"{commits[2][:9]} größer 1"]
    for revisions, said in (("nothing..HEAD", "git does not know the range"), ("HEAD..HEAD", "none")):
        assert main(["history", str(folder), "--git", revisions]) == 2
        assert said in capsys.readouterr().err or said == "none"


def test_a_history_of_nothing(capsys, tmp_path):
    assert main(["history", str(tmp_path)]) == 2
    assert "there is no recording (.mtp, .json, .json.gz) in" in capsys.readouterr().err


def test_a_page_is_opened_on_request(capsys, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or len(opened) == 1)
    page = tmp_path / "page.html"
    assert answer(capsys, "report", TRACE, "-o", page, "--open")[0] == 0
    assert opened == [page.as_uri()]
    assert answer(capsys, "report", TRACE, "-o", page, "--open")[0] == 3  # no browser
