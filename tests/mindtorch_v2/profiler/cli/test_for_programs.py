"""What programs read: --json of every command that answers a question, and comparisons in the forms of CI systems."""

from __future__ import annotations

import json
import os
from xml.etree import ElementTree

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
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
    assert all(line.startswith(("::error", "::notice")) for line in lines) and any("%25" in line for line in lines)


def test_json_names_what_is_over_the_limit(capsys, sides):
    for option in (["--json"], ["--format", "json"]):
        figures = json.loads(answer(capsys, "diff", *sides, *option, "--fail-op-over", "50%")[1])
        assert figures["over_limit"] == ["aten::a|*b*"] and figures["steps"] == {"a": 10, "b": 10}


def test_a_page_is_opened_on_request(capsys, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or len(opened) == 1)
    page = tmp_path / "page.html"
    assert answer(capsys, "report", TRACE, "-o", page, "--open")[0] == 0
    assert opened == [page.as_uri()]
    assert answer(capsys, "report", TRACE, "-o", page, "--open")[0] == 3  # no browser
