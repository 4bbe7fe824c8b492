"""What a mouse can do with charts and tables, keys can: with one stop for Tab, a name, a mark that is seen."""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_v2.profiler.report import html
from mindtorch_v2.profiler.store.store import EventStore

expect = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed").expect


def active(page: Any, script: str) -> Any:
    return page.evaluate(f"((one) => {script})(document.activeElement)")


def tab_to(page: Any, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if active(page, f"one.matches({selector!r})"):
            return
    raise AssertionError(f"Tab does not come to {selector}")


def pixels(page: Any, selector: str) -> str:
    """What a canvas shows."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.eval_on_selector(selector, "canvas => canvas.toDataURL()")


def test_steps_are_read_marked_and_opened(open_page, report, profiled):
    page = open_page(report)
    bare = pixels(page, "#step-canvas")
    tab_to(page, "#step-canvas")
    assert active(page, "one.getAttribute('role')") == "slider"
    assert active(page, "one.getAttribute('aria-label')").startswith("Time of 3 steps")
    said, shown = [], [bare]
    for key in ("ArrowLeft", "ArrowRight", "ArrowRight", "ArrowRight", "Home", "End", "ArrowLeft"):
        page.keyboard.press(key)
        said.append(active(page, "one.getAttribute('aria-valuetext')").split(",")[0].removeprefix("ProfilerStep#"))
        shown.append(pixels(page, "#step-canvas"))
    assert said == ["1", "2", "3", "3", "1", "3", "2"]
    assert len(set(shown)) == 4  # nothing is marked at first, then each of the three in turn
    assert page.inner_text(".tip").startswith("ProfilerStep#2")
    page.keyboard.press("Enter")
    assert page.inner_text("#nav [aria-current=page]") == "Timeline"
    store = profiled.profiler.store
    step = next(row for row in range(len(store)) if store.names[store.name[row]] == "ProfilerStep#2")
    begin, end = active(page, "[one.dataset.from, one.dataset.to]")  # the timeline has the focus
    assert float(end) - float(begin) == pytest.approx(1.06 * int(store.duration[step]), rel=0.01)
    assert not page.is_visible(".tip")


def test_the_mark_goes_with_the_focus(open_page, report):
    page = open_page(report)
    bare = pixels(page, "#step-canvas")
    tab_to(page, "#step-canvas")
    page.keyboard.press("ArrowRight")
    assert pixels(page, "#step-canvas") != bare
    page.keyboard.press("Tab")
    assert pixels(page, "#step-canvas") == bare and not page.is_visible(".tip")


def test_cells_of_the_flame_graph_are_told_as_one_goes(open_page, report):
    page = open_page(report, "calls")
    tab_to(page, "#section-calls canvas")
    said = "#section-calls .flame-host [aria-live=polite]"
    names = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        names.append(page.text_content(said).split(", ")[0])
        assert page.inner_text(".tip").startswith(names[-1])
    assert names[0] == names[2] != names[1] and names[3] == names[4] == "All"
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    assert page.locator("#section-calls .crumbs button").count() == 2
    page.keyboard.press("Tab")
    assert not page.is_visible(".tip")


def test_what_is_too_narrow_to_be_drawn_is_no_place_to_go(open_page, tmp_path):
    rows = [
        {"name": name, "start": at, "end": at + size}
        for name, at, size in (("wide", 0, 10**9), ("less wide", 10**9, 10**8), ("too narrow", 2 * 10**9, 10))
    ]
    html.export(EventStore.from_rows(rows), tmp_path / "page.html")
    page = open_page(tmp_path / "page.html", "calls")
    tab_to(page, "#section-calls canvas")
    names = []
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        names.append(page.text_content("#section-calls .flame-host [aria-live=polite]").split(", ")[0])
    assert names == ["wide", "less wide", "less wide", "wide"]


@pytest.mark.parametrize("section", ["calls", "modules"])
def test_branches_of_a_tree(open_page, report, section):
    page = open_page(report, section)
    row = f"#section-{section} tbody tr"
    tab_to(page, row)
    assert page.locator(f"{row}[tabindex='0']").count() == 1
    page.keyboard.press("Home")
    count, level = page.locator(row).count(), "Number(one.getAttribute('aria-level'))"
    assert active(page, level) == 1
    page.keyboard.press("ArrowLeft")  # closes
    assert active(page, "one.getAttribute('aria-expanded')") == "false" and page.locator(row).count() < count
    page.keyboard.press("ArrowRight")  # opens
    page.keyboard.press("ArrowRight")  # goes in
    assert active(page, level) == 2
    page.keyboard.press("ArrowLeft" if active(page, "one.getAttribute('aria-expanded')") != "true" else "ArrowUp")
    assert active(page, level) == 1
    page.keyboard.press("End")
    last = active(page, "one.textContent")
    assert last == page.locator(row).last.text_content()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert active(page, "one.textContent") == last  # one comes back to where one was


def test_rows_of_a_table(open_page, report):
    page = open_page(report, "operators")
    tab_to(page, "#section-operators tbody tr")
    names = page.locator("#section-operators tbody [data-key=name]").all_inner_texts()
    for key, name in (("ArrowDown", names[1]), ("End", names[-1]), ("ArrowUp", names[-2]), ("Home", names[0])):
        page.keyboard.press(key)
        assert active(page, "one.cells[0].innerText") == name
    page.keyboard.press("Enter")
    assert page.is_visible(".group-details")
    page.keyboard.press("ArrowDown")
    assert active(page, "one.cells[0].innerText") == names[1]  # not the open row's details
    plain = page.evaluate("getComputedStyle(document.querySelector('#section-operators tbody tr:last-child td')).boxShadow")
    assert active(page, "getComputedStyle(one.cells[1]).boxShadow") != plain == "none"


def test_moments_of_the_memory_chart(open_page, report):
    page = open_page(report, "memory")
    tab_to(page, "#memory-canvas")
    section = page.locator("#section-memory")
    expect(section).to_contain_text("At the peak")
    page.keyboard.press("[")
    expect(section).to_contain_text("At the chosen moment")
    earlier = section.text_content()
    page.keyboard.press("]")  # to the next change that is a pixel away: the peak, or one beyond it
    expect(section).not_to_have_text(earlier)
    for _ in range(60):  # to the moment before anything happened, where it stays
        for _ in range(20):
            page.keyboard.press("[")
        if "At the chosen moment, 0:" in section.text_content():
            break
    expect(section).to_contain_text("At the chosen moment, 0:")
