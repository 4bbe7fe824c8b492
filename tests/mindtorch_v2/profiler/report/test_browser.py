"""The page in a browser, opened from disk with the network off."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.report import html
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.event_list import EventList

expect = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed").expect

SECTIONS = ("overview", "operators", "calls", "timeline", "memory", "modules")
HOSTILE = "<img src=x onerror=alert(1)>"
NUMBERS = ("count", "self", "total", "self_memory", "memory", "flops")


@pytest.fixture
def device_report(device_store, tmp_path) -> Path:
    path = tmp_path / "device.html"
    finding = {
        "rule": "rule",
        "title": HOSTILE,
        "detail": "because",
        "evidence": ("seen",),
        "where": "main.py(2)",
        "gain_ns": 1_000_000,
        "share": 0.5,
    }
    html.export(device_store, path, title=HOSTILE, findings=[finding])
    return path


def go(page: Any, section: str) -> None:
    page.click(f'#nav a[data-section="{section}"]')
    page.wait_for_selector(f"#section-{section}:visible")


def view_of(page: Any) -> tuple[float, float]:
    data = page.eval_on_selector("#timeline-canvas", "canvas => [canvas.dataset.from, canvas.dataset.to]")
    return float(data[0]), float(data[1])


def frame(page: Any) -> None:
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def operator_rows(page: Any) -> list[dict[str, Any]]:
    """All rows of the operator table: names as shown and the numbers behind the cells."""
    while page.locator("#section-operators .more button").count():
        page.click("#section-operators .more button")
    cells = "[...row.cells].map((cell) => [cell.dataset.key, cell.dataset.value ?? cell.textContent])"
    rows: list[dict[str, Any]] = page.eval_on_selector_all(
        "#section-operators tbody tr", f"rows => rows.map((row) => Object.fromEntries({cells}))"
    )
    return rows


def values_of(page: Any, selector: str, key: str) -> dict[str, float]:
    """The number behind each element of a list or table, by what `key` (JavaScript on the element) says."""
    pairs = page.eval_on_selector_all(selector, f"all => all.map((one) => [{key}, Number(one.dataset.value)])")
    return dict(pairs)


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (360, "dark")])
def test_every_section_opens_and_none_is_wider_than_the_screen(open_page, report, tmp_path, width, scheme):
    page = open_page(report, width=width, height=740, color_scheme=scheme)
    assert page.text_content("h1") == "Three steps"
    for section in SECTIONS:
        go(page, section)
        frame(page)
        assert len(page.inner_text(f"#section-{section}")) > 80
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert len(page.screenshot(path=tmp_path / f"{section}.png")) > 5000


@pytest.mark.parametrize("count", [7, 8, 9, 10])
def test_no_figure_of_the_overview_has_a_row_of_its_own(open_page, report, count):
    page = open_page(report, width=1280, height=740)
    tops = page.eval_on_selector(
        "#section-overview .cards",
        """(cards, count) => {
            while (cards.children.length > count) cards.lastChild.remove();
            while (cards.children.length < count) cards.append(cards.firstChild.cloneNode(true));
            return [...cards.children].map((card) => card.getBoundingClientRect().top);
        }""",
        count,
    )
    rows = [tops.count(top) for top in sorted(set(tops))]
    assert rows == {7: [7], 8: [4, 4], 9: [5, 4], 10: [5, 5]}[count]


@pytest.mark.parametrize("width", [1280, 1000, 800])
def test_the_widest_figure_fits_its_card(open_page, report, width):
    page = open_page(report, width=width, height=740)
    inside = page.eval_on_selector_all(
        "#section-overview .cards .figure",
        """(figures) => figures.map((figure) => {
            figure.textContent = "10.72 MiB";
            const text = document.createRange();
            text.selectNodeContents(figure);
            return text.getBoundingClientRect().right <= figure.parentElement.getBoundingClientRect().right - 14;
        })""",
    )
    assert inside and all(inside)


@pytest.mark.parametrize(
    "grouping, arguments",
    [
        ("name", {}),
        ("shape", {"group_by_input_shape": True}),
        ("line", {"group_by_stack_n": 1}),
        ("stack", {"group_by_stack_n": 5}),
    ],
)
def test_figures_are_those_of_key_averages(open_page, report, profiled, grouping, arguments):
    page = open_page(report, "operators")
    page.select_option("#section-operators .toolbar label:has-text('Group by') select", grouping)
    rows = [row for row in operator_rows(page) if row["name"] != "first use of ops"]  # no event of torch
    shown = sorted((row["name"], *(round(float(row[key])) for key in NUMBERS)) for row in rows)
    assert shown == sorted(
        (
            row.key,
            row.count,
            round(row.self_cpu_time_total * 1000),
            round(row.cpu_time_total * 1000),
            row.self_cpu_memory_usage,
            row.cpu_memory_usage,
            row.flops,
        )
        for row in profiled.key_averages(**arguments)
    )


def test_shares_and_averages_follow_from_them(open_page, report, profiled):
    page = open_page(report, "operators")
    wanted = max(profiled.key_averages(), key=lambda row: row.self_cpu_time_total)
    rows = page.locator("#section-operators tbody tr")
    first = rows.filter(has_not_text="first use of ops").first
    assert first.locator("[data-key=name]").inner_text() == wanted.key
    assert float(first.locator("[data-key=average]").get_attribute("data-value")) == pytest.approx(wanted.cpu_time * 1000)
    share = 100 * wanted.self_cpu_time_total / profiled.events().self_cpu_time_total
    assert first.locator("[data-key=self_share]").inner_text() == f"{share:.1f} %"


def test_times_on_a_device_are_those_of_key_averages(open_page, device_report, device_store):
    rows = operator_rows(open_page(device_report, "operators"))
    assert sorted((row["name"], float(row["self_device"]), float(row["device"])) for row in rows) == sorted(
        (row.key, row.self_device_time_total * 1000, row.device_time_total * 1000)
        for row in EventList.from_store(device_store).key_averages()
    )


def test_sorting_and_filtering(open_page, report):
    page = open_page(report, "operators")
    for _ in range(2):
        page.click("#section-operators th[data-key=count] button")
        counts = [int(row["count"]) for row in operator_rows(page)]
        down = page.get_attribute("#section-operators th[data-key=count]", "aria-sort") == "descending"
        assert counts == sorted(counts, reverse=down)
    assert not down  # the second click turns it round
    page.click("#section-operators th[data-key=name] button")
    names = [row["name"] for row in operator_rows(page)]
    assert names == sorted(names)
    page.fill("#section-operators input[type=search]", "MM")
    rows = page.locator("#section-operators tbody tr")
    expect(rows.first).to_contain_text(re.compile("mm", re.IGNORECASE))
    assert {"aten::addmm", "aten::mm"} <= {row["name"] for row in operator_rows(page)}
    page.fill("#section-operators input[type=search]", "/^aten::(add)?mm$/")
    expect(rows).to_have_count(2)
    page.select_option("#section-operators .toolbar label:has-text('Show') select", "ranges")
    assert operator_rows(page) == []
    assert page.inner_text("#section-operators .more") == "Nothing matches."


def test_a_row_opens_and_leads_to_its_longest_call(open_page, report, profiled):
    page = open_page(report, "operators")
    page.fill("#section-operators input[type=search]", "/^aten::addmm$/")
    expect(page.locator("#section-operators tbody tr")).to_have_count(1)
    page.focus("#section-operators tbody tr")
    page.keyboard.press("Enter")
    assert "Called from" in page.inner_text(".group-details") and "×" in page.inner_text(".group-details")
    page.click("text=Longest call in the timeline")
    longest = max(event.time_range.elapsed_us() for event in profiled.events() if event.name == "aten::addmm")
    details = page.inner_text(".side")
    assert (details.startswith("aten::addmm") and "Sequential.0" in details) or "Sequential.2" in details
    begin, end = view_of(page)
    assert (end - begin) == pytest.approx(5 * longest * 1000, rel=0.01)


def test_the_flame_graph_zooms_searches_and_changes_its_measure(open_page, report):
    page = open_page(report, "calls")
    crumbs = page.locator("#section-calls .crumbs button")
    assert crumbs.all_inner_texts() == ["All"]
    page.mouse.click(*point(page, "#section-calls canvas", 0.3, 3.5 * 22))
    assert crumbs.count() == 4  # the fourth row holds nodes of depth three
    zoomed = crumbs.all_inner_texts()
    page.keyboard.press("Escape")
    assert crumbs.all_inner_texts() == zoomed[:-1]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert crumbs.count() == 4
    crumbs.first.click()
    assert crumbs.all_inner_texts() == ["All"]
    page.fill("#section-calls input[type=search]", "addmm")
    expect(page.locator("#section-calls [role=status]")).to_have_text(re.compile(r"^\d+ places match, .* in all \(\d"))
    before = page.inner_text("#section-calls tbody tr:first-child")
    page.select_option("#section-calls .toolbar label:has-text('Size by') select", "memory")
    assert "iB" in page.inner_text("#section-calls [role=status]")
    assert page.inner_text("#section-calls tbody tr:first-child") != before
    page.uncheck("#section-calls .toolbar input[type=checkbox]")
    assert "nn.Module" not in page.inner_text("#section-calls tbody")


def point(page: Any, selector: str, across: float, down: float) -> tuple[float, float]:
    """A place on an element: a share of its width, pixels from its top."""
    page.locator(selector).last.scroll_into_view_if_needed()
    box = page.locator(selector).last.bounding_box()
    return box["x"] + across * box["width"], box["y"] + down


def test_the_timeline_follows_wheel_drag_and_keys(open_page, report):
    page = open_page(report, "timeline")
    whole = view_of(page)
    x, y = point(page, "#timeline-canvas", 0.5, 100)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    frame(page)
    near = view_of(page)
    assert near[1] - near[0] < 0.6 * (whole[1] - whole[0])
    assert near[0] < sum(whole) / 2 < near[1]  # what was under the pointer stays there
    page.mouse.down()
    page.mouse.move(x - 120, y, steps=3)
    page.mouse.up()
    moved = view_of(page)
    assert moved[0] > near[0] and moved[1] - moved[0] == pytest.approx(near[1] - near[0])
    page.focus("#timeline-canvas")
    for key, changed in (("a", -1), ("ArrowRight", 1), ("d", 1), ("ArrowLeft", -1)):
        before = view_of(page)
        page.keyboard.press(key)
        assert math.copysign(1, view_of(page)[0] - before[0]) == changed
    for key, factor in (("w", 0.75), ("s", 1 / 0.75)):
        before = view_of(page)
        page.keyboard.press(key)
        after = view_of(page)
        assert (after[1] - after[0]) / (before[1] - before[0]) == pytest.approx(factor)
    page.keyboard.press("0")
    assert view_of(page) == pytest.approx(whole)


def test_two_fingers_zoom_and_one_moves(open_page, report):
    page = open_page(report, "timeline", width=390, height=800, has_touch=True)
    whole = view_of(page)
    x, y = point(page, "#timeline-canvas", 0.5, 120)
    touch = page.context.new_cdp_session(page)

    def fingers(kind: str, *places: float) -> None:
        points = [{"x": at, "y": y, "id": number} for number, at in enumerate(places)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", x - 30, x + 30)
    for apart in (45, 60, 90, 120):
        fingers("touchMove", x - apart, x + apart)
    fingers("touchEnd")
    frame(page)
    near = view_of(page)
    assert near[1] - near[0] < 0.5 * (whole[1] - whole[0])
    fingers("touchStart", x)
    for by in (20, 40, 60, 80):
        fingers("touchMove", x - by)
    fingers("touchEnd")
    assert view_of(page)[0] > near[0]


def test_events_of_the_timeline_are_found_chosen_and_measured(open_page, device_report):
    page = open_page(device_report, "timeline")
    assert page.inner_text(".side h3") == "Nothing chosen"
    page.fill("#section-timeline input[type=search]", "gemm")
    page.press("#section-timeline input[type=search]", "Enter")
    assert page.inner_text(".side h3") == "gemm"
    details = dict(zip(page.locator(".side dt").all_inner_texts(), page.locator(".side dd").all_inner_texts(), strict=True))
    assert details["Duration"] == "400.0 µs" and details["Start"] == "240.0 µs" and details["Step"] == "ProfilerStep#0"
    assert details["Where"].startswith("CUDA 0") and details["Launched by"] == "cudaLaunchKernel"
    page.click(".side .link >> text=cudaLaunchKernel")
    page.click(f".side .link >> text={HOSTILE}")
    assert "main.py(2): <module>" in page.inner_text(".side .stack")
    page.click(".side .link >> text=MulBackward0")
    assert page.inner_text(".side h3") == "MulBackward0"
    page.focus("#timeline-canvas")
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    assert page.inner_text(".side h3") == "Nothing chosen"
    page.keyboard.down("Shift")
    page.mouse.move(*point(page, "#timeline-canvas", 0.0, 60))
    page.mouse.down()
    page.mouse.move(*point(page, "#timeline-canvas", 0.5, 60), steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert "10 events begin in it" in page.inner_text("#measure")


def test_an_event_under_the_pointer_tells_its_name(open_page, device_report):
    page = open_page(device_report, "timeline")
    page.mouse.move(*point(page, "#timeline-canvas", 0.2, 30 + 22 + 5))
    page.wait_for_selector(".tip:visible")
    assert page.inner_text(".tip").startswith("ProfilerStep#0")


def test_the_theme_changes(open_page, report):
    page = open_page(report)
    color = "getComputedStyle(document.body).backgroundColor"
    swatch = "document.querySelector('#kinds-panel .swatch').style.background"
    light = page.evaluate(color), page.evaluate(swatch)
    page.click("#theme")
    dark = page.evaluate(color), page.evaluate(swatch)
    assert light[0] != dark[0] and light[1] != dark[1]
    page.keyboard.press("t")
    assert (page.evaluate(color), page.evaluate(swatch)) == light


def test_keys_lead_through_the_page(open_page, report):
    page = open_page(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    titles = page.locator("#nav a").all_inner_texts()
    for number, title in enumerate(titles, 1):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(str(number))
        expect(page.locator("#nav [aria-current=page]")).to_have_text(title)
    page.keyboard.press(str(titles.index("Operators") + 1))
    expect(page.locator("#section-operators")).to_be_visible()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("12t")  # letters are letters while one is typing
    assert page.input_value("#section-operators input[type=search]") == "12t"
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    assert "Keyboard and mouse" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_names_stay_text_everywhere(open_page, device_report):
    page = open_page(device_report)
    assert page.text_content("h1") == page.title() == HOSTILE
    for section in (*SECTIONS, "advice"):
        go(page, section)
        frame(page)
        if section in ("operators", "calls", "memory", "modules", "advice"):
            assert HOSTILE in page.inner_text(f"#section-{section}")
        assert page.locator("img").count() == 0
    go(page, "operators")
    page.click("#section-operators tbody tr:has-text('<img')")
    assert page.locator("img").count() == 0


def test_a_thread_that_waits_for_its_backward_pass_is_not_busy_with_python(open_page, tmp_path):
    engine = {"name": "autograd::engine::evaluate_function: MmBackward0", "kind": observer.ENGINE, "thread": 2, "fwd_thread": 1}
    rows = [
        {"name": "aten::mm", "start": 100_000, "end": 200_000, "seq": 0},
        {"name": "ProfilerStep#0", "kind": observer.STEP, "start": 0, "end": 1_000_000},
        {**engine, "start": 300_000, "end": 900_000, "seq": 0},
    ]
    path = tmp_path / "waits.html"
    html.export(EventStore.from_rows(rows), path, title="waits")
    kinds = values_of(open_page(path), "#kinds-panel li", "one.querySelector('.bar-name').textContent")
    assert kinds == {"Forward ops": 100_000, "Backward": 600_000, "Python between ops": 300_000}


def test_overview_says_what_the_device_and_the_loader_did(open_page, device_report):
    page = open_page(device_report)
    assert "2 steps" in page.inner_text("#card-steps")
    assert "46.2 %" in page.inner_text("#card-device")  # 920 of 1990 microseconds on either stream
    assert "200.0 µs" in page.inner_text("#card-loader")
    kinds = values_of(page, "#kinds-panel li", "one.querySelector('.bar-name').textContent")
    assert kinds == {
        "Forward ops": 260_000,
        "Backward": 200_000,
        "Optimizer": 200_000,
        "Data loader": 200_000,
        "Python between ops": 1_300_000,
        "Host calls to a device": 20_000,
        "Device": 1_000_000,
    }


def test_memory_at_its_peak_by_use(open_page, report, profiled):
    page = open_page(report, "memory")
    shown = values_of(page, "#section-memory li[data-category]", "one.dataset.category")
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    for _, action, size, category in profiled._memory_blocks().on_device("cpu"):
        name = category.name if category else "UNKNOWN"
        if action.name != "INCREMENT_VERSION":
            now[name] = now.get(name, 0) + (-size if action.name == "DESTROY" else size)
        if sum(now.values()) > sum(most.values()):
            most = dict(now)
    assert {name: size for name, size in shown.items() if size} == {name: size for name, size in most.items() if size}
    go(page, "overview")
    assert page.inner_text("#card-memory .figure") == f"{sum(most.values()) / 1024:.2f} KiB"
    go(page, "memory")
    page.mouse.click(*point(page, "#memory-canvas", 0.2, 200))
    assert "At the chosen moment" in page.inner_text("#section-memory")
    page.click("text=Go to the peak")
    held = sum(
        float(value)
        for value in page.eval_on_selector_all(
            "#section-memory tbody [data-key=bytes]", "cells => cells.map((cell) => cell.dataset.value)"
        )
    )
    assert held == sum(most.values())


def test_modules_have_the_time_of_their_ops(open_page, report, profiled):
    page = open_page(report, "modules")
    times = values_of(page, "#section-modules tbody td:nth-child(3)", "one.parentElement.dataset.path")
    assert set(times) == {"Sequential", "Sequential.0", "Sequential.1", "Sequential.2"}
    assert times["Sequential"] == pytest.approx(sum(time for path, time in times.items() if path != "Sequential"))
    page.click("#section-modules tbody tr:first-child")
    assert page.locator("#section-modules tbody tr").count() == 1


def test_what_was_not_recorded_is_said(open_page, tmp_path):
    html.export(EventStore.from_rows([{"name": "aten::add", "start": 0, "end": 10}]), tmp_path / "bare.html")
    page = open_page(tmp_path / "bare.html")
    assert "prof.step()" in page.inner_text("#steps-panel")
    assert "Advice" not in page.locator("#nav a").all_inner_texts()
    for section, option in (("memory", "profile_memory"), ("modules", "with_modules"), ("operators", "with_stack")):
        go(page, section)
        assert f"{option}=True" in page.inner_text(f"#section-{section}")


def test_an_empty_recording(open_page, tmp_path):
    html.export(EventStore.from_rows([]), tmp_path / "empty.html")
    page = open_page(tmp_path / "empty.html")
    for section in SECTIONS:
        go(page, section)
    assert "Nothing was recorded" in page.text_content("#section-overview")


def test_a_browser_that_cannot_unpack_says_so(browser, report):
    page = browser.new_page()
    page.add_init_script("delete globalThis.DecompressionStream")
    page.goto(report.as_uri())
    page.wait_for_selector("#status.problem")
    assert "no DecompressionStream" in page.inner_text("#status")
    page.close()


def test_the_page_runs_nothing_but_its_own_script(browser, report):
    page = browser.new_page()
    page.goto(report.as_uri())
    page.wait_for_selector("html[data-ready]")
    refused = page.evaluate("""() => new Promise((done) => {
      document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective), { once: true });
      const script = document.createElement("script");
      script.textContent = "document.title = 'ran'";
      document.body.append(script);
    })""")
    assert refused.startswith("script-src") and page.title() == "Three steps"
    page.close()
