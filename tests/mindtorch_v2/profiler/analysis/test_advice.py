"""Advice: every rule has a recording that triggers it and one, as close as possible, that does not."""

from __future__ import annotations

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.advice import RULES, advise, missing, rules
from mindtorch_v2.profiler.analysis.advice._evidence import in_closures, in_own_spans, passes, recorded_ns
from mindtorch_v2.profiler.analysis.steps import main_thread
from mindtorch_v2.profiler.store.store import EventStore, InputInfo, RowDetails

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


def items(per_step, name="aten::item", under=None, each=50_000):
    rows = [row(name, 1000 + 2 * each * n, 1000 + 2 * each * n + each) for n in range(per_step)]
    if under:
        rows.append(row(under, 0, 9 * MS, observer.SCOPE))
    return EventStore.from_rows(inside(rows))


def python(ns, function="train.py(9): step", scope=None, faster=1):
    """A function of the user's that spends some time itself, beside an op, and a call that waits in a builtin.

    faster: all of it takes so many times less.
    """
    rows = [
        row("aten::mm", MS, 2 * MS, stack=("train.py(10): step", "train.py(40): <module>")),
        row("<built-in function sorted>", 2 * MS, 2 * MS + ns, observer.PYTHON),
        row(function, 0, 3 * MS + ns, observer.PYTHON, stack=("train.py(40): <module>",)),
    ]
    rows[0]["start"] = 3 * MS + ns - 2 * MS
    rows[0]["end"] = 3 * MS + ns
    rows[1]["start"], rows[1]["end"] = 0, ns
    if scope:
        rows.append(row(scope, 0, 9 * MS, observer.SCOPE))
    brief = [{**each, "start": each["start"] // faster, "end": each["end"] // faster} for each in inside(rows)]
    return EventStore.from_rows(brief)


def loop(times, ops=("aten::select", "aten::dot"), dims=(64,), stack=STACK[1:], under=None):
    """A line that calls the same ops again and again, ten microseconds each, with Python in between."""
    rows = []
    for n in range(times):
        for at, op in enumerate(ops):
            begin = 40_000 * n + 20_000 * at
            values = (None, n) if op == "aten::select" else (None, None)
            info = InputInfo((dims, ()), ("float", "Scalar"), (dims, ()), values)
            rows.append(row(op, begin, begin + 10_000, inputs=info, stack=stack))
    if under:
        rows.append(row(under, 0, 9 * MS, observer.SCOPE))
    return EventStore.from_rows(inside(rows, length=20 * MS))


def cats(count, grows=True, ns=200_000):
    rows = []
    for n in range(count):
        dims = ((8 + 8 * n * grows, 16), (8, 16))
        rows.append(
            row(
                "aten::cat",
                ns * n,
                ns * n + ns // 2,
                inputs=InputInfo((dims, ()), ("TensorList", "Scalar"), (dims, ()), (None, 0)),
            )
        )
    return EventStore.from_rows(inside(rows, 1, 20 * MS))


def converted(number, ns=2 * MS, kind="c10::Half"):
    info = InputInfo(((4, 4), ()), (kind, "Scalar"), ((4, 1), ()), (None, number))
    return EventStore.from_rows(inside([row("aten::_to_copy", 0, ns, inputs=info), row("aten::to", 0, ns + 10)]))


def device(kernels, ns, every, copies=0, name="Memcpy HtoD (Pageable -> Device)", syncs=0, loader=False):
    """Kernels of `ns` launched at intervals; copies after them; waits of the host, each followed by idle time."""
    rows = []
    for n in range(kernels):
        begin = every * n
        host = {"kind": observer.OP, "stack": STACK}
        rows.append({"name": "aten::mm", "start": begin, "end": begin + 2000, **host})
        rows.append(kernel("gemm", begin + 1500, begin + 1500 + ns))
    for n in range(syncs):
        begin = every * n + 2500
        rows.append({"name": "cudaStreamSynchronize", "kind": observer.RUNTIME, "start": begin, "end": begin + ns})
        rows.append(row("aten::item", begin - 100, begin + ns + 100))
    for n in range(copies):
        begin = 5 * MS + MS * n
        rows.append(row("aten::copy_", begin - 1000, begin))
        rows.append(kernel(name, begin, begin + MS // 2, observer.COPY))
    if loader:
        rows.append(row("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 5 * MS, 9 * MS, observer.SCOPE))
    return EventStore.from_rows(inside(rows))


def collective(start, end, name="ncclDevKernel_AllReduce"):
    """A kernel of 3 ms, and another one beside it on a second stream."""
    launches = [row("aten::mm", 0, 2000), row("c10d::allreduce_", start - 1000, start - 200)]
    work = [kernel("gemm", 1000, 3 * MS), {**kernel(name, start, end), "stream": 20}]
    return EventStore.from_rows(inside([*launches, *work]))


def ascend_copies(task):
    """Copies as a folder of an NPU's profiler has them: all of one name, the task says of what kind."""
    told = RowDetails("", f'{{"Task Type":"{task}"}}')
    rows = [row("aten::mm", 0, 2000), {**kernel("MatMul", 1500, 900_000), "device_type": 20}]
    for n in range(3):
        more = {"device_type": 20, "details": told}
        rows.append({**kernel("MEMCPY_ASYNC", 5 * MS + MS * n, 5 * MS + MS * n + MS // 2, observer.COPY), **more})
    return EventStore.from_rows(inside(rows))


def kernel(name, start, end, kind=observer.KERNEL):
    more = {"device_type": 1, "device_index": 0, "stream": 7, "launch_thread": 1, "launch_ns": start - 600}
    return {"name": name, "kind": kind, "start": start, "end": end, **more}


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
            nodes_run = [(begin + 8 * MS + 10_000 * op, 10 * n + op) for op in range(10)]
            rows += [row("MulBackward0", at, at + 9000, observer.BACKWARD, seq=seq, fwd_thread=1) for at, seq in nodes_run]
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


def optimizer(op, parameters, ns=20_000, kinds=1):
    rows = [row(op + "_" * (n % kinds), 10 + 2 * ns * n, 10 + 2 * ns * n + ns) for n in range(parameters)]
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
    "python_between_ops": (
        (python(3 * MS), "3 ms a step at train.py(12), most of it in <built-in function sorted>"),
        [
            python(MS // 4),
            python(3 * MS, faster=500),
            python(3 * MS, scope="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
            python(3 * MS, function="mindtorch_v2/optim/adam.py(9): step"),
        ],
    ),
    "device_idle": ((device(10, 20_000, 900_000), "The device is idle for 98% of the time"), [device(10, 850_000, 900_000)]),
    "exposed_communication": (
        (collective(2 * MS, 6 * MS), "4 collectives took 16 ms, 12 ms of it while nothing was computed"),
        [collective(MS, 3 * MS), collective(2 * MS, 6 * MS, name="gemm")],
    ),
    "device_sync": (
        (device(10, 200_000, 900_000, syncs=5), "20 calls waited 4 ms"),
        [device(10, 200_000, 900_000, syncs=1), device(10, 200_000, 900_000)],
    ),
    "device_copies": (
        (device(4, 900_000, MS, copies=3), "pin_memory=True"),
        [device(4, 900_000, MS), device(4, 900_000, MS, copies=3, name="Memcpy DtoD (Device -> Device)")],
    ),
    "small_kernels": (
        (device(150, 3000, 50_000), "150 kernels a step"),
        [device(20, 3000, 50_000), device(150, 45_000, 50_000)],
    ),
    "host_sync": ((items(3), "12 calls"), [items(1), items(3, under="Optimizer.step#Adam.step"), items(3, "aten::add")]),
    "row_loop": (
        (loop(200), "aten::dot: 800 calls on [64]"),
        [
            loop(6),
            loop(200, ("aten::mul", "aten::dot")),
            loop(200, stack=("mindtorch_v2/nn/modules/rnn.py(7): forward", *STACK[1:])),
            loop(200, under="Optimizer.step#SGD.step"),
        ],
    ),
    "repeated_op": ((loop(200, ("aten::mul", "aten::dot")), "200 times a step"), [loop(6, ("aten::mul",)), loop(200)]),
    "growing_tensor": ((cats(40), "40 calls took 4 ms, with 256 to 5,248 elements"), [cats(40, grows=False), cats(6)]),
    "conversions": (
        (converted(6), "4 of [4, 4] from Half to float"),
        [converted(5), converted(6, ns=100_000), converted(6, kind="float")],
    ),
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
        [
            optimizer("aten::_foreach_add_", 20),
            optimizer("aten::add_", 4),
            optimizer("aten::add_", 20, ns=500),
            optimizer("aten::add_", 20, kinds=4),
        ],
    ),
    "memory_growth": ((memory(freed=False), "1 MB a step"), [memory(freed=True)]),
    "gc_pauses": (
        (pauses(2 * MS), "1 of generation 0, 3 of generation 2"),
        [pauses(100_000), pauses(3 * MS, 1), pauses(3 * MS, 2), EventStore.from_rows([])],
    ),
}


# A collection belongs to no line, and what these see of the host is not on one.
WITHOUT_LINE = {"gc_pauses"}


def test_every_rule_has_cases():
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize("name", RULES)
def test_rule_fires_with_evidence_and_place(name):
    (store, text), _ = CASES[name]
    (finding,) = rules()[name](store)
    assert finding.rule == name
    assert text in str(finding)
    assert finding.where == (None if name in WITHOUT_LINE else "train.py(12)")
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
        *(row("aten::item", 5 * MS + 100_000 * n, 5 * MS + 100_000 * n + 50_000) for n in range(3)),
        row("aten::mm", 5_400_000, 9_900_000),
    ]
    findings = advise(EventStore.from_rows(inside(rows)))
    assert [finding.rule for finding in findings] == ["data_loader_wait", "host_sync"]
    assert findings[0].to_dict()["gain_ns"] == 16 * MS


def test_an_interruption_does_not_hide_tiny_ops():
    """A few of the ops were interrupted for longer than all others took together."""
    rows = [row("aten::add", 4000 * n, 4000 * n + 2000) for n in range(1500)]
    late = [row("aten::add", 10 * MS + 5 * MS * n, 14 * MS + 5 * MS * n) for n in range(5)]
    (finding,) = rules()["tiny_ops"](EventStore.from_rows([*rows, *late]))
    assert "1,504 of 1,504 ops took 3.01 ms together" in str(finding)


def test_a_machine_of_two_speeds_does_not_hide_tiny_ops():
    """Views cost half as much as arithmetic, and from the middle on everything takes twice as long."""
    costs = {"aten::select": 700, "aten::add": 1600, "aten::mul": 1600}
    rows = [
        row(name, 10_000 * n + 3500 * at, 10_000 * n + 3500 * at + cost * (1 + (n >= 300)))
        for n in range(600)
        for at, (name, cost) in enumerate(costs.items())
    ]
    (finding,) = rules()["tiny_ops"](EventStore.from_rows(rows))
    assert "1,797 of 1,797 ops" in str(finding)


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


def test_gains_below_a_hundredth_are_not_told():
    assert [finding.rule for finding in advise(items(3, each=1000))] == ["python_between_ops"]
    assert rules()["host_sync"](items(3, each=1000))


@pytest.mark.parametrize(("task", "expected"), [("PCIE_DMA_SQE", True), ("SDMA_SQE", False)])
def test_copies_of_an_npu_are_known_by_their_task(task, expected):
    assert ("device_copies" in {finding.rule for finding in advise(ascend_copies(task))}) is expected


@pytest.mark.parametrize("of_cuda", [True, False])
def test_cuda_graphs_are_advised_for_cuda(of_cuda):
    rows = [row("aten::mm", 50_000 * n, 50_000 * n + 2000) for n in range(150)]
    device_type = 1 if of_cuda else 20
    rows += [{**kernel("k", 50_000 * n + 1500, 50_000 * n + 4500), "device_type": device_type} for n in range(150)]
    details = {finding.rule: finding.detail for finding in advise(EventStore.from_rows(inside(rows)))}
    assert all(("CUDA graphs" in details[rule]) is of_cuda for rule in ("small_kernels", "device_idle"))


def test_the_hosts_time_is_not_told_while_the_device_is_at_work():
    busy = device(10, 990_000, MS)
    assert advise(busy) == []
    assert rules()["python_between_ops"](EventStore.from_rows(inside([row("aten::mul", 0, MS)])))


@pytest.mark.parametrize(
    ("backward_thread", "other_optimizer", "expected"),
    [(1, False, ["aten::mul"]), (2, False, ["aten::mul"]), (2, True, []), (None, False, [])],
    ids=["same thread", "thread of a device", "another training", "no closure"],
)
def test_what_a_closure_does_is_no_update(backward_thread, other_optimizer, expected):
    """`optimizer.step(closure)`, as Lightning calls it: the optimizer's own work begins after the backward pass."""
    rows = [row("Optimizer.step#SGD.step", 0, 900, observer.SCOPE), row("aten::mul", 10, 20), row("aten::add_", 800, 810)]
    if backward_thread:
        rows.append(row("autograd::engine::evaluate_function: MulBackward0", 100, 200, observer.ENGINE, thread=backward_thread))
    if other_optimizer:
        rows.append(row("Optimizer.step#SGD.step", 300, 400, observer.SCOPE, thread=2))
    store = EventStore.from_rows(rows)
    ops = store.kind == observer.OP
    assert [store.names[name] for name in store.name[in_closures(store) & ops]] == expected
    assert (in_own_spans(store) | in_closures(store))[ops].all() and not (in_own_spans(store) & in_closures(store)).any()


def test_only_the_update_counts_for_the_optimizer():
    forward = [row(f"aten::op{n % 3}", 40_000 * n, 40_000 * n + 20_000) for n in range(30)]
    backward = row("autograd::engine::evaluate_function: MulBackward0", 2 * MS, 3 * MS, observer.ENGINE)
    update = [row("aten::add_", 3 * MS + 40_000 * n, 3 * MS + 40_000 * n + 20_000) for n in range(20)]
    step = row("Optimizer.step#SGD.step", 0, 4 * MS, observer.SCOPE)
    (finding,) = rules()["single_tensor_optimizer"](EventStore.from_rows(inside([*forward, backward, *update, step])))
    assert "20 ops of 1 kinds in a step" in str(finding)
    assert not rules()["single_tensor_optimizer"](EventStore.from_rows(inside([*forward, backward, *update[:4], step])))


def test_a_wait_inside_a_copy_is_no_copying():
    """The host waits for the device in a copy of one number: that is a wait."""
    rows = [
        row("aten::copy_", 0, 5 * MS),
        {"name": "cudaStreamSynchronize", "kind": observer.RUNTIME, "start": 10_000, "end": 5 * MS - 10_000},
        kernel("gemm", 100_000, 4_900_000),
    ]
    store = EventStore.from_rows(inside(rows))
    assert rules()["copies"](store) == []
    assert rules()["copies"](EventStore.from_rows(inside([rows[0]])))


@pytest.mark.parametrize(
    ("types", "said", "not_said"),
    [(("float", "double"), "float64", "half precision"), (("float", "c10::BFloat16"), "half precision", "float64")],
)
def test_promotion_speaks_of_the_types_that_are_mixed(types, said, not_said):
    (finding,) = rules()["promotion"](typed(*types))
    assert said in finding.detail
    assert not_said not in finding.detail


@pytest.mark.parametrize("count, whole", [(4, "steps"), (1, "recording")])
def test_a_share_says_what_it_is_of(count, whole):
    rows = inside([row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 6 * MS, observer.SCOPE)], count)
    (finding,) = [each for each in advise(EventStore.from_rows(rows)) if each.rule == "data_loader_wait"]
    assert f"% of the {whole})" in str(finding).splitlines()[0]
    assert list(finding.to_dict()) == ["rule", "title", "detail", "evidence", "where", "gain_ns", "share"]


def test_lines_of_a_dataset_are_named():
    """Most of a fetch is spent in __getitem__, on a line that calls sorted."""
    inner = ("data.py(8): __getitem__", "mindtorch_v2/utils/data/dataloader.py(9): _next", "train.py(12): step")
    rows = [
        row("<built-in function sorted>", 10, 2 * MS, observer.PYTHON, stack=inner),
        row("data.py(5): __getitem__", 5, 2 * MS + 5, observer.PYTHON, stack=inner[1:]),
        row("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 3 * MS, observer.SCOPE),
    ]
    (finding,) = rules()["data_loader_wait"](EventStore.from_rows(inside(rows)))
    assert finding.where == "data.py(8)"
    assert "8 ms of it at data.py(8)" in str(finding)


def test_steps_are_found_by_optimizer_steps():
    """Without step() the passes are those of the optimizer; what is before the first is not in them."""
    rows = [row("aten::item", 50 * MS + 10_000 * n, 50 * MS + 10_000 * n + 5000) for n in range(100)]
    for n in range(6):
        begin = 100 * MS + 10 * MS * n
        rows += [row("aten::mm", begin, begin + 8 * MS), row("aten::add_", begin + 9 * MS, begin + 9 * MS + 1000)]
        rows.append(row("Optimizer.step#SGD.step", begin + 8 * MS, begin + 10 * MS - 1, observer.SCOPE))
    store = EventStore.from_rows(rows)
    assert passes(store).count == 5
    assert recorded_ns(store) == 50 * MS
    assert advise(store) == []


def test_steps_are_found_by_the_line_that_comes_up_over_the_whole_recording():
    once = ("train.py(3): setup",)
    rows = [row("aten::randn", 1000 * n, 1000 * n + 500, stack=once) for n in range(5)]
    for n in range(8):
        begin = MS + 5 * MS * n
        rows += [row("aten::mm", begin + 100_000 * k, begin + 100_000 * k + 90_000, stack=STACK[1:]) for k in range(20)]
        rows.append(row("aten::argmax", begin + 3 * MS, begin + 4 * MS, stack=("train.py(20): step", "train.py(40): <module>")))
    store = EventStore.from_rows(rows)
    assert passes(store).count == 7
    assert set(passes(store).steps.duration.tolist()) == {5 * MS}


def test_layers_of_one_call_and_their_making_are_no_steps():
    """Eight equal layers: made on one line, then called by one call of the model."""
    inner = ("mindtorch_v2/nn/modules/linear.py(50): forward", *STACK)
    made = ("mindtorch_v2/nn/modules/linear.py(20): __init__", "train.py(5): <module>")
    layers = [row("aten::linear", MS + MS * n, 2 * MS + MS * n - 10, stack=inner) for n in range(8)]
    model = row("mindtorch_v2/nn/modules/container.py(9): forward", MS - 10, 10 * MS, observer.PYTHON)
    making = [row("aten::uniform_", 1000 * n, 1000 * n + 500, stack=made) for n in range(8)]
    assert passes(EventStore.from_rows([*layers, model])).count == 1
    assert passes(EventStore.from_rows(making)).count == 1
    assert passes(EventStore.from_rows(layers)).count == 7


def test_what_surrounds_the_loop_is_no_python_between_ops():
    """Of six steps the first and the last have half a millisecond of another line, as what starts and ends a loop takes."""
    outside = [
        row("<built-in function sorted>", at, at + 5 * MS, observer.PYTHON, stack=("train.py(50): <module>",))
        for at in (10, 54 * MS)
    ]
    main = row("train.py(1): <module>", 0, 60 * MS, observer.PYTHON, stack=())
    work = inside([row("aten::mm", 0, 4 * MS)], 6)
    for each in work:
        each["start"] += 5 * MS + 20 if each["name"] == "aten::mm" else 0
        each["end"] += 5 * MS if each["name"] == "aten::mm" else 0
    findings = rules()["python_between_ops"](EventStore.from_rows([main, *outside, *work]))
    assert "train.py(50)" not in [finding.where for finding in findings]


@pytest.mark.parametrize(
    ("gap", "sleep", "told"),
    [(1, 5, "a step at train.py(13), most of it in <built-in"), (5, 1, "train.py(13), or after line 11")],
)
def test_where_python_time_is_is_told_by_most_of_it(gap, sleep, told):
    """Each step has an op and a call on line 11, then time in Python, then a sleep on line 13."""
    rows = []
    for step in range(4):
        at = step * 20 * MS
        called = at + (1 + gap) * MS
        ends = called + sleep * MS
        rows += [
            row("aten::mm", at + 10, at + MS - 20, stack=("train.py(11): train",)),
            row("<built-in function len>", at + MS - 10, at + MS, observer.PYTHON, stack=("train.py(11): train",)),
            row("<built-in function sleep>", called, ends, observer.PYTHON, stack=("train.py(13): train",)),
            row("train.py(9): train", at + 5, ends, observer.PYTHON, stack=()),
            row(f"ProfilerStep#{step}", at, ends, observer.STEP, stack=()),
        ]
    (finding,) = rules()["python_between_ops"](EventStore.from_rows(rows))
    assert finding.where == "train.py(13)" and told in finding.evidence[1]
    assert finding.evidence[1].count("after line") == told.count("after line")


def waiting_thread(count=4, length=10 * MS):
    """Calls of another thread that waits: one for all of the recording, in which a short one comes again and again."""
    worker = ("worker.py(5): serve",)
    calls = [row("<built-in method acquire>", at * MS, (at + 1) * MS - 10, observer.PYTHON) for at in range(count * 10)]
    calls.append(row("worker.py(3): serve", 0, count * length, observer.PYTHON))
    return [{**call, "stack": worker, "thread": 7} for call in calls]


@pytest.mark.parametrize("marked", [True, False], ids=["steps", "no-steps"])
def test_a_thread_that_waits_is_not_the_main_one(marked):
    work = inside([row("aten::mm", 0, 4 * MS), row("aten::item", 4 * MS, 6 * MS)])
    rows = [each for each in work if marked or each["kind"] != observer.STEP]
    rows.append(row("train.py(1): <module>", 0, 40 * MS, observer.PYTHON, stack=()))
    alone, beside = (EventStore.from_rows([*rows, *others]) for others in ([], waiting_thread()))
    assert (beside.tid[beside.kind == observer.OP] == main_thread(beside)).all()
    assert recorded_ns(beside) == recorded_ns(alone) > 0
    assert [finding.rule for finding in advise(beside)] == [finding.rule for finding in advise(alone)]


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({"stack": None}, ["stack", "shapes", "memory"]),
        ({}, ["shapes", "memory"]),
        ({"inputs": InputInfo(((4,),), ("float",), ((1,),), (None,))}, ["memory"]),
    ],
)
def test_what_was_not_recorded_is_told_with_its_option(more, options):
    told = missing(EventStore.from_rows([row("aten::mul", 0, 10, **more)]))
    assert [each.option for each in told] == options
    assert all(str(each).endswith(f"record with --{each.option}") for each in told)


def test_nothing_is_missing_of_an_empty_recording():
    assert missing(EventStore.from_rows([])) == []
    assert missing(memory(freed=True))[-1].option == "shapes"


def test_python_time_without_lines_says_how_to_record_them():
    rows = inside([row("aten::mm", 0, 2 * MS, stack=None)])
    (finding,) = rules()["python_between_ops"](EventStore.from_rows(rows))
    assert finding.where is None
    assert "--stack" in finding.detail
    assert finding.gain_ns == 32 * MS


def test_idle_time_of_a_device_is_a_part_of_the_whole_steps():
    """Also where a call of the host was held up, which other rules leave out of the time of the steps."""
    rows = []
    npu = {"device_type": 20, "device_index": 0, "stream": 1, "launch_thread": 1}
    for step in range(2):
        at = step * 1_000_000
        rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": at, "end": at + 1_000_000, "step": step})
        for number in range(10):
            start = at + 15_000 * number
            length = 800_000 if step == 1 and number == 9 else 10_000
            rows.append({"name": "aten::mm", "start": start, "end": start + length, "step": step})
        work = {"name": "Mm", "kind": observer.KERNEL, "start": at + 5_000, "end": at + 105_000, "step": step}
        rows.append({**work, "launch_ns": at + 1_000, **npu})
    found = next(finding for finding in advise(EventStore.from_rows(rows)) if finding.rule == "device_idle")
    assert (found.gain_ns, found.share) == (1_800_000, 0.9)
