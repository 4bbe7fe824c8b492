"""prof.profiler.kineto_results: native events and their tree, and the walks over it."""

from __future__ import annotations

import json
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import observer
from mindtorch_v2.autograd.profiler import ProfilerState
from mindtorch_v2.autograd.profiler import profile as inner_profile
from mindtorch_v2.profiler import DeviceType, RecordScope, _utils, profile, record_function
from mindtorch_v2.profiler.store.store import EventStore, InputInfo
from mindtorch_v2.profiler.views.event_tree import _EventType, _PyFrameState, _TensorMetadata
from mindtorch_v2.profiler.views.kineto_results import _ProfilerResult

WALL = 1_700_000_000_000_000_000


def made_up() -> EventStore:
    """A label around an op that allocates; inside it, one of its own name; a hidden op; a stray free; a kernel."""
    inputs = InputInfo(
        dims=((2, 3), ((4,), (5, 6)), (), ()),
        types=("long int", "TensorList", "Scalar", ""),
        strides=((3, 1), ((1,), (6, 1)), (), ()),
        concrete=(None, None, 7, None),
    )
    rows = [
        {"name": "aten::sum", "start": 120, "end": 140},
        {"name": "aten::sum", "start": 110, "end": 150, "seq": 3, "inputs": inputs, "overload": "dim", "flops": 6},
        {"name": "ProfilerStep#4", "start": 105, "end": 160, "kind": observer.STEP},
        {"name": "aten::is_leaf", "start": 165, "end": 166},
        {
            "name": "kernel",
            "start": 130,
            "end": 170,
            "kind": observer.KERNEL,
            "device_type": 1,
            "device_index": 0,
            "stream": 7,
            "launch_thread": 1,
            "launch_ns": 125,
            "correlation": 9,
        },
    ]
    memory = [
        {"time": 125, "bytes": 64, "addr": 1000},
        {"time": 155, "bytes": -64, "addr": 1000},
        {"time": 200, "bytes": -8, "addr": 2000},
    ]
    return EventStore.from_rows(
        rows, memory, clock_start_ns=100, wall_start_ns=WALL, pid=42, options={"capture_overload_names": True}
    )


def event(result, name):
    return next(entry for entry in result.events() if entry.name() == name)


def test_events_are_all_in_order_of_start():
    result = _ProfilerResult(made_up())
    assert [(entry.name(), entry.start_ns() - WALL, entry.duration_ns(), entry.nbytes()) for entry in result.events()] == [
        ("ProfilerStep#4", 5, 55, 0),
        ("aten::sum", 10, 40, 0),
        ("aten::sum", 20, 20, 0),
        ("[memory]", 25, 0, 64),
        ("kernel", 30, 40, 0),
        ("[memory]", 55, 0, -64),
        ("aten::is_leaf", 65, 1, 0),
        ("[memory]", 100, 0, -8),
    ]
    assert result.trace_start_ns() == WALL


# Every method of torch's event, and what it answers for the outer aten::sum and for the stray free.
ANSWERS = {
    "activity_type": ("cpu_op", "cpu_instant_event"),
    "concrete_inputs": ([None, None, 7, None], []),
    "correlation_id": (2, 0),
    "cuda_elapsed_us": (-1, -1),
    "device_index": (42, -1),
    "device_resource_id": (1, 1),
    "device_type": (DeviceType.CPU, DeviceType.CPU),
    "dtypes": (["long int", "TensorList", "Scalar", ""], []),
    "duration_ns": (40, 0),
    "end_ns": (WALL + 50, WALL + 100),
    "end_thread_id": (1, 1),
    "external_id": (2, 0),
    "extra_meta": ({}, {}),
    "flops": (6, 0),
    "flow_id": (0, 0),
    "flow_start": (False, False),
    "flow_type": (0, 0),
    "fwd_thread_id": (0, 0),
    "is_async": (False, False),
    "is_hidden_event": (False, False),
    "is_python_function": (False, False),
    "is_user_annotation": (False, False),
    "kwinputs": ({}, {}),
    "linked_correlation_id": (0, 0),
    "metadata_json": ("", ""),
    "name": ("aten::sum", "[memory]"),
    "nbytes": (0, -8),
    "overload_name": ("dim", ""),
    "privateuse1_elapsed_us": (-1, -1),
    "python_id": (-1, -1),
    "python_module_id": (-1, -1),
    "python_parent_id": (-1, -1),
    "scope": (0, 0),
    "sequence_nr": (3, -1),
    "shapes": ([[2, 3], [], [], []], []),
    "stack": ([], []),
    "start_ns": (WALL + 10, WALL + 100),
    "start_thread_id": (1, 1),
    "structured_input_shapes": ([[2, 3], [[4], [5, 6]], [], []], []),
    "structured_input_strides": ([[3, 1], [[1], [6, 1]], [], []], []),
}


