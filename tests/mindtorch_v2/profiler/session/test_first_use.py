"""Compiling an op at its first use: told for itself, and not in corrected times."""

from __future__ import annotations

import json
import subprocess
import sys
from time import perf_counter_ns

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load, profile, record_function, validate
from mindtorch_v2.profiler.analysis.first_use import first_use_ns, first_use_text
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.store.store import EventStore, ThreadInfo

WAIT_NS = 3_000_000

PROGRAM = """
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
x = torch.ones(3, requires_grad=True)
for _ in range(2):
    with profile() as prof:
        torch.erfinv(x).sum().backward()
    print(sorted({op for _, _, op, _ in prof.profiler.store.first_uses}))
"""


def test_ops_are_noted_at_their_first_call_and_no_other():
    first, second = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "'aten::erfinv'" in first and "'aten::sum'" in first
    assert second == "['aten::add_']"  # by which the second gradient is added to the first


def compile_slowly(op):
    begun = perf_counter_ns()
    while perf_counter_ns() - begun < WAIT_NS:
        pass
    observer.note_first_use(op, begun)


def test_corrected_times_of_a_range_are_without_it(tmp_path, capsys):
    with profile():
        torch.ones(3)  # compiled now
    compile_slowly("aten::before")
    with profile() as prof:
        with record_function("block"):
            torch.ones(3)
            compile_slowly("aten::made_up")
        compile_slowly("aten::outside")
    compile_slowly("aten::after")
    store = prof.profiler.store
    assert [op for _, _, op, _ in store.first_uses] == ["aten::made_up", "aten::outside"]
    row = [store.names[name] for name in store.name].index("block")
    start, end, _, _ = store.first_uses[0]
    assert store.self_ns[row] == store.duration[row] - store.children_ns[row]
    assert store.first_use_ns[row] == end - start
    for recorded, corrected in ((store.self_ns, prof.overhead().self_ns), (store.duration, prof.overhead().duration_ns)):
        assert 0 <= recorded[row] - corrected[row] - (end - start) < WAIT_NS
    assert not [problem for problem in validate(prof) if problem.severity == "error"]
    path = str(tmp_path / "run.mtp")
    prof.save(path)
    assert load(path).store.first_use_ns[row] == end - start
    assert main(["table", path]) == 0
    assert first_use_text(store) in capsys.readouterr().out
    assert main(["table", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first_use_ns"] == first_use_ns(store) >= 2 * WAIT_NS


def test_on_another_thread_it_is_no_part_of_a_row():
    rows = {"name": [0], "kind": observer.SCOPE, "tid": [0], "start": [10], "end": [100]}
    for thread, part in ((1, 30), (2, 0), (3, 0)):
        store = EventStore.freeze(
            rows,
            names=["block"],
            threads=[ThreadInfo(1, "a"), ThreadInfo(2, "b")],
            options={"first_uses": [(20, 50, "aten::neg", thread)]},
        )
        assert (store.self_ns.tolist(), store.first_use_ns.tolist()) == ([90], [part])
    assert first_use_text(store).startswith("First use of 1 op: 30 ns of compiling, once in a process. It is in the times of")
