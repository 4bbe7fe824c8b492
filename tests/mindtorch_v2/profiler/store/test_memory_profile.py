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
from mindtorch_v2.profiler.exporters import memory
from mindtorch_v2.profiler.store.memory_profile import BEFORE, Action, Category, MemoryBlocks, StorageNotes
from mindtorch_v2.profiler.store.store import EventStore

FLAGS = {"record_shapes": True, "profile_memory": True, "with_stack": True}
OP, BACKWARD, ENGINE, SCOPE = observer.OP, observer.BACKWARD, observer.ENGINE, observer.SCOPE
ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def memory_profile(allocations=(), touched=(), rows=(), parameters=()):
    """A profile of (time, bytes, address), (time, address, bytes, written) and (name, start, end, kind)."""
    store = EventStore.from_rows(
        [{"name": name, "start": start, "end": end, "kind": kind} for name, start, end, kind in rows],
        [{"time": time, "bytes": size, "addr": address} for time, size, address in allocations],
        clock_start_ns=0,
        wall_start_ns=0,
    )
    return MemoryBlocks(store, StorageNotes(np.array(touched, np.int64).reshape(-1, 4), frozenset(parameters)))


def categories(recorded):
    return {block.key.address: recorded._categories.get(block.key, 0) for block in recorded._blocks}


def test_actions_in_order():
    recorded = memory_profile([(10, 100, 1), (30, -100, 1), (40, -50, 9)], [(20, 1, 100, 1)])
    assert [(t, action.name, key.address, version, size) for t, action, (key, version), size in recorded.timeline] == [
        (BEFORE, "PREEXISTING", 9, 0, 50),
        (10, "CREATE", 1, 0, 100),
        (20, "INCREMENT_VERSION", 1, 0, 100),
        (30, "DESTROY", 1, 1, 100),
        (40, "DESTROY", 9, 0, 50),
    ]


def test_categories():
    """A forward op, a backward node with an op inside, accumulation, an optimizer's step, and something afterwards."""
    rows = [
        ("aten::mm", 5, 30, OP),
        ("aten::mul", 105, 125, OP),
        ("MulBackward0", 102, 140, BACKWARD),
        ("evaluate", 100, 200, ENGINE),
        (ACCUMULATE, 150, 170, ENGINE),
        ("aten::add", 305, 308, OP),
        ("Optimizer.step#SGD.step", 300, 400, SCOPE),
        ("aten::randn", 500, 510, OP),
        ("aten::exp", 600, 610, OP),
    ]
    allocations = [
        (10, 8, 1),  # made of the parameter 11 and the input 12
        (110, 8, 2),
        (120, -8, 2),  # begins and ends inside one backward node
        (130, 8, 3),
        (155, 8, 4),  # stays after its node; made while accumulating
        (310, 8, 6),
        (320, 8, 7),
        (330, -8, 7),  # made by the optimizer: to stay, and not to stay
        (505, 8, 8),
        (605, 8, 9),  # made of nothing, and of that
        (700, 8, 10),
    ]  # outside every op
    touched = [(20, 11, 8, 0), (20, 12, 8, 0), (306, 13, 8, 1), (20, 13, 8, 0), (306, 14, 8, 1), (600, 8, 8, 0)]
    assert categories(memory_profile(allocations, touched, rows, parameters=[11])) == {
        1: Category.ACTIVATION,
        2: Category.TEMPORARY,
        3: Category.AUTOGRAD_DETAIL,
        4: Category.GRADIENT,
        6: Category.OPTIMIZER_STATE,
        7: Category.TEMPORARY,
        8: None,
        9: None,
        10: None,
        11: Category.PARAMETER,
        12: Category.INPUT,
        13: Category.PARAMETER,
        14: Category.OPTIMIZER_STATE,
    }


