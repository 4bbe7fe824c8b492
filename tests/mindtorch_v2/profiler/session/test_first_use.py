"""Compiling an op at its first use: a row of its own, in no other row's self time, and in no list of events."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from contextlib import ExitStack
from time import perf_counter_ns

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load, profile, record_function, validate
from mindtorch_v2.profiler.analysis.first_use import first_use_ns, first_use_text, ops_used_first
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.event_list import EventList

pytestmark = pytest.mark.first_use

WAIT_NS = 3_000_000

PROGRAM = """
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.analysis.first_use import ops_used_first
x = torch.ones(3, requires_grad=True)
for _ in range(2):
    with profile() as prof:
        torch.erfinv(x).sum().backward()
    print(ops_used_first(prof.profiler.store))
"""


def test_ops_are_noted_at_their_first_call_and_no_other():
    first, second = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "'aten::erfinv'" in first and "'aten::sum'" in first
    assert second == "['aten::add_']"  # by which the second gradient is added to the first


DRAWS = """
import sys
import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import profile
began = []
class Finder:  # the one that is asked first
    def find_spec(self, name, *rest):
        if name.startswith("numpy.random."):
            began.append(observer.clock())
sys.meta_path.insert(0, Finder())
with profile() as prof:
    torch.randn(3, 4)
