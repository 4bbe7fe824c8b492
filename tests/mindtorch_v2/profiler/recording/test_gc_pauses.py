"""Pauses of the garbage collector are noted while something records, and only then."""

from __future__ import annotations

import gc

import pytest

from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.recording.gc_pauses import GcPauseLog


@pytest.fixture
def no_other_collections():
    """The collector does not begin by itself, as what other tests left may have it do at any moment."""
    gc.disable()
    yield
    gc.enable()


def test_collections_inside_the_session_are_noted(no_other_collections):
    before = list(gc.callbacks)
    with profile() as prof:
        gc.collect()
    gc.collect()
    pauses = [p for p in prof.profiler.store.options["gc_pauses"] if p[2] == 2]
    assert len(pauses) == 1
    assert prof.profiler.store.clock_start_ns <= pauses[0][0] < pauses[0][1] <= prof.profiler.store.clock_end_ns
    assert gc.callbacks == before


def test_a_collection_that_began_before_is_not_counted():
    log = GcPauseLog(iter(range(100)).__next__)
    log._on_collection("stop", {"generation": 1})
    log._on_collection("start", {"generation": 0})
    log._on_collection("stop", {"generation": 0})
    log._on_collection("stop", {"generation": 1})
    assert log.pauses == [(0, 1, 0)]
