"""Tables of the page: heads that stay in sight, and self times without what recording cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.analysis.overhead import Calibration, estimate
from mindtorch_v2.profiler.report import data, html
from mindtorch_v2.profiler.store import tree
from mindtorch_v2.profiler.store.store import EventStore

pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")

COST = Calibration(op=30.0, scope=50.0, python=20.0, inside=10.0)


@pytest.fixture
def long_report(tmp_path) -> Any:
    """Two hundred ops with names that need room."""
    rows = [{"name": f"aten::a_name_that_is_long_{n}", "start": 1000 * n, "end": 1000 * n + 900} for n in range(200)]
    html.export(EventStore.from_rows(rows), tmp_path / "long.html")
    return tmp_path / "long.html"


def place(page: Any, selector: str) -> dict[str, float]:
    return page.locator(selector).first.bounding_box()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_head_stays_while_rows_pass(open_page, long_report, width, scheme):
    page = open_page(long_report, "operators", width=width, height=740, color_scheme=scheme)
    wrap, head = "#section-operators .table-wrap", "#section-operators thead th:nth-child(2)"
    assert page.eval_on_selector(wrap, "box => box.classList.contains('fits')") == (width == 1280)
    page.locator("#section-operators tbody tr").nth(80).scroll_into_view_if_needed()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    top, row = place(page, ".top"), page.locator("#section-operators tbody tr").nth(80).bounding_box()
    at = place(page, head)
    assert top["y"] == 0 and at["y"] >= top["height"] - 2  # below the page's own head
    assert at["y"] + at["height"] <= row["y"] + 1 and row["y"] + row["height"] <= 741  # and above the row
    middle = [at["x"] + at["width"] / 2, at["y"] + at["height"] / 2]
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('thead') !== null", middle)
    assert page.evaluate(f"getComputedStyle(document.querySelector({head!r})).backgroundColor") not in (
        "rgba(0, 0, 0, 0)",
        "transparent",
    )


def test_the_first_column_stays_on_a_narrow_screen(open_page, long_report):
    page = open_page(long_report, "operators", width=390, height=740)
    before = place(page, "#section-operators tbody th")["x"]
    page.eval_on_selector("#section-operators .table-wrap", "box => { box.scrollLeft = 200; }")
    assert place(page, "#section-operators tbody th")["x"] == before
    assert place(page, "#section-operators tbody td")["x"] < before + 100


@pytest.mark.parametrize("section", ["operators", "calls", "memory", "modules"])
def test_a_table_that_scrolls_in_itself_is_seen_whole(open_page, report, section):
    """At the end of the page its head is still below the page's own."""
    page = open_page(report, section, width=390, height=600)
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    top = place(page, ".top")
    assert place(page, f"#section-{section} .table-wrap")["y"] >= top["height"]


def nested() -> EventStore:
    """Rows of which some are not shown: a namesake inside its parent."""
    rows = [
        {"name": "aten::inner", "start": 1200, "end": 1300},
        {"name": "aten::twice", "start": 1100, "end": 1400},
        {"name": "aten::twice", "start": 1000, "end": 1500},
        {"name": "aten::leaf", "start": 1600, "end": 1605},
        {"name": "aten::outer", "start": 900, "end": 2000},
    ]
    return EventStore.from_rows(rows)


def test_the_cost_of_rows_that_are_not_shown_goes_to_those_above():
    store = nested()
    cost = estimate(store, COST)
    assert len(store.visible) == 4 < len(store)
    taken = dict(zip((store.names[at] for at in store.visible.name), data.self_cost(store, cost.self_ns), strict=True))
    # Ten inside of each event, and twenty more in its parent; the leaf of five nanoseconds has not more to give.
    assert taken == {"aten::outer": 10 + 20 + 25, "aten::twice": 10 + 20 + 10 + 20, "aten::inner": 10, "aten::leaf": 5}
    assert store.visible.self_ns.sum() - sum(taken.values()) == cost.self_ns.sum()


def test_corrected_times_are_those_of_the_overhead(open_page, profiled, report):
    page = open_page(report, "operators")
    while page.locator("#section-operators .more button").count():
        page.click("#section-operators .more button")
    read = (
        "rows => rows.map((row) => [row.querySelector('[data-key=name]').textContent, "
        "row.querySelector('[data-key=corrected]').dataset.value])"
    )
    displayed = {name: float(value) for name, value in page.eval_on_selector_all("#section-operators tbody tr", read)}
    store, cost = profiled.profiler.store, profiled.overhead()
    by_label = tree.sums(store.label, np.asarray(cost.self_ns), len(store.labels))
    expected = {store.labels[at]: float(by_label[at]) for at in np.unique(store.visible_with_first_uses.label)}
    assert displayed == expected and sum(displayed.values()) < store.self_ns.sum()


def test_there_is_no_such_column_where_the_cost_is_not_known(open_page, profiled, tmp_path):
    profiled.export_chrome_trace(str(tmp_path / "trace.json"))
    load(tmp_path / "trace.json").export_html(tmp_path / "trace.html")
    page = open_page(tmp_path / "trace.html", "operators")
    assert page.locator("#section-operators [data-key=self]").count() > 10
    assert page.locator("#section-operators [data-key=corrected]").count() == 0
    assert "Corrected" not in page.inner_text("#section-operators")


def test_the_cost_takes_little_room(million):
    cost = estimate(million, COST)
    column = next(column for column in data.columns(million, None, cost) if column.name == "self_cost")
    assert len(column.text) < 0.6 * len(million)
