"""Call tree, module tree and steps: figures of made-up recordings."""

from __future__ import annotations

import numpy as np

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.calltree import CallTree
from mindtorch_v2.profiler.analysis.module_tree import module_tree
from mindtorch_v2.profiler.analysis.steps import per_step, step_of, steps
from mindtorch_v2.profiler.store.store import EventStore

NESTED = [
    {"name": "b", "start": 2, "end": 5, "flops": 7},
    {"name": "a", "start": 0, "end": 10, "flops": 1},
    {"name": "b", "start": 12, "end": 14},
    {"name": "b", "start": 15, "end": 19},
    {"name": "a", "start": 11, "end": 20},
    {"name": "b", "start": 30, "end": 31},
]


def test_calls_with_the_same_path_are_one_node():
    root = CallTree(EventStore.from_rows(NESTED)).root()
    a, b = root.children
    assert (a.name, a.count, a.total_ns, a.self_ns, a.flops) == ("a", 2, 19, 10, 1)
    assert [(c.name, c.count, c.total_ns, c.self_ns, c.flops) for c in a.children] == [("b", 3, 9, 9, 7)]
    assert (b.name, b.count, b.total_ns) == ("b", 1, 1)
    assert root.total_ns == 20


def test_left_out_rows_give_their_children_to_the_next_above():
    store = EventStore.from_rows(
        [
            {"name": "leaf", "start": 2, "end": 3},
            {"name": "middle", "start": 1, "end": 4},
            {"name": "top", "start": 0, "end": 9},
        ]
    )
    keep = np.array([store.names[n] != "middle" for n in store.name])
    (top,) = CallTree(store, keep).root().children
    assert (top.name, top.self_ns, [c.name for c in top.children]) == ("top", 8, ["leaf"])


def test_tree_of_nothing():
    assert CallTree(EventStore.from_rows([])).root().children == []
    assert module_tree(EventStore.from_rows(NESTED)) == []


def test_modules_add_up_forward_and_backward_apart():
    rows = [
        {"name": "aten::mm", "start": 0, "end": 10, "module": "Net.fc", "flops": 5},
        {"name": "aten::relu", "start": 10, "end": 13, "module": "Net"},
        {"name": "aten::mm", "start": 21, "end": 28, "module": "Net.fc"},
        {"name": "MmBackward0", "start": 20, "end": 30, "module": "Net.fc", "kind": observer.BACKWARD},
        {"name": "aten::add_", "start": 40, "end": 50},
    ]
    (net,) = module_tree(EventStore.from_rows(rows))
    assert (net.name, net.forward_ns, net.backward_ns, net.self_forward_ns, net.flops, net.ops) == ("Net", 13, 10, 3, 5, 4)
    (fc,) = net.children
    assert (fc.path, fc.name, fc.forward_ns, fc.backward_ns) == ("Net.fc", "fc", 10, 10)


def test_steps_come_from_step_rows_or_from_the_step_column_or_are_one():
    marked = EventStore.from_rows(
        [
            {"name": "a", "start": 1, "end": 4},
            {"name": "ProfilerStep#3", "kind": observer.STEP, "start": 0, "end": 5},
            {"name": "a", "start": 6, "end": 7},
            {"name": "ProfilerStep#4", "kind": observer.STEP, "start": 5, "end": 9},
            {"name": "a", "start": 20, "end": 21},
        ]
    )
    spans = steps(marked)
    assert [c.tolist() for c in spans[:3]] == [[3, 4], [0, 5], [5, 9]]
    assert step_of(marked, spans).tolist() == [0, 0, 1, 1, -1]
    counted = EventStore.from_rows([{"name": "a", "start": s, "end": s + 2, "step": s // 10} for s in (1, 5, 12, 25)])
    assert [c.tolist() for c in steps(counted)[:3]] == [[0, 1, 2], [1, 12, 25], [12, 25, 27]]
    alone = EventStore.from_rows([{"name": "a", "start": 3, "end": 9}])
    assert steps(alone).duration.tolist() == [6]
    assert steps(EventStore.from_rows([])).duration.tolist() == []


def test_sums_per_step():
    store = EventStore.from_rows(
        [{"name": n, "start": s, "end": s + 2, "step": s // 10} for n, s in (("a", 1), ("b", 5), ("a", 12), ("a", 15))]
    )
    group = np.where(store.label == store.labels.index("a"), 0, -1)
    assert per_step(store, steps(store), group, 1, store.duration).tolist() == [[2, 4]]
