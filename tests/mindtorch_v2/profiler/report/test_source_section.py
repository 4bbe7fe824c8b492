"""The section with the program's code, in a browser."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler.analysis.source.lines import source_lines
from mindtorch_v2.profiler.report import html

expect = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed").expect


def test_figures_are_those_of_the_analysis_and_a_line_opens(open_page, report, profiled):
    page = open_page(report, "source")
    wanted = next(file for file in source_lines(profiled._recording()).files if file.name.endswith("conftest.py"))
    page.select_option("#section-source .toolbar select", wanted.name)
    shown = page.eval_on_selector_all(
        "#section-source tbody tr.opens",
        "rows => rows.map((row) => [row.dataset.line, ...['total_ns', 'self_ns', 'calls', 'bytes']"
        ".map((key) => row.querySelector(`[data-key=${key}]`).dataset.value)].map(Number))",
    )
    assert shown == [
        [line.number, line.total_ns, line.self_ns, line.calls, line.bytes] for _, line in sorted(wanted.lines.items())
    ]
    number = max(wanted.lines.values(), key=lambda line: sum(line.ops.values())).number
    page.click(f"#section-source tr[data-line='{number}']")
    name = next(iter(wanted.lines[number].ops))
    page.click(f"#section-source .line-ops button:has-text('{name}')")
    expect(page.locator("#section-operators input[type=search]")).to_have_value(name)


def test_whole_file_and_search(open_page, report):
    page = open_page(report, "source")
    rows = page.locator("#section-source tbody tr[data-line]")
    few = rows.count()
    page.check("#section-source label:has-text('Whole file') input")
    assert rows.count() > few
    page.fill("#section-source input[type=search]", "optimizer.step()")
    expect(rows.first.locator("th.code")).to_contain_text("optimizer.step()")
    page.click("#section-source .hot-lines button >> nth=0")
    expect(page.locator("#section-source input[type=search]")).to_have_value("")
    expect(page.locator("#section-source tr.opens:focus")).to_have_count(1)


def test_code_is_never_markup(open_page, device_store, tmp_path):
    """A name in a stack that is markup is shown as text; a file that is not here is told."""
    path = tmp_path / "device.html"
    html.export(device_store, path)
    page = open_page(path, "source")
    expect(page.locator("#section-source")).to_contain_text("The file is not here")
    assert page.locator("#section-source img").count() == 0


def test_without_stacks_it_says_what_to_pass(open_page, million, tmp_path):
    path = tmp_path / "plain.html"
    html.export(million._select_rows(range(100)), path)
    expect(open_page(path, "source").locator("#section-source")).to_contain_text("with_stack=True")
