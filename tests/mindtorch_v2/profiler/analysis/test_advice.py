"""Advice: every rule has a recording that triggers it and one, as close as possible, that does not."""

from __future__ import annotations

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.advice import RULES, advise, rules
from mindtorch_v2.profiler.store.store import EventStore, InputInfo

MS = 1_000_000
STACK = ("torch/nn/functional.py(3): relu", "train.py(12): step", "train.py(40): <module>")


def steps(count=4, length=10 * MS):
    return [
        {"name": f"ProfilerStep#{n}", "kind": observer.STEP, "start": n * length, "end": (n + 1) * length} for n in range(count)
    ]


def inside(rows, count=4, length=10 * MS):
    """The rows once in every step, under it."""
    moved = [{**r, "start": r["start"] + n * length, "end": r["end"] + n * length} for n in range(count) for r in rows]
    return [*moved, *steps(count, length)]


def row(name, start, end, kind=observer.OP, **more):
    return {"name": name, "start": start, "end": end, "kind": kind, "stack": STACK, **more}


def loader(ns):
    return EventStore.from_rows(
        inside([row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, ns, observer.SCOPE)])
    )


def items(per_step, name="aten::item", under=None):
    rows = [row(name, 1000 + 100 * n, 1050 + 100 * n) for n in range(per_step)]
    if under:
        rows.append(row(under, 0, 9000, observer.SCOPE))
    return EventStore.from_rows(inside(rows))


def many_ops(count, ns, large=0):
    rows = [row("aten::add", 2 * ns * n, 2 * ns * n + ns) for n in range(count)]
    rows += [row("aten::mm", 5 * MS, 5 * MS + large)] if large else []
    return EventStore.from_rows(inside(rows))


def copies(ns, under=None):
    rows = [row("aten::copy_", 10, ns - 10), row("aten::contiguous", 0, ns)]
    if under:
        rows.append(row(under, 0, 9 * MS, observer.SCOPE))
    return EventStore.from_rows(inside(rows))


def typed(*types, name="aten::mul", dims=((4,), (4,))):
    info = InputInfo(dims, types, dims, (None, None))
    return EventStore.from_rows(inside([row(name, 0, 1000, inputs=info)]))


def graph(backward=False, nodes=True, passes=4, later=False):
    """Ten ops in each pass that leave nodes, or may but do not; with a backward in each, or one after the last."""
    rows = []
    for n in range(passes):
        begin = 10 * MS * n
        for op in range(10):
            seq = 10 * n + op if nodes else 0
            rows.append(row("aten::mul", begin + 100_000 * op, begin + 100_000 * op + 90_000, seq=seq))
        if backward:
            rows += [row("MulBackward0", begin + 8 * MS, begin + 9 * MS, observer.BACKWARD, seq=10 * n + 9, fwd_thread=1)]
    if later:
        seqs = range(10 * passes)
        begin = 10 * MS * passes
        rows += [row("MulBackward0", begin + 9 * n, begin + 9 * n + 5, observer.BACKWARD, seq=n, fwd_thread=1) for n in seqs]
    return EventStore.from_rows([*rows, *steps(passes + later)])


def training(optimizer_step):
    rows = [row("autograd::engine::evaluate_function: MulBackward0", 1000, 5000, observer.ENGINE)]
    if optimizer_step:
        rows.append(row("Optimizer.step#SGD.step", 6000, 7000, observer.SCOPE))
    rows.append(row("Optimizer.zero_grad#SGD.zero_grad", 8000, 8100, observer.SCOPE))
    return EventStore.from_rows(inside(rows))


def optimizer(op, parameters, ns=20_000):
    rows = [row(op, 10 + 2 * ns * n, 10 + 2 * ns * n + ns) for n in range(parameters)]
    rows.append(row("Optimizer.step#SGD.step", 0, 2 * ns * parameters + 100, observer.SCOPE))
    return EventStore.from_rows(inside(rows))


def memory(freed):
    rows = inside([row("aten::mul", 0, MS)], 8)
    changes = []
    for n in range(8):
        changes.append({"time": n * 10 * MS + 10, "bytes": 1 << 20, "addr": n + 1})
        if freed and n:
            changes.append({"time": n * 10 * MS + 20, "bytes": -(1 << 20), "addr": n})
    return EventStore.from_rows(rows, changes, options={"profile_memory": True})


def pauses(ns, number=3):
    long = [(at, at + ns, 2) for at in range(0, number * MS, MS)]
    return EventStore.from_rows(inside([row("aten::mul", 0, MS)]), options={"gc_pauses": [*long, (5, 6, 0)]})


