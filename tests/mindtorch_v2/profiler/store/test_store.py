"""EventStore: how columns are put in order, and what follows from them."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.store.distinct import distinct_values
from mindtorch_v2.profiler.store.store import EventStore, ThreadInfo


def row(name, start, end, **more):
    return {"name": name, "start": start, "end": end, **more}


def names(store):
    return [store.names[at] for at in store.name]


def parent_names(store):
    return [None if at < 0 else store.names[store.name[at]] for at in store.parent]


def test_rows_recorded_at_their_end_are_sorted_by_start():
    store = EventStore.from_rows([row("inner", 20, 30), row("outer", 10, 40), row("next", 50, 60)])
    assert names(store) == ["outer", "inner", "next"]
    assert parent_names(store) == [None, "outer", None]
    assert store.self_ns.tolist() == [20, 10, 10]
    assert store.children_ns.tolist() == [10, 0, 0]
    assert store.depth.tolist() == [0, 1, 0]


def test_of_equal_intervals_the_one_recorded_later_is_the_outer():
    store = EventStore.from_rows([row("inner", 5, 9), row("middle", 5, 9), row("outer", 5, 9)])
    assert names(store) == ["outer", "middle", "inner"]
    assert parent_names(store) == [None, "outer", "middle"]


def test_self_time_is_never_negative():
    store = EventStore.from_rows([row("b", 0, 60), row("c", 10, 100), row("a", 0, 100)])
    assert (store.self_ns >= 0).all()


def test_missing_columns_have_their_defaults():
    store = EventStore.freeze({"name": [0], "kind": 0, "tid": 0, "start": [1], "end": [2]}, names=["x"])
    values = {c: getattr(store, c).tolist() for c in ("seq", "step", "shapes", "stack", "flops", "module", "fwd_tid", "op")}
    assert values == {
        "seq": [-1],
        "step": [0],
        "shapes": [-1],
        "stack": [-1],
        "flops": [0],
        "module": [-1],
        "fwd_tid": [-1],
        "op": [-1],
    }
    assert store.device_type.tolist() == [0]


def test_unknown_columns_are_refused():
    with pytest.raises(ValueError, match="'shape'"):
        EventStore.freeze({"name": 0, "kind": 0, "tid": 0, "start": [], "end": [], "shape": 1}, names=[])


def test_an_empty_recording():
    store = EventStore.from_rows([])
    assert len(store) == 0
    assert len(store.visible) == 0
    assert store.parent.tolist() == store.self_ns.tolist() == store.ids.tolist() == []


def test_steps_by_the_times_of_step_calls():
    store = EventStore.from_rows([row("a", 0, 5), row("b", 10, 15), row("c", 12, 30), row("d", 30, 31)])
    columns = {c: getattr(store, c) for c in ("name", "kind", "tid", "start", "end")}
    again = EventStore.freeze(columns, names=store.names, step_marks=[10, 20])
    assert again.step.tolist() == [0, 1, 1, 2]


def test_what_ran_on_a_device_has_no_parent():
    store = EventStore.from_rows([row("kernel", 10, 20, device_type=20), row("op", 12, 15), row("block", 0, 100)])
    assert names(store) == ["block", "kernel", "op"]
    assert store.parent.tolist() == [-1, -1, 0]


# ---------------------------------------------------------------------- memory


def test_memory_is_charged_to_the_innermost_event_of_its_thread():
    store = EventStore.from_rows(
        [row("inner", 20, 30), row("outer", 10, 40), row("other", 10, 40, thread=2)],
        memory=[{"time": 25, "bytes": 100}, {"time": 35, "bytes": -30}, {"time": 36, "bytes": 7, "thread": 2}],
    )
    by_name = dict(zip(names(store), zip(store.self_bytes.tolist(), store.total_bytes.tolist(), strict=True), strict=True))
    assert by_name == {"outer": (-30, 70), "inner": (100, 100), "other": (7, 7)}
    assert store.mem_total.tolist() == [100, 70, 77]


def test_memory_outside_every_event_becomes_an_event():
    store = EventStore.from_rows(
        [row("op", 10, 20)], memory=[{"time": 30, "bytes": -8}, {"time": 5, "bytes": 3}, {"time": 15, "bytes": 8}]
    )
    assert names(store) == ["[memory]", "op", "[memory]"]
    assert store.kind.tolist() == [observer.MEMORY, observer.OP, observer.MEMORY]
    assert store.self_bytes.tolist() == [3, 8, -8]
    assert store.mem_event.tolist() == [0, 1, 2]
    assert store.parent.tolist() == [-1, -1, -1]


def test_stray_memory_between_nested_events_keeps_the_tree():
    store = EventStore.from_rows(
        [row("inner", 20, 30), row("outer", 10, 40), row("last", 60, 70)], memory=[{"time": 50, "bytes": -8}]
    )
    assert names(store) == ["outer", "inner", "[memory]", "last"]
    assert store.parent.tolist() == [-1, 0, -1, -1]


def test_memory_of_a_device_is_counted_apart():
    columns = {
        "name": [0],
        "kind": 0,
        "tid": 0,
        "start": [0],
        "end": [10],
        "mem_time": [1, 2],
        "mem_bytes": [5, 7],
        "mem_device_type": [0, 20],
    }
    store = EventStore.freeze(columns, names=["op"])
    assert (store.self_bytes.tolist(), store.self_device_bytes.tolist()) == ([5], [7])
    assert store.mem_total.tolist() == [5, 7]


# ---------------------------------------------------------------------- what views show


def test_an_only_child_named_like_its_parent_is_merged_into_it():
    store = EventStore.from_rows(
        [row("b", 30, 40), row("a", 20, 60), row("a", 10, 90, kind=observer.SCOPE)], memory=[{"time": 50, "bytes": 4}]
    )
    assert names(store) == ["a", "a", "b"]
    visible = store.visible
    assert names(visible) == ["a", "b"]
    assert visible.kind.tolist() == [observer.SCOPE, observer.OP]
    assert (visible.parent.tolist(), visible.self_ns.tolist(), visible.self_bytes.tolist()) == ([-1, 0], [70, 10], [4, 0])
    assert visible.ids.tolist() == [1, 3]


def test_steps_count_as_namesakes():
    store = EventStore.from_rows([row("ProfilerStep#2", 1, 2), row("ProfilerStep#1", 0, 3)])
    assert names(store.visible) == ["ProfilerStep#1"]


@pytest.mark.parametrize("hidden", ["aten::is_leaf", "aten::output_nr", "aten::_version", "profiler::_record_function_exit"])
def test_bookkeeping_is_not_shown(hidden):
    store = EventStore.from_rows([row("op", 12, 15), row(hidden, 10, 20), row("block", 0, 30)])
    assert names(store) == ["block", hidden, "op"]
    assert names(store.visible) == ["block", "op"]
    assert store.visible.parent.tolist() == [-1, 0]


def test_nothing_to_leave_out_shows_the_store_itself():
    store = EventStore.from_rows([row("op", 12, 15), row("block", 0, 30)])
    assert store.visible is store


# ---------------------------------------------------------------------- numbers and stacks


def test_ids_count_events_but_not_python_calls():
    store = EventStore.from_rows(
        [
            row("op", 3, 4),
            row("g", 2, 5, kind=observer.PYTHON),
            row("nn.Module: M_0", 1, 6, kind=observer.MODULE),
            row("f", 0, 7, kind=observer.PYTHON),
            row("op", 8, 9),
        ]
    )
    assert names(store) == ["f", "nn.Module: M_0", "g", "op", "op"]
    assert store.ids.tolist() == [0, 0, 0, 1, 2]
    assert store.python_id.tolist() == [1, 2, 3, -1, -1]
    assert store.python_parent_id.tolist() == [-1, 1, 2, -1, -1]


def test_backward_nodes_have_the_forward_stack_and_so_has_what_they_call():
    forward, backward, engine = ("model.py(3): forward",), ("train.py(9): backward",), observer.ENGINE
    store = EventStore.from_rows(
        [
            row("aten::mul", 0, 5, seq=7, stack=forward),
            row("aten::mul", 12, 13, stack=backward),
            row("MulBackward0", 11, 14, kind=observer.BACKWARD, seq=7, fwd_thread=1, stack=backward),
            row("evaluate", 10, 15, kind=engine, seq=7, fwd_thread=1, stack=backward),
            row("AccumulateGrad", 20, 21, kind=observer.BACKWARD, stack=backward),
        ]
    )
    stacks = [(name, None if at < 0 else store.stacks[at]) for name, at in zip(names(store), store.call_stack, strict=True)]
    assert stacks == [
        ("aten::mul", forward),
        ("evaluate", backward),
        ("MulBackward0", forward),
        ("aten::mul", forward),
        ("AccumulateGrad", None),
    ]


# ---------------------------------------------------------------------- joining


def test_joined_recordings_keep_their_order_and_their_time_zero():
    old = EventStore.from_rows(
        [row("a", 11, 12, stack=("x",)), row("b", 10, 13)], memory=[{"time": 20, "bytes": 1}], clock_start_ns=10
    )
    new = EventStore.from_rows([row("c", 101, 102, thread=5), row("a", 100, 103, overload="out")], clock_start_ns=100)
    both = EventStore.joined([new, old])
    assert names(both) == ["a", "c", "b", "a", "[memory]"]
    assert both.parent.tolist() == [-1, -1, -1, 2, -1]
    assert [both.threads[at].ident for at in both.tid] == [1, 5, 1, 1, 1]
    assert both.segments == ((0, 100), (2, 10))
    assert both.clock_start_ns == 100
    assert both.stacks[both.stack[3]] == ("x",)
    assert both.overloads[both.op[0]] == "out"
    assert both.mem_event.tolist() == [4]
    assert EventStore.joined([old]) is old


def test_meta_data_is_kept():
    store = EventStore.freeze(
        {"name": 0, "kind": 0, "tid": 0, "start": [3], "end": [9]},
        names=["a"],
        threads=[ThreadInfo(77, "worker")],
        options={"with_stack": True},
        metadata={"k": 1},
        trace_id="AB",
        clock_start_ns=2,
        wall_start_ns=50,
        pid=12,
    )
    assert (store.threads[0].ident, store.options, store.metadata, store.trace_id) == (
        77,
        {"with_stack": True},
        {"k": 1},
        "AB",
    )
    assert (store.clock_start_ns, store.clock_end_ns, store.wall_start_ns, store.pid) == (2, 9, 50, 12)


def test_many_rows_of_many_threads_in_any_order():
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(300):
        begin = int(rng.integers(0, 1000))
        rows.append(row(f"op{rng.integers(5)}", begin, begin + int(rng.integers(0, 50)), thread=int(rng.integers(1, 4))))
    store = EventStore.from_rows(rows)
    inner = np.flatnonzero(store.parent >= 0)
    above = store.parent[inner]
    assert (above < inner).all()
    assert (store.tid[inner] == store.tid[above]).all()
    assert (store.start[above] <= store.start[inner]).all()
    assert (store.end[inner] <= store.end[above]).all()


@pytest.mark.parametrize("values", [[], [3], [2, 2, 2], [5, -1, 5, 0, -1], [[4, 1], [1, 4]]])
def test_distinct_values(values):
    column = np.array(values, np.int64)
    assert distinct_values(column).tolist() == sorted(set(column.ravel().tolist()))
