"""The section about devices in a browser."""

from __future__ import annotations

import os

import ascend_folders
import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.analysis.device.answer import device_answer
from mindtorch_v2.profiler.report.devices import device_table
from mindtorch_v2.profiler.report.html import export

expect = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed").expect

TRACE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "gpu_by_hand.json")
ROWS = (
    "rows => rows.map((row) => Object.fromEntries([...row.cells].map((cell) => "
    "[cell.dataset.key, cell.dataset.value ?? cell.textContent])))"
)


def rows(page, caption):
    return page.eval_on_selector_all(f"#section-device [aria-label='{caption}, table'] tbody tr", ROWS)


def test_figures_are_those_of_the_analysis(open_page, tmp_path):
    load(TRACE).export_html(tmp_path / "gpu.html")
    page = open_page(tmp_path / "gpu.html", "device")
    wanted = device_answer(load(TRACE).store)
    kernels = [
        (row["name"], int(row["total_ns"]), row["grid"].replace("\u00a0×\u00a0", ","), row["op"])
        for row in rows(page, "Kernels")
    ]
    assert kernels == [
        (group["name"], group["total_ns"], ",".join(map(str, group["grid"])), group["op"]) for group in wanted["kernels"]
    ]
    [step] = rows(page, "Steps by what they spent their time on")
    known = wanted["steps"][0]
    assert int(step["copy_ns"]) == known["copy_ns"] + known["fill_ns"] > known["copy_ns"]
    parts = [int(value) for key, value in step.items() if key.endswith("_ns") and key != "duration_ns"]
    assert sum(parts) == int(step["duration_ns"]) == known["duration_ns"]
    parts = ("duration_ns", "computing_ns", "communication_ns", "not_overlapped_ns", "free_ns", "copying_ns")
    [step] = rows(page, "Computing and communication by step")
    assert [int(step[part]) for part in parts] == [wanted["overlap"][0][part] for part in parts]
    assert {row["name"] for row in rows(page, "Copies and fills")} == {group["name"] for group in wanted["copies"]}
    assert [int(row["launches"]) for row in rows(page, "Launches by stream")] == [3, 1]
    first = page.eval_on_selector_all("#section-device thead tr", "rows => rows.map((row) => row.cells[0].className)")
    assert len(first) == 6 and not any("number" in classes for classes in first)  # that column has all the room that is left
    text = page.inner_text("#section-device")
    assert "NVIDIA A100" in text and "The host is the limit" in text


def test_memory_of_a_device_is_in_the_table_of_operators(open_page, tmp_path):
    load(ascend_folders.text_folder(tmp_path / "x_ascend_pt")).export_html(tmp_path / "x.html")
    page = open_page(tmp_path / "x.html", "operators")
    titles = page.eval_on_selector_all("#section-operators thead th", "cells => cells.map((cell) => cell.textContent)")
    assert [title for title in titles if "emory" in title] == ["Memory", "Self memory"]
    linear = page.locator("#section-operators tbody tr", has_text="aten::linear")
    assert linear.locator("[data-key=self_device_memory]").get_attribute("data-value") == "2048"


def test_a_search_is_kept_in_the_address(open_page, tmp_path):
    load(TRACE).export_html(tmp_path / "gpu.html")
    page = open_page(tmp_path / "gpu.html", "device?q=splitK")
    assert [row["name"] for row in rows(page, "Kernels")] == ["splitKreduce_kernel"]
    page.fill("#section-device input[type=search]", "sgemm")
    expect(page.locator("#section-device [aria-label='Kernels, table'] tbody tr")).to_contain_text("ampere_sgemm")
    assert "q=sgemm" in page.url


def test_names_are_no_markup(open_page, tmp_path, device_store):
    export(device_store, tmp_path / "device.html")
    page = open_page(tmp_path / "device.html", "device")
    [kernel] = rows(page, "Kernels")
    assert (kernel["name"], kernel["calls"], kernel["op"][:4]) == ("gemm", "2", "<img")


def test_without_a_device_there_is_no_section(profiled):
    assert device_table(profiled._recording()) is None