# rule -> (a recording that triggers it, text in the finding), and recordings that do not
CASES = {
    "data_loader_wait": ((loader(3 * MS), "num_workers"), [loader(MS // 2)]),
    "host_sync": ((items(3), "12 calls"), [items(1), items(3, under="Optimizer.step#Adam.step"), items(3, "aten::add")]),
    "tiny_ops": (
        (many_ops(400, 2000), "1,600 of 1,600 ops"),
        [many_ops(400, 2000, large=5 * MS), many_ops(100, 2000), many_ops(400, 200)],
    ),
    "copies": ((copies(MS), "aten::contiguous: 4 calls, 4 ms"), [copies(MS // 10), copies(MS, "Optimizer.step#SGD.step")]),
    "promotion": (
        (typed("float", "double"), "aten::mul: 4 calls"),
        [
            typed("float", "float"),
            typed("double", "double"),
            typed("float", "double", dims=((4,), ())),
            typed("float", "double", name="aten::copy_"),
        ],
    ),
    # The last op is followed by none that would tell whether it left a node.
    "unused_graph": (
        (graph(), "39 ops"),
        [graph(backward=True), graph(nodes=False), graph(passes=1), graph(later=True), graph(nodes=False, later=True)],
    ),
    "unused_gradients": ((training(optimizer_step=False), "4 times"), [training(optimizer_step=True)]),
    "single_tensor_optimizer": (
        (optimizer("aten::add_", 20), "SGD(..., foreach=True)"),
        [optimizer("aten::_foreach_add_", 20), optimizer("aten::add_", 4), optimizer("aten::add_", 20, ns=500)],
    ),
    "memory_growth": ((memory(freed=False), "1 MB a step"), [memory(freed=True)]),
    "gc_pauses": (
        (pauses(2 * MS), "1 of generation 0, 3 of generation 2"),
        [pauses(100_000), pauses(3 * MS, 1), EventStore.from_rows([])],
    ),
}


def test_every_rule_has_cases():
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_rule_fires_with_evidence_and_place(name):
    (store, text), _ = CASES[name]
    (finding,) = rules()[name](store)
    assert finding.rule == name
    assert text in str(finding)
    assert finding.where == (None if name == "gc_pauses" else "train.py(12)")  # a collection belongs to no line
    assert finding.gain_ns is None or 0 < finding.gain_ns <= 40 * MS
    assert finding.share is None or 0 < finding.share <= 1


@pytest.mark.parametrize(("name", "number"), [(name, n) for name in RULES for n in range(len(CASES[name][1]))])
def test_rule_is_silent(name, number):
    assert rules()[name](CASES[name][1][number]) == []


def test_an_empty_recording_needs_no_advice():
    assert advise(EventStore.from_rows([])) == []


def test_the_largest_gain_comes_first():
    rows = [
        row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 4 * MS, observer.SCOPE),
        *(row("aten::item", 5 * MS + 100 * n, 5 * MS + 100 * n + 50) for n in range(3)),
    ]
    findings = advise(EventStore.from_rows(inside(rows)))
    assert [finding.rule for finding in findings] == ["data_loader_wait", "host_sync"]
    assert findings[0].to_dict()["gain_ns"] == 16 * MS


def test_an_interruption_does_not_hide_tiny_ops():
    """A few of the ops were interrupted for longer than all others took together."""
    rows = [row("aten::add", 4000 * n, 4000 * n + 2000) for n in range(1500)]
    late = [row("aten::add", 10 * MS + 5 * MS * n, 14 * MS + 5 * MS * n) for n in range(5)]
    (finding,) = rules()["tiny_ops"](EventStore.from_rows([*rows, *late]))
    assert "1,505 of 1,505 ops took 3.01 ms together" in str(finding)


def test_a_machine_of_two_speeds_does_not_hide_tiny_ops():
    """Views cost half as much as arithmetic, and from the middle on everything takes twice as long."""
    costs = {"aten::select": 700, "aten::add": 1600, "aten::mul": 1600}
    rows = [
        row(name, 10_000 * n + 3500 * at, 10_000 * n + 3500 * at + cost * (1 + (n >= 300)))
        for n in range(600)
        for at, (name, cost) in enumerate(costs.items())
    ]
    (finding,) = rules()["tiny_ops"](EventStore.from_rows(rows))
    assert "1,800 of 1,800 ops" in str(finding)


def test_few_tiny_calls_do_not_make_the_large_ones_of_an_op_tiny():
    tiny = [row("aten::add", 4000 * n, 4000 * n + 1000) for n in range(1500)]
    large = [row("aten::add", 10 * MS + 30_000 * n, 10 * MS + 30_000 * n + 20_000) for n in range(200)]
    assert rules()["tiny_ops"](EventStore.from_rows([*tiny, *large])) == []


def test_interruptions_of_short_collections_are_no_pauses():
    """The machine ran something else in three of twenty collections."""
    short = [(at * MS // 4, at * MS // 4 + 50_000, 0) for at in range(20)]
    for at in (2, 7, 11):
        short[at] = (short[at][0], short[at][0] + 4 * MS, 0)
    store = EventStore.from_rows(inside([row("aten::mul", 0, MS)]), options={"gc_pauses": short})
    assert rules()["gc_pauses"](store) == []
