"""Changes as text: percentages up to a factor of three, factors from there on, in every command and page that tells one."""

from __future__ import annotations

import math

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.comparison.diff import diff
from mindtorch_v2.profiler.analysis.comparison.history import Point
from mindtorch_v2.profiler.analysis.findings import relative_change, relative_changes
from mindtorch_v2.profiler.analysis.memory.diff import MemoryChange
from mindtorch_v2.profiler.cli.commands.compare import history as history_command
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.cli.virtual_speedup import Outcome
from mindtorch_v2.profiler.ranks.job_diff import JobChange
from mindtorch_v2.profiler.report import comparison, history
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1, "+0.0%"),
        (2.99, "+199.0%"),
        (3, "3x"),
        (180.34, "180x"),
        (17934.3, "17,900x"),
        (0.34, "-66.0%"),
        (1 / 3, "0.333x"),
        (1 / 180, "0.00556x"),
        (1e-9, "0.000000001x"),
        (0, "0x"),
        (math.inf, "unknown"),
        (math.nan, "unknown"),
    ],
)
def test_one_change(ratio, text):
    assert relative_change(ratio) == text


def test_those_that_stand_together_have_one_form():
    assert relative_changes(2.5, 1.25, 2.75) == ("+150.0%", "+25.0%", "+175.0%")
    assert relative_changes(2.5, 0.5, 5) == ("2.5x", "0.5x", "5x")
    assert relative_changes(1.1, math.inf) == ("+10.0%", "unknown")


def stretched(factor):
    """Ten steps of an op beside thirty others, and the op so many times as long."""
    rows = []
    for step in range(10):
        now = begin = step * 10_000_000
        for number in range(30):
            rows.append({"name": f"aten::op{number}", "start": now, "end": now + 1000 + step})
            now += 1000 + step
        rows.append({"name": "aten::one", "start": now, "end": now + 1000 * factor + step})
        rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": begin, "end": now + 1000 * factor + step})
    return EventStore.from_rows(rows)


def test_a_comparison_of_a_large_change(tmp_path):
    found = diff(stretched(1), stretched(180))
    [change] = found.found
    assert change.moved == "180x" and change.interval.count("x") == 2
    page = tmp_path / "diff.html"
    comparison.export(found, page)
    for text in (found.table(), page.read_text()):
        assert "180x" in text and "6.76x" in text  # the op, and the step
        assert not any(len(word.partition(".")[0]) > 4 for word in text.split() if word.startswith("+"))
    assert found.to_dict()["changes"][0]["relative"] == pytest.approx(180, rel=0.01)
    back = diff(stretched(180), stretched(1))
    assert back.found[0].moved == "0.00557x"


def point(ratio):
    return Point("v2", "a.mtp", 0, 10, 1e6, 1e6, 1e6, 5.0, None, ratio, "slower", "")


def test_every_other_place_that_tells_a_change(capsys, tmp_path):
    history_command._print_table([point(180.0)])
    history.export([point(180.0)], tmp_path / "history.html")
    texts = [
        capsys.readouterr().out,
        (tmp_path / "history.html").read_text(),
        str(MemoryChange("peak", (1,), (180,))),
        str(JobChange("a step", 1.0, 180.0, 180.0, 170.0, 190.0)),
        str(Outcome((10, 10, 10), 1.0, 180.0, 180.0, 170.0, 190.0)),
    ]
    for text in texts:
        assert "180x" in text and "17900" not in text
    assert "170x to 190x" in texts[3] and "170x to 190x" in texts[4]
    assert "interval unknown" in str(JobChange("a step", 1.0, 2.0, 2.0, 0.0, math.inf))
    assert "(new)" in str(MemoryChange("peak", (0,), (180,)))


def test_predictions(capsys, tmp_path):
    path = str(tmp_path / "a.mtp")
    writers.get("saved")(stretched(180), path)
    assert main(["what-if", path, "--op", "aten::one", "--faster", "1.1x", "--faster", "1000x"]) == 0
    _, little, much = capsys.readouterr().out.splitlines()
    assert little.endswith("(-7.8%)") and much.endswith("x)")
