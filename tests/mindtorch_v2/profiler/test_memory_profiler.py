"""What memory was used for: made-up allocations, a real training step, and the files."""

from __future__ import annotations

import gzip
import json
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler._memory_profiler import BEFORE, Action, Category, MemoryProfile, StorageNotes
from mindtorch_v2.profiler._store import EventStore
from mindtorch_v2.profiler.exporters import memory

FLAGS = {"record_shapes": True, "profile_memory": True, "with_stack": True}
ENGINE, SCOPE = observer.ENGINE, observer.SCOPE
ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def made(allocations=(), touched=(), rows=(), parameters=()):
    """A profile of (time, bytes, address), (time, address, bytes, written) and (name, start, end, kind)."""
    store = EventStore.from_rows(
        [{"name": name, "start": start, "end": end, "kind": kind} for name, start, end, kind in rows],
        [{"time": time, "bytes": size, "addr": address} for time, size, address in allocations],
        clock_start_ns=0, wall_start_ns=0)
    return MemoryProfile(store, StorageNotes(np.array(touched, np.int64).reshape(-1, 4), frozenset(parameters)))


def categories(found):
    return {life.key.address: found._categories.get(life.key, 0) for life in found._lives}


def test_actions_in_order():
    found = made([(10, 100, 1), (30, -100, 1), (40, -50, 9)], [(20, 1, 100, 1)])
    assert [(t, action.name, key.address, version, size) for t, action, (key, version), size in found.timeline] == [
        (BEFORE, "PREEXISTING", 9, 0, 50), (10, "CREATE", 1, 0, 100), (20, "INCREMENT_VERSION", 1, 0, 100),
        (30, "DESTROY", 1, 1, 100), (40, "DESTROY", 9, 0, 50)]


def test_categories():
    rows = [("backward", 100, 200, ENGINE), (ACCUMULATE, 150, 170, ENGINE),
            ("Optimizer.step#SGD.step", 300, 400, SCOPE)]
    allocations = [(10, 8, 1), (110, 8, 2), (120, -8, 2), (130, 8, 3), (155, 8, 4), (160, 8, 5), (165, -8, 5),
                   (310, 8, 6), (320, 8, 7), (330, -8, 7), (500, 8, 8)]
    touched = [(20, 11, 8, 0), (20, 12, 8, 0), (340, 13, 8, 1), (340, 14, 8, 0)]
    assert categories(made(allocations, touched, rows, parameters=[11])) == {
        1: Category.ACTIVATION, 2: Category.TEMPORARY, 3: Category.AUTOGRAD_DETAIL, 4: Category.GRADIENT,
        5: Category.TEMPORARY, 6: Category.OPTIMIZER_STATE, 7: Category.TEMPORARY, 8: Category.TEMPORARY,
        11: Category.PARAMETER, 12: Category.INPUT, 13: Category.PARAMETER, 14: Category.OPTIMIZER_STATE}


def test_an_address_used_twice_is_two_pieces():
    found = made([(10, 100, 1), (20, -100, 1), (30, 60, 1)])
    assert [(life.size, life.start, life.end) for life in found._lives] == [(100, 10, 20), (60, 30, None)]


# ------------------------------------------------------------------------------ files

def test_totals_and_raw_events(tmp_path):
    found = made([(1000, 100, 1), (3000, -100, 1)], [(2000, 5, 24, 1)], parameters=[5])
    memory.export(found, tmp_path / "m.json")
    times, rows = json.loads((tmp_path / "m.json").read_text())
    assert times == [1, 1, 2, 3]
    assert [(row[1], row[4]) for row in rows] == [(24, 0), (24, 100), (24, 100), (24, 0)]
    memory.export(found, tmp_path / "m.raw.json.gz")
    with gzip.open(tmp_path / "m.raw.json.gz") as file:
        assert json.load(file) == [[BEFORE, 1, 24, 0], [1000, 2, 100, 3], [2000, 3, -24, 0], [2000, 3, 24, 0],
                                   [3000, 4, -100, 3]]


def test_a_page_with_a_chart(tmp_path):
    memory.export(made([(1000, 100, 1), (3000, -100, 1)]), tmp_path / "m.html")
    text = (tmp_path / "m.html").read_text()
    assert "<svg" in text and "Temporary: at most 100 bytes" in text


def test_other_devices(tmp_path):
    memory.export(made([(1000, 100, 1)]), tmp_path / "m.json", device="cuda:0")
    assert json.loads((tmp_path / "m.json").read_text()) == [[], []]
    with pytest.raises(RuntimeError):
        memory.export(made(), tmp_path / "m.json", device="nonsense")


# ------------------------------------------------------------------------------ a training step

def trained():
    layer, x = torch.nn.Linear(3, 2), torch.ones(2, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    with profile(**FLAGS) as prof:
        layer(x).sum().backward()
        optimizer.step()
    return prof, layer, x, optimizer


def test_a_training_step_leaves_parameters_state_input_and_gradients(tmp_path):
    prof, *alive = trained()
    with pytest.warns(FutureWarning, match="deprecated"):
        prof.export_memory_timeline(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())[1][-1] == [0, 32, 32, 24, 0, 0, 32, 0, 0]
    assert {action for _, action, _, _ in prof._memory_profile().timeline} == set(Action)
    del alive


@pytest.mark.parametrize("missing", FLAGS)
def test_all_three_flags_are_needed(tmp_path, missing):
    with profile(**{flag: True for flag in FLAGS if flag != missing}) as prof:
        torch.ones(3)
    with warnings.catch_warnings(), pytest.raises(ValueError, match=f"^{missing}=True required"):
        warnings.simplefilter("ignore")
        prof.export_memory_timeline(tmp_path / "m.json")
