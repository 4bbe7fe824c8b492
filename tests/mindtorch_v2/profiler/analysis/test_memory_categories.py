"""What memory was used for survives saving, and nonsense in a file is passed over."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import load, profile
from mindtorch_v2.profiler.analysis.memory.categories import CATEGORIES, UNKNOWN, stored_uses


@pytest.fixture(scope="module")
def trained():
    model = nn.Linear(8, 4)
    optimizer = torch.optim.Adam(model.parameters())
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(3, 8)).sum().backward()
            optimizer.step()
            prof.step()
    return prof


def test_a_saved_profile_keeps_the_categories(trained, tmp_path):
    live = trained._memory_uses()
    trained.save(tmp_path / "run.mtp")
    kept = load(tmp_path / "run.mtp")._memory_uses()
    assert kept.category.tolist() == live.category.tolist()
    assert kept[1:] == live[1:]
    names = {(*CATEGORIES, "UNKNOWN")[number] for number in kept.category.tolist()}
    assert {"GRADIENT", "OPTIMIZER_STATE"} <= names


def test_the_report_of_a_saved_profile_shows_them(trained, tmp_path):
    trained.save(tmp_path / "run.mtp")
    load(tmp_path / "run.mtp").export_html(tmp_path / "page.html")
    assert '"categories": ["INPUT"' in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda known: known.update(category="?"),
        lambda known: known.update(category=""),
        lambda known: known.update(before=[[1], [UNKNOWN + 1], [0]]),
        lambda known: known.update(before=[[1], [0], [10**9]]),
        lambda known: known.update(before=[[1], [0, 0], [0]]),
        lambda known: known.update(before=7),
        lambda known: known.pop("category"),
    ],
)
def test_nonsense_is_passed_over(trained, tmp_path, change):
    trained.save(tmp_path / "run.mtp")
    store = load(tmp_path / "run.mtp").store
    assert stored_uses(store) is not None
    change(store.options["memory_uses"])
    assert stored_uses(store) is None


def test_without_shapes_and_stacks_nothing_is_known(tmp_path):
    with profile(profile_memory=True) as prof:
        torch.ones(3)
    assert prof._memory_uses() is None
    prof.save(tmp_path / "run.mtp")
    assert load(tmp_path / "run.mtp")._memory_uses() is None
