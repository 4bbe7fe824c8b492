"""Memory on the page says what `mtprof memory` says, also where it does not know."""

from __future__ import annotations

import re
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import load, profile
from mindtorch_v2.profiler.analysis.memory.use import EARLIER, memory_use
from mindtorch_v2.profiler.report import html
from mindtorch_v2.profiler.store.store import EventStore

pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")

EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def in_bytes(text: str) -> float:
    number, unit = re.match(r"([\d.]+)(?: (\w+))?", text).groups()
    return float(number) * {"B": 1, "KiB": 1024, None: 1}[unit]


def bytes_by_holder(page: Any) -> dict[str, float]:
    """Bytes by who holds them."""
    pairs = page.eval_on_selector_all(
        "#section-memory tbody tr",
        "rows => rows.map((row) => [row.querySelector('[data-key=who]').textContent, "
        "Number(row.querySelector('[data-key=bytes]').dataset.value)])",
    )
    totals: dict[str, float] = {}
    for name, amount in pairs:
        totals[name] = totals.get(name, 0) + amount
    return totals


def given_back() -> EventStore:
    """Memory of a process that frees what it had before; how much else there was is not known."""
    memory = [
        {"time": 10, "bytes": -300, "addr": 1},
        {"time": 20, "bytes": 500, "addr": 2},
        {"time": 30, "bytes": -100, "addr": 3},
        {"time": 40, "bytes": -500, "addr": 2},
    ]
    return EventStore.from_rows([{"name": "aten::add", "start": 0, "end": 100}], memory, options={"profile_memory": True})


def only_freed() -> EventStore:
    memory = [{"time": 10, "bytes": -300, "addr": 1}, {"time": 20, "bytes": -50, "addr": 2}]
    return EventStore.from_rows([{"name": "aten::add", "start": 0, "end": 100}], memory, options={"profile_memory": True})


def counted() -> EventStore:
    """A trace that tells all that the process has."""
    memory = [{"time": 10, "bytes": 300, "addr": 1, "total": 1300}, {"time": 20, "bytes": -200, "addr": 2, "total": 1100}]
    rows = [{"name": "aten::add", "start": 0, "end": 100}]
    store = EventStore.from_rows(rows, [{key: row[key] for key in ("time", "bytes", "addr")} for row in memory])
    store.mem_total = store.mem_total + 1000
    return store


@pytest.mark.parametrize("make, peak, before", [(given_back, 600, 100), (only_freed, 350, 350), (counted, 1300, 1000)])
def test_the_page_and_the_command_agree(open_page, tmp_path, make, peak, before):
    store = make()
    (use,) = memory_use(store)
    assert (use.peak, use.peak_before) == (peak, before)
    html.export(store, tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    assert in_bytes(page.inner_text("#card-memory .figure")) == pytest.approx(peak, rel=0.01)
    assert f"with {before} B from before" in page.inner_text("#card-memory").replace("\u00a0", " ")
    page.click('#nav a[data-section="memory"]')
    page.wait_for_selector("#section-memory tbody tr")
    holders = bytes_by_holder(page)
    assert holders[EARLIER] == before and sum(holders.values()) == peak
    assert ("is not known" in page.inner_text("#section-memory [role=status]")) == (not use.before_known)


def test_they_agree_on_what_a_profile_knows(open_page, profiled, report):
    (use,) = memory_use(profiled.profiler.store, profiled._memory_uses())
    page = open_page(report, "memory")
    holders = bytes_by_holder(page)
    assert use.before_known and holders[EARLIER] == use.peak_before > 0
    assert sum(holders.values()) == use.peak == sum(use.categories.values()) == sum(holder.bytes for holder in use.holders)
    said = page.inner_text("#section-memory [role=status]")
    total, earlier, since = (
        in_bytes(text)
        for text in re.search(
            r": (.*?) in use, (.*?) of it from before the recording and (.*?) allocated since\.$", said
        ).groups()
    )
    assert total == pytest.approx(use.peak, rel=0.01) and earlier == pytest.approx(use.peak_before, rel=0.01)
    assert since == pytest.approx(use.peak - use.peak_before, rel=0.01)


@pytest.mark.parametrize(
    "options, said",
    [
        (EVERYTHING, "a trace does not say so"),
        ({"profile_memory": True, "with_stack": True}, "that takes record_shapes=True."),
        ({"profile_memory": True}, "that takes record_shapes=True and with_stack=True."),
    ],
)
def test_a_file_that_does_not_tell_uses_says_why(open_page, tmp_path, options, said):
    with profile(**options) as prof:
        (torch.ones(30, requires_grad=True) * 2).sum().backward()
    prof.export_chrome_trace(tmp_path / "run.json")
    load(tmp_path / "run.json").export_html(tmp_path / "run.html")
    page = open_page(tmp_path / "run.html", "memory")
    assert said in page.inner_text("#section-memory")
    assert page.locator("#section-memory .legend").count() == 0


@pytest.mark.parametrize("loaded", [False, True])
def test_a_streamed_profile_tells(open_page, tmp_path, loaded):
    with profile(stream_to=tmp_path / "run.mtp", **EVERYTHING) as prof:
        (torch.ones(30, requires_grad=True) * 2).sum().backward()
    (load(tmp_path / "run.mtp") if loaded else prof).export_html(tmp_path / "run.html")
    page = open_page(tmp_path / "run.html", "memory")
    assert "Autograd detail" in page.locator("#section-memory .legend li").all_inner_texts()