def test_a_batch_that_was_made_while_recording_is_an_input():
    rows = [("aten::randn", 0, 10, OP), ("aten::mm", 20, 30, OP), ("aten::relu", 40, 50, OP)]
    touched = [(20, 1, 8, 0), (20, 11, 8, 0), (40, 2, 8, 0)]
    assert categories(memory_profile([(5, 8, 1), (25, 8, 2), (45, 8, 3)], touched, rows, parameters=[11])) == {
        1: Category.INPUT,
        2: Category.ACTIVATION,
        3: Category.ACTIVATION,
        11: Category.PARAMETER,
    }


def test_without_known_parameters_a_backward_pass_tells_what_was_trained():
    rows = [("aten::mm", 20, 30, OP), ("evaluate", 100, 200, ENGINE)]
    touched = [(20, 11, 8, 0), (20, 12, 8, 0)]
    assert categories(memory_profile([(25, 8, 1)], touched, rows)) == {
        1: Category.ACTIVATION,
        11: Category.INPUT,
        12: Category.INPUT,
    }
    assert set(categories(memory_profile([(25, 8, 1)], touched, rows[:1])).values()) == {None}


def test_a_training_loop_by_category():
    """As many bytes of each as torch counts, but for the scalars that torch's kernels make inside."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(128, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(16, 64), torch.randint(32, (16,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    def bytes_by_category(work):
        with profile(**FLAGS) as prof:
            work()
        recorded, total = prof._memory_blocks(), {}
        for _, action, (key, version), size in recorded.timeline:
            if action in (Action.PREEXISTING, Action.CREATE):
                category = recorded._categories.get(key, version)
                total[category and category.name] = total.get(category and category.name, 0) + size
        return total

    weights = 4 * (64 * 128 + 128 + 128 * 32 + 32)
    assert bytes_by_category(step) == {
        "PARAMETER": weights,
        "OPTIMIZER_STATE": weights,
        "GRADIENT": weights,
        "INPUT": 4096 + 128,
        "ACTIVATION": 36876,
        "AUTOGRAD_DETAIL": 28672,
    }
    again = bytes_by_category(step)
    assert (again["PARAMETER"], again["OPTIMIZER_STATE"]) == (weights, weights)
    with torch.no_grad():
        assert bytes_by_category(lambda: model(x)) == {
            "PARAMETER": weights,
            "INPUT": 4096,
            "ACTIVATION": 26624,
            "TEMPORARY": 8192,
        }


def test_an_address_used_twice_is_two_blocks():
    recorded = memory_profile([(10, 100, 1), (20, -100, 1), (30, 60, 1)])
    assert [(block.size, block.start, block.end) for block in recorded._blocks] == [(100, 10, 20), (60, 30, None)]


# ------------------------------------------------------------------------------ files

SAMPLE = [("aten::matmul", 900, 3100, OP)]


def test_totals_and_raw_events(tmp_path):
    recorded = memory_profile([(1000, 100, 1), (3000, -100, 1)], [(2000, 5, 24, 1)], SAMPLE, parameters=[5])
    memory.export(recorded, tmp_path / "m.json")
    times, rows = json.loads((tmp_path / "m.json").read_text())
    assert times == [1, 1, 2, 3]
    assert [(row[1], row[4]) for row in rows] == [(24, 0), (24, 100), (24, 100), (24, 0)]
    memory.export(recorded, tmp_path / "m.raw.json.gz")
    with gzip.open(tmp_path / "m.raw.json.gz") as file:
        assert json.load(file) == [
            [BEFORE, 1, 24, 0],
            [1000, 2, 100, 3],
            [2000, 3, -24, 0],
            [2000, 3, 24, 0],
            [3000, 4, -100, 3],
        ]


def test_a_page_with_a_chart(tmp_path):
    memory.export(memory_profile([(1000, 100, 1), (3000, -100, 1)], rows=SAMPLE), tmp_path / "m.html")
    text = (tmp_path / "m.html").read_text()
    assert "<svg" in text and "Temporary: at most 100 bytes" in text


def test_other_devices(tmp_path):
    memory.export(memory_profile([(1000, 100, 1)]), tmp_path / "m.json", device="cuda:0")
    assert json.loads((tmp_path / "m.json").read_text()) == [[], []]
    with pytest.raises(RuntimeError):
        memory.export(memory_profile(), tmp_path / "m.json", device="nonsense")


def test_memory_of_a_device_has_a_timeline_of_its_own(tmp_path):
    store = EventStore.from_rows(
        [{"name": "aten::empty", "start": 0, "end": 9000}],
        [
            {"time": 1000, "bytes": 100, "addr": 1},
            {"time": 2000, "bytes": 64, "addr": 2, "device_type": 20, "device_index": 0},
            {"time": 8000, "bytes": -64, "addr": 2, "device_type": 20, "device_index": 0},
        ],
        clock_start_ns=0,
        wall_start_ns=0,
    )
    recorded = MemoryBlocks(store, StorageNotes(np.empty((0, 4), np.int64), frozenset()))
    for device, expected in (("cpu", [[1], [100]]), ("npu:0", [[2, 8], [64, 0]]), ("npu:1", [[], []])):
        memory.export(recorded, tmp_path / "m.json", device=device)
        times, rows = json.loads((tmp_path / "m.json").read_text())
        assert [times, [sum(row) for row in rows]] == expected


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
    timeline = prof._memory_blocks().timeline
    assert isinstance(timeline, tuple) and {action for _, action, _, _ in timeline} == set(Action)
    del alive


@pytest.mark.parametrize("missing", FLAGS)
def test_all_three_flags_are_needed(tmp_path, missing):
    with profile(**{flag: True for flag in FLAGS if flag != missing}) as prof:
        torch.ones(3)
    with warnings.catch_warnings(), pytest.raises(ValueError, match=f"^{missing}=True required"):
        warnings.simplefilter("ignore")
        prof.export_memory_timeline(tmp_path / "m.json")


def test_a_product_of_more_than_two_dimensions_is_allocated_once():
    """`_unsafe_view` gives the memory of its argument another shape; it is neither gained twice nor given back early."""
    x, w = torch.ones(2, 3, 4), torch.ones(4, 5)
    with profile(profile_memory=True) as prof:
        product = x @ w
        kept = product.storage_offset()
        del product
    changes = prof.profiler.store.mem_bytes.tolist()
    assert (changes, kept) == ([120, -120], 0)


def test_an_unsafe_view_shares_the_storage():
    x = torch.ones(2, 6)
    seen = torch.ops.aten._unsafe_view(x, [3, 4])
    seen.add_(1)
    assert x.sum() == 24 and seen._version == 1 and not seen._is_view()
    assert x.untyped_storage().data_ptr() == seen.untyped_storage().data_ptr()
    crossed = torch.ops.aten._unsafe_view(x.t(), [3, 4])  # where no view is possible
    assert crossed.data_ptr() != x.data_ptr()


# Bytes of a backward pass through Linear(64, 128), ReLU, Linear(128, 10) and cross entropy of 32 rows, as torch 2.13 has
# them: total and self.
BACKWARD_BYTES = {
    "AddmmBackward0": (54272, 0),
    "LogSoftmaxBackward0": (1280, 0),
    "NllLossBackward0": (1280, 0),
    "ReluBackward0": (16384, 0),
    "aten::_log_softmax_backward_data": (1280, 1280),
    "aten::nll_loss_backward": (1280, 1280),
    "aten::threshold_backward": (16384, 16384),
    "autograd::engine::evaluate_function: AddmmBackward0": (37160, -17664),
    "autograd::engine::evaluate_function: LogSoftmaxBackward0": (-1280, -2560),
    "autograd::engine::evaluate_function: NllLossBackward0": (1276, -4),
    "autograd::engine::evaluate_function: ReluBackward0": (-16384, -32768),
}


def test_what_a_node_was_given_is_given_back_by_its_evaluation():
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    x, y = torch.randn(32, 64), torch.zeros(32, dtype=torch.int64)
    with profile(profile_memory=True) as prof:
        torch.nn.functional.cross_entropy(net(x), y).backward()
    averages = {row.key: (row.cpu_memory_usage, row.self_cpu_memory_usage) for row in prof.key_averages()}
    assert {name: averages.get(name) for name in BACKWARD_BYTES} == BACKWARD_BYTES