@pytest.mark.parametrize(("method", "want"), ANSWERS.items())
def test_what_an_event_answers(method, want):
    events = _ProfilerResult(made_up()).events()
    values = tuple(getattr(events[at], method)() for at in (1, -1))
    assert values == want and [type(value) for value in values] == [type(value) for value in want]


def test_there_is_no_method_without_an_answer_here():
    events = _ProfilerResult(made_up()).events()
    assert {name for entry in events for name in dir(entry) if not name.startswith("_")} == ANSWERS.keys()


def test_what_ran_on_a_device():
    kernel = event(_ProfilerResult(made_up()), "kernel")
    assert (kernel.device_type(), kernel.device_index(), kernel.device_resource_id()) == (DeviceType.CUDA, 0, 7)
    assert kernel.activity_type() == "kernel" and kernel.linked_correlation_id() == 3


def shape(events):
    return [(entry.name, entry.tag.name, shape(entry.children)) for entry in events]


def test_the_tree():
    roots = _ProfilerResult(made_up()).experimental_event_tree()
    memory = ("[memory]", "Allocation", [])
    assert shape(roots) == [
        (
            "ProfilerStep#4",
            "TorchOp",
            [
                ("aten::sum", "TorchOp", [("aten::sum", "TorchOp", [memory])]),
                memory,
            ],
        ),
        ("kernel", "Kineto", []),
        ("aten::is_leaf", "TorchOp", []),
        memory,
    ]
    step = roots[0]
    outer = step.children[0]
    assert outer.parent == step and step.parent is None and outer in step.children and outer != step
    assert len({step, outer.parent, outer}) == 2
    assert (outer.start_time_ns, outer.end_time_ns, outer.duration_time_ns) == (WALL + 10, WALL + 50, 40)
    assert (outer.correlation_id, outer.start_tid, outer.overload_name) == (2, 1, "dim")
    assert outer.typed == (_EventType.TorchOp, outer.extra_fields) and outer.id != step.id
    free = roots[-1]
    assert (free.start_time_ns, free.end_time_ns, free.start_tid, free.correlation_id) == (WALL + 100, WALL + 100, 1, 0)


def test_what_the_tree_says_of_ops():
    fields = _ProfilerResult(made_up()).experimental_event_tree()[0].children[0].extra_fields
    tensor, listed, number, nothing = fields.inputs
    assert tensor == _TensorMetadata([2, 3], [3, 1], torch.int64) and tensor.dim == 2
    assert [(entry.sizes, entry.strides, entry.dtype) for entry in listed] == [([4], [1], None), ([5, 6], [6, 1], None)]
    assert number == 7 and nothing is None
    assert (fields.name, fields.scope, fields.sequence_number) == ("aten::sum", RecordScope.FUNCTION, 3)


def test_what_the_tree_says_of_memory():
    allocations = [
        entry.extra_fields
        for entry in _utils.traverse_dfs(_ProfilerResult(made_up()).experimental_event_tree())
        if entry.tag is _EventType.Allocation
    ]
    assert [(entry.ptr, entry.alloc_size, entry.total_allocated, str(entry.device)) for entry in allocations] == [
        (1000, 64, 64, "cpu"),
        (1000, -64, 0, "cpu"),
        (2000, -8, -8, "cpu"),
    ]
    assert [entry.allocation_id for entry in allocations] == [1, 1, 2]
    assert [entry.id for entry in allocations] == [None] * 3  # no tensor was seen with this memory


def test_what_the_tree_says_of_python_calls():
    rows = [
        {"name": "aten::relu", "start": 40, "end": 50},
        {"name": "net/act.py(7): forward", "start": 30, "end": 60, "kind": observer.PYTHON},
        {"name": "nn.Module: ReLU_0", "start": 20, "end": 70, "kind": observer.MODULE},
        {"name": "<built-in function len>", "start": 80, "end": 81, "kind": observer.PYTHON},
        {"name": "train.py(3): main", "start": 10, "end": 90, "kind": observer.PYTHON},
    ]
    roots = _ProfilerResult(EventStore.from_rows(rows)).experimental_event_tree()
    main, module, forward, relu, builtin = _utils.traverse_dfs(roots)
    assert [entry.tag.name for entry in (main, module, forward, relu, builtin)] == ["PyCall"] * 3 + ["TorchOp", "PyCCall"]
    frame = _PyFrameState("train.py", "main", 3)
    assert (main.extra_fields.callsite, main.extra_fields.caller, main.extra_fields.module) == (frame, None, None)
    assert module.extra_fields.caller == frame and module.extra_fields.module.cls_name == "ReLU"
    assert forward.extra_fields.callsite == _PyFrameState("net/act.py", "forward", 7)
    assert builtin.extra_fields.caller == frame
    assert _utils.source_code_location(relu) == "net/act.py(7): forward"
    assert _utils.source_code_location(builtin) == "train.py(3): main"


