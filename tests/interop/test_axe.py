"""The report in axe-core, the checker of accessibility: no tab breaks a rule, neither in light nor in dark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import load, profile

FOLDER = Path(os.environ.get("INTEROP_FOLDER", "build/interop"))
AXE = FOLDER / "node_modules/axe-core/axe.min.js"


GPU = Path(__file__).parents[1] / "mindtorch_v2/profiler/fixtures/gpu_by_hand.json"


def of_host(path):
    options = dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops"), True)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    with profile(**options) as prof:
        model(torch.randn(8, 16)).square().mean().backward()
    prof.export_html(path)


def of_device(path):
    load(GPU).export_html(path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("write", [of_host, of_device])
def test_no_tab_breaks_a_rule(tmp_path, write, scheme):
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None or not AXE.exists():
        pytest.skip("needs Chromium, and axe-core from npm")
    write(tmp_path / "report.html")
    broken = {}
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        sections = page.eval_on_selector_all("#nav a", "all => all.map((one) => one.dataset.section)")
        page.evaluate(AXE.read_text())
        for section in sections:
            page.click(f'#nav a[data-section="{section}"]')
            page.wait_for_timeout(300)
            found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
            broken[section] = [rule["id"] for rule in found]
        browser.close()
    assert (
        len(sections) >= 8
        and ("device" in sections) == (write is of_device)
        and not {section: rules for section, rules in broken.items() if rules}
    )
