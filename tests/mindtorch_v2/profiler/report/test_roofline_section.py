"""The roofline in a browser."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler.analysis import ceilings
from mindtorch_v2.profiler.analysis.roofline import roofline

expect = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed").expect


def test_points_are_those_of_the_analysis(open_page, profiled, tmp_path, monkeypatch):
    monkeypatch.setenv("MTPROF_CEILINGS", str(tmp_path / "ceilings.json"))
    ceilings.save(ceilings.Ceilings("my machine", 1.6e9, 1e10, 4e10, 1e11, 5e10, ""), tmp_path / "ceilings.json")
    profiled.export_html(tmp_path / "roofline.html")
    page = open_page(tmp_path / "roofline.html", "roofline")
    store = profiled._recording()
    wanted = roofline(store, store.flops)
    shown = page.eval_on_selector_all(
        "#section-roofline tbody tr",
        "rows => rows.map((row) => [row.querySelector('th').textContent,"
        " ...['time', 'flops', 'bytes'].map((key) => Number(row.querySelector(`[data-key=${key}]`).dataset.value))])",
    )
    assert shown == [[point.name, point.time_ns, point.flops, point.bytes] for point in wanted]
    assert page.locator("#section-roofline circle").count() == sum(point.flops > 0 for point in wanted)
    assert "my machine" in page.inner_text("#section-roofline") and page.locator("#section-roofline .roof").count() == 1
    page.focus("#section-roofline circle >> nth=0")
    page.keyboard.press("Enter")
    expect(page.locator("#section-operators")).to_be_visible()


def test_without_ceilings_it_says_how_to_measure_them(open_page, profiled, tmp_path, monkeypatch):
    monkeypatch.setenv("MTPROF_CEILINGS", str(tmp_path / "none.json"))
    profiled.export_html(tmp_path / "roofline.html")
    page = open_page(tmp_path / "roofline.html", "roofline")
    assert "mtprof ceilings measures them" in page.inner_text("#section-roofline")
    page.select_option("#section-roofline select", "module")
    expect(page.locator("#section-roofline tbody tr").first).to_contain_text("Sequential")
