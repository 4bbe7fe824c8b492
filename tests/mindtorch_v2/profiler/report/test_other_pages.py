"""In a real browser: the page about a running process, and the page of a history."""

from __future__ import annotations

import threading

import mindtorch_v2 as torch
from mindtorch_v2.profiler import listen
from mindtorch_v2.profiler.analysis.comparison.history import Point
from mindtorch_v2.profiler.report.history import export


def test_the_page_about_a_running_process(browser):
    ended = threading.Event()
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train():
        while not ended.wait(0.002):
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()

    thread = threading.Thread(target=train)
    thread.start()
    problems = []
    try:
        with listen() as served:
            page = browser.new_page()
            page.set_default_timeout(120_000)  # a busy machine takes its time
            page.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(served.url)
            page.locator("#rows tr", has_text="aten::linear").wait_for()
            page.wait_for_function("() => Number(document.getElementById('rate').textContent) > 0")
            assert page.locator("#trend polyline").count() == 1
            assert page.locator("#state").inner_text().startswith("process ")
        page.locator("#state", has_text="does not answer").wait_for()
        page.close()
    finally:
        ended.set()
        thread.join()
    # The icon that browsers ask for by themselves is not there, and after the end there is no answer.
    assert not [text for text in problems if "Failed to load resource" not in text]


def test_the_page_of_a_history(browser, tmp_path):
    points = [
        Point(f"v{n}", f"{n}.mtp", n, 9, 1e6 * (1 + n), 1e6 * (1 + n), 2e6 * (1 + n), 5, 1000 * n, 1.0, verdict, "aten::<i>mm")
        for n, verdict in enumerate(["", "no evidence", "slower"])
    ]
    export(points, tmp_path / "trend.html", "Nightly")
    page = browser.new_page()
    page.goto((tmp_path / "trend.html").as_uri())
    assert page.locator("h1").inner_text() == "Nightly" and page.locator("tbody tr").count() == 3
    assert page.locator("tbody tr.slower td").nth(5).inner_text() == "aten::<i>mm"
    circles = page.locator("svg.chart").first.locator("circle")
    heights = [circles.nth(n).bounding_box()["y"] for n in range(3)]
    assert heights == sorted(heights, reverse=True)  # later is slower, so higher
    page.close()
