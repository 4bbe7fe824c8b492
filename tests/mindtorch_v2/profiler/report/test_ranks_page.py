"""The page of a job in a browser, opened from disk with the network off. `make ranks` makes that of 1,000 ranks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from synthetic_job import MS, Faults, SyntheticJob

from mindtorch_v2.profiler import ranks
from mindtorch_v2.profiler.ranks import page
from mindtorch_v2.profiler.ranks.digest_file import encode

RANKS = 64
FAULTS = Faults(slow_rank=(33, 1.08), slow_link=(16, 24, 0.6), pause=(40, 3, 25 * MS))


@pytest.fixture(scope="module")
def job_page(tmp_path_factory) -> Path:
    job = SyntheticJob(RANKS, steps=6, events=40, faults=FAULTS)
    blocks = [encode(ranks.make_digest(job.rows(rank), f"rank{rank:05d}.mtp")) for rank in range(RANKS)]
    path: Path = tmp_path_factory.mktemp("job") / "ranks.html"
    page.export(ranks.JobAnswers(ranks.merge(blocks)), path)
    return path


def test_every_section_shows_and_names_what_was_planted(job_page, open_page):
    shown = open_page(job_page)
    sections = shown.eval_on_selector_all("#nav a[data-section]", "links => links.map((link) => link.dataset.section)")
    assert len(sections) == 8
    for section in sections:
        shown.click(f'#nav a[data-section="{section}"]')
        shown.wait_for_selector(f"#section-{section}:visible")
        text = shown.inner_text(f"#section-{section}")
        assert len(text) > 40
        assert not re.search(r"\b(?:false|undefined|null|NaN)\b", text), (section, text)
    overview = shown.text_content("#section-overview")
    assert "all its ops are slower alike" in overview and "hosts: host0002, host0003" in overview  # why, at a glance
    assert "Rank 33 on" in overview and "The link from rank 16 to rank 24 is slow" in overview and "Rank 40 pauses" in overview


def test_the_heat_map_leads_to_a_rank(job_page, open_page):
    shown = open_page(job_page, "map")
    box = shown.locator("#section-map canvas").last.bounding_box()
    assert box["height"] > 100
    before = shown.inner_text("#section-map h3 >> nth=0")
    shown.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.1)
    after = shown.inner_text("#section-map h3 >> nth=0")
    assert re.fullmatch(r"Rank \d+", after) and after != before


def test_a_slow_step_says_whom_it_waited_for(job_page, open_page):
    shown = open_page(job_page)
    box = shown.locator(".steps-canvas").bounding_box()
    told = []
    for step in range(6):
        shown.mouse.move(box["x"] + 64 + (box["width"] - 64) * (step + 0.5) / 6, box["y"] + box["height"] / 2)
        told.append("times the usual: rank 40, idle" in shown.text_content(".tip"))
    assert told == [False, False, False, True, False, False]