store = prof.profiler.store
rows = [row for row in range(len(store)) if store.start[row] <= began[0] <= began[-1] <= store.end[row]]
print([store.names[store.name[row]] for row in rows])
"""


def test_loading_the_generators_is_part_of_the_first_use_of_an_op_that_draws():
    printed = subprocess.run([sys.executable, "-c", DRAWS], capture_output=True, text=True, check=True).stdout
    assert printed == "['first use of aten::randn']\n"


def compile_slowly(op):
    begun = perf_counter_ns()
    while perf_counter_ns() - begun < WAIT_NS:
        pass
    observer.note_first_use(op, begun)


def recorded(**options):
    """A block with a first use in it, one outside of it, and one before and after the recording."""
    with profile(**options):
        torch.ones(3)  # compiled now
    compile_slowly("aten::before")
    with profile(**options) as prof:
        with record_function("block"):
            torch.ones(3)
            compile_slowly("aten::made_up")
        compile_slowly("aten::outside")
    compile_slowly("aten::after")
    return prof


@pytest.mark.parametrize("recordings", [1, 2])
def test_code_that_notes_the_arguments_of_an_op_is_a_first_use_too(recordings):
    """Of each list of argument types once in a process, where shapes are recorded; after the op, whose time it is not."""
    library = torch.library.Library(f"first_use_of_inputs{recordings}", "DEF")
    library.define(
        f"inner(Tensor x, {'float[] a, ' * recordings}str? b, bool? c, int[] d) -> Tensor".replace("a, float", "z, float")
    )
    library.impl("inner", lambda x, *more: x.clone(), "CPU")
    op, x = getattr(torch.ops, f"first_use_of_inputs{recordings}").inner, torch.ones(3)
    arguments = (x, *[[1.0]] * recordings, None, None, [2])
    op(*arguments)
    found = []
    for _ in range(2):
        with ExitStack() as stack:
            profiles = [stack.enter_context(profile(record_shapes=True)) for _ in range(recordings)]
            stack.enter_context(record_function("block"))
            for _ in range(2):
                op(*arguments)
        for prof in profiles:
            store = prof.profiler.store
            names = [store.names[name] for name in store.name]
            found.append([name for name in names if "first_use_of_inputs" in name])
            assert not [problem for problem in validate(prof) if problem.severity == "error"]
            around = {names[store.parent[row]] for row, name in enumerate(names) if "first_use_of_inputs" in name}
            assert around == {"block"}
    name = f"first_use_of_inputs{recordings}::inner"
    first = [name, f"first use of {name}", name] if recordings == 1 else [name, name]
    assert found == [first] * recordings + [[name, name]] * recordings


def lines_of(table):
    cells = (line.rsplit(maxsplit=6) for line in table.splitlines())
    return {each[0].strip(): each[1:] for each in cells if len(each) == 7 and each[1].endswith("%") and each[-1].isdigit()}


def ancestors(store, row):
    while (row := int(store.parent[row])) >= 0:
        yield row


OPTIONS = [{}, {"record_shapes": True, "profile_memory": True}, {"with_stack": True}, {"max_memory_mb": 64.0, "mode": "ring"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_a_row_and_in_no_self_time(options):
    prof = recorded(**options)
    store = prof.profiler.store
    assert ops_used_first(store) == ["aten::made_up", "aten::outside"]
    named = {store.names[name]: row for row, name in enumerate(store.name.tolist())}
    block, inner, outer = (named[name] for name in ("block", "first use of aten::made_up", "first use of aten::outside"))
    assert block in ancestors(store, inner) and block not in ancestors(store, outer)
    assert min(store.duration[[inner, outer]]) >= WAIT_NS
    assert store.self_ns[block] == store.duration[block] - store.children_ns[block]
    cost = prof.overhead()
    assert store.duration[block] - cost.duration_ns[block] >= store.self_ns[inner]  # corrected times are without
    assert cost.self_ns[inner] == 0
    assert not [problem for problem in validate(prof) if problem.severity == "error"]


def test_lists_of_events_have_none_of_them():
    prof = recorded()
    events = prof.events()
    outermost = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    outside = prof.profiler.store.duration[prof.profiler.store.is_first_use][1] / 1000
    assert events.self_cpu_time_total == pytest.approx(outermost)  # torch's self times: with what was compiled inside
    assert prof.key_averages().self_cpu_time_total == pytest.approx(outermost + outside)
    names = [event.name for event in events]
    assert names == ["block", "aten::ones", "aten::empty", "aten::fill_"]
    assert [average.key for average in prof.key_averages()] == names
    assert [event.name() for event in prof.profiler.kineto_results.events()] == names
    block = prof.events()[0]
    inner = prof.profiler.store.duration[prof.profiler.store.is_first_use][0] / 1000
    children = sum(child.cpu_time_total for child in block.cpu_children)
    assert block.self_cpu_time_total == pytest.approx(block.cpu_time_total - children)
    averaged = {each.key: each for each in prof.key_averages()}
    assert averaged["block"].self_cpu_time_total == pytest.approx(block.self_cpu_time_total - inner)
    assert [event.id for event in prof.events()] == list(range(block.id, block.id + 4))
    kept = pickle.loads(pickle.dumps(prof.events()))
    assert kept[0].self_cpu_time_total == block.self_cpu_time_total
    assert kept.key_averages().table() == prof.key_averages().table()


def test_the_table_has_them_as_one_row_and_adds_up():
    averages = recorded().key_averages()
    rows = lines_of(averages.table(sort_by="self_cpu_time_total"))
    shares = [float(cells[0].rstrip("%")) for cells in rows.values()]
    assert next(iter(rows)) == "first use of ops"
    assert rows["first use of ops"][-1] == "2"
    assert sum(shares) == pytest.approx(100, abs=0.05)
    assert max(float(cells[2].rstrip("%")) for cells in rows.values()) <= 100
    assert list(lines_of(averages.table(top_level_events_only=True))) == ["block"]
    events = lines_of(recorded().events().table(sort_by="id"))
    assert events["first use of ops"][-1] == "1"  # the other one is in the block's event
    assert sum(float(cells[0].rstrip("%")) for cells in events.values()) == pytest.approx(100, abs=0.05)
    assert "first use of ops" in averages._repr_html_()


def test_no_row_without_a_first_use():
    with profile():
        torch.ones(3)
    with profile() as prof:
        torch.ones(3)
    assert not prof.profiler.store.is_first_use.any()
    assert "first use" not in prof.key_averages().table() + first_use_text(prof.profiler.store)


def test_files_traces_and_stacks_have_them(tmp_path, capsys):
    prof = recorded(with_stack=True)
    store = prof.profiler.store
    rows = ["first use of aten::made_up", "first use of aten::outside"]
    for name in ("run.mtp", "trace.json", "trace.pftrace"):
        path = str(tmp_path / name)
        prof.save(path) if name == "run.mtp" else main(["convert", str(tmp_path / "run.mtp"), "-o", path])
        read = load(path).store
        assert [read.names[name] for name in read.name[read.is_first_use]] == rows
        assert np.abs(read.duration[read.is_first_use] - store.duration[store.is_first_use]).max() < 1000
        assert not [problem for problem in validate(path) if problem.severity == "error"]
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in trace if event["name"].startswith("first use of ")] == rows
    assert {event["cat"] for event in trace if event["name"] in rows} == {"first_use"}
    frames = prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total") or (tmp_path / "stacks").read_text()
    assert [line.rsplit(";", 1)[1].rsplit(maxsplit=1)[0] for line in frames.splitlines() if "first_use_of" in line] == [
        name.replace(" ", "_") for name in rows
    ]
    capsys.readouterr()
    assert main(["table", str(tmp_path / "run.mtp")]) == 0
    assert first_use_text(store) in capsys.readouterr().out
    assert main(["table", str(tmp_path / "run.mtp"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first_use_ns"] == first_use_ns(store) > 0


def test_a_row_inside_of_one_keeps_its_time():
    rows = [
        {"name": "import numpy", "kind": observer.PYTHON, "start": 30, "end": 40},
        {"name": "first use of aten::neg", "kind": observer.FIRST_USE, "start": 20, "end": 50},
        {"name": "block", "kind": observer.SCOPE, "start": 10, "end": 100},
    ]
    store = EventStore.from_rows(rows)
    assert store.self_ns.tolist() == [60, 20, 10]
    visible = store.visible
    assert (visible.self_ns.tolist(), visible.parent.tolist()) == ([60, 10], [-1, 0])
    assert EventList.from_store(EventStore.joined([store, store])).self_cpu_time_total == pytest.approx(0.18)
    assert first_use_text(store).startswith("First use of 1 op: 20 ns of setting up, once in a process; it is the row")


def test_the_tree_that_torch_has_is_without_first_uses():
    prof = recorded(with_stack=True, profile_memory=True)
    roots = prof.profiler.kineto_results.experimental_event_tree()
    names, left = [], list(roots)
    while left:
        event = left.pop()
        names.append(event.name)
        left += event.children
    assert {"block", "aten::ones"} <= set(names)
    assert [name for name in names if name.startswith("first use")] == []
    assert any(name.startswith("first use") for name in prof.profiler.store.names)