def test_of_a_recording(tmp_path):
    before = time.time_ns()
    x = torch.randn(4, 4, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True) as prof:
        with record_function("label"):
            loss = nn.Linear(4, 4)(x).sum()
        loss.backward()
    result = prof.profiler.kineto_results
    assert before <= result.trace_start_ns() <= result.events()[0].start_ns() <= time.time_ns()
    visible = {(entry.name, entry.time_range.start) for entry in prof.events() if entry.name != "[memory]"}
    native = {(entry.name(), (entry.start_ns() - result.trace_start_ns()) / 1000) for entry in result.events()}
    assert visible <= native
    linked = [
        entry for entry in result.events() if entry.flow_id() and entry.flow_id() == event(result, "AddmmBackward0").flow_id()
    ]
    assert [(entry.name(), entry.flow_start()) for entry in linked] == [("aten::addmm", True), ("AddmmBackward0", False)]
    result.save(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert _utils.source_code_location(result.experimental_event_tree()[0]) == "No source code location found"


def test_before_and_while_recording():
    prof = inner_profile()
    assert prof.kineto_results is None and prof.profiler_kind is ProfilerState.KINETO
    assert prof.profiling_start_time_ns == prof.profiling_end_time_ns == 0
    before = time.perf_counter_ns()
    with prof:
        torch.empty(2)
        assert [entry.name() for entry in prof.kineto_results.events()] == ["aten::empty"]
        assert prof.profiling_end_time_ns == 0
    assert before <= prof.profiling_start_time_ns < prof.profiling_end_time_ns <= time.perf_counter_ns()


class Node:
    def __init__(self, name, *children):
        self.name, self.children = name, children


def test_walks():
    tree = [Node("a", Node("b", Node("c")), Node("d")), Node("e", Node("f"))]

    def names(walk, *args, **kwargs):
        return "".join(node.name for node in walk(tree, *args, **kwargs))

    assert names(_utils.traverse_dfs) == "abcdef" and names(_utils.traverse_bfs) == "aebdfc"
    assert names(_utils.traverse_bfs, reverse=True) == "eafdbc"
    assert names(_utils.traverse_dfs, children_fn=lambda node: node.children[:1]) == "abcef"
    assert list(_utils.traverse_dfs([])) == []


def test_finding():
    above_one = [1, 2, 3], lambda value: value > 1
    assert _utils.index_of_first_match(*above_one) == 1 == _utils.index_of_first_match(*above_one, end=9)
    assert _utils.index_of_first_match(*above_one, start=2) == 2
    assert _utils.index_of_first_match(*above_one, end=1) is None is _utils.index_of_first_match(*above_one, start=5)
    assert (_utils.argmax([1, 5, 5]), _utils.argmax([1, 5, 2], key=lambda value: -value), _utils.argmax([])) == (1, 0, None)
    assert _utils.argmax([1, 5, 2], start=2) == 2 and _utils.argmax([1, 5, 2], end=1) == 0


def test_the_types_are_where_torch_has_them():
    from mindtorch_v2._C import _profiler as native

    with inner_profile(record_shapes=True) as prof:
        torch.ones(2) + 1
    results = prof.kineto_results
    assert isinstance(results, torch.autograd._ProfilerResult)
    assert isinstance(results.events()[0], torch.autograd._KinetoEvent)
    event = results.experimental_event_tree()[-1]
    assert isinstance(event, native._ProfilerEvent) and event.tag is native._EventType.TorchOp
    assert isinstance(event.extra_fields, native._ExtraFields_TorchOp)
    assert isinstance(event.extra_fields.inputs[0], native._TensorMetadata)
    assert {name for name in native.__all__ if "Fields" in name} == {
        f"_ExtraFields_{kind}" for kind in ("Allocation", "Kineto", "PyCCall", "PyCall", "TorchOp")
    }
    assert native._PyFrameState("a.py", "f", 1).function_name == "f" and native._NNModuleInfo("Linear").cls_name == "Linear"
    assert torch.autograd._supported_activities() == {torch.autograd.ProfilerActivity.CPU}
