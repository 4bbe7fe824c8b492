"""Views of calls from the inside and around one op, addresses that keep what is shown, counters, and paper."""

from __future__ import annotations

import re

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed").expect


def branch_rows(page):
    """The outermost rows of the call tree: name and total as shown."""
    return page.eval_on_selector_all(
        "#section-calls tbody tr[data-node][aria-level='1']",
        "rows => rows.map((row) => [row.querySelector('th').textContent, row.cells[3].textContent])",
    )


def test_from_the_inside_each_name_has_its_self_time(open_page, report, profiled):
    page = open_page(report, "calls?view=callers")
    top = max(profiled.key_averages(), key=lambda row: row.self_cpu_time_total)
    name, total = branch_rows(page)[0]
    digits = float(re.match(r"[\d.]+", total)[0])
    scale = {"µs": 1, "ms": 1000, "s": 1e6}[total.split()[1]]
    assert name == top.key and digits * scale == pytest.approx(top.self_cpu_time_total, rel=0.01)


def test_around_one_op_stand_its_callers_and_what_it_called(open_page, report):
    page = open_page(report, "calls?around=aten%3A%3Alinear")
    expect(page.locator("#section-calls .callers")).to_be_visible()
    assert [name for name, _ in branch_rows(page)] == ["aten::linear"]
    page.click("#section-calls button:has-text('Show all calls')")
    expect(page.locator("#section-calls .callers")).to_be_hidden()
    assert "around" not in page.url
    # From a node of the graph: zoom to it, then ask for what is around it.
    page.focus("#section-calls .flame-host:not(.callers) canvas")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.click("#section-calls button:has-text('Callers and callees of')")
    assert "around=" in page.url


@pytest.mark.parametrize(
    "section, act, wanted",
    [
        (
            "operators",
            lambda page: page.select_option("#section-operators label:has-text('Group by') select", "shape"),
            "by=shape",
        ),
        ("operators", lambda page: page.fill("#section-operators input[type=search]", "mm"), "q=mm"),
        ("calls", lambda page: page.select_option("#section-calls label:has-text('View') select", "callers"), "view=callers"),
        ("roofline", lambda page: page.select_option("#section-roofline select", "module"), "by=module"),
        ("timeline", lambda page: (page.focus("#timeline-canvas"), page.keyboard.press("w")), "from="),
        ("source", lambda page: page.click("#section-source .hot-lines button >> nth=0"), "line="),
    ],
)
def test_the_address_keeps_what_is_shown(open_page, report, section, act, wanted):
    page = open_page(report, section)
    act(page)
    page.wait_for_function("(text) => location.hash.includes(text)", arg=wanted)
    again = open_page(report, page.url.split("#")[1])
    again.wait_for_timeout(200)
    assert again.url.split("#")[1] == page.url.split("#")[1]
    assert (
        again.inner_text(f"#section-{section} [role=status] >> nth=0")
        == page.inner_text(f"#section-{section} [role=status] >> nth=0")
        if page.locator(f"#section-{section} [role=status]").count()
        else True
    )


def test_memory_is_a_lane_of_the_timeline(open_page, report):
    page = open_page(report, "timeline")
    assert "Memory in use, CPU" in page.get_attribute("#section-timeline canvas.counter", "aria-label")


def test_paper_has_every_section_whole(open_page, report):
    page = open_page(report, "overview")
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 7
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    visible = page.eval_on_selector_all("main > section", "all => all.filter((one) => !one.hidden).map((one) => one.id)")
    assert visible == page.eval_on_selector_all("#nav a", "all => all.map((one) => `section-${one.dataset.section}`)")
    assert page.locator("#section-operators .more button").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main > section:not([hidden])").count() == 1
