"""torch's memory profile: data flow, schemas, categories. The expected texts are those of torch 2.13."""

from __future__ import annotations

import gc
import textwrap

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._C._profiler import _EventType
from mindtorch_v2.profiler import _ExperimentalConfig, _utils, profile, record_function
from mindtorch_v2.profiler import _memory_profiler as memory

OPTIONS = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def data_flow(inputs, function):
    """The graph as text: T is an id, v a version, and * marks what ends."""
    gc.collect()
    with profile(**OPTIONS) as prof:
        outputs = function(**inputs) or {}
        gc.collect()
    graph = prof._memory_profile()._data_flow_graph
    numbers = {key.storage.ptr: key.id for key in graph._active_version}
    lines = []
    for name, tensor in {**inputs, **outputs}.items():
        lines.append(f"{name}: T{numbers[tensor.untyped_storage().data_ptr()]}")
    for node in graph.flow_nodes:
        ended = {key for key, edge in node._edges.items() if edge.is_deletion}
        read = ", ".join(f"T{key.id}(v{v}{'*' if key in ended else ''})" for key, (_, v) in node.inputs.items())
        made = ", ".join(f"T{key.id}(v{v})" for key, v in node.outputs.items())
        if read or made:
            lines.append(f"{node._event.name.replace('torch::autograd::', '')} {read} -> {made}".rstrip())
    return "\n".join(lines)


def expected(text):
    return textwrap.dedent(text).strip()


def test_data_flow_of_views_and_products():
    inputs = {"x": torch.ones(25), "y": torch.ones(25, requires_grad=True)}

    def multiply(x, y):
        z = x.mul(y)
        return {"z": z.view_as(z)}

    assert data_flow(inputs, multiply) == expected("""
        x: T0
        y: T1
        z: T2
        aten::mul T0(v0), T1(v0) -> T2(v0)
        aten::view_as T2(v0) ->
    """)


def test_data_flow_of_a_backward_pass():
    inputs = {"x": torch.ones(1), "w": torch.ones(1, requires_grad=True)}
    assert data_flow(inputs, lambda x, w: (x * w).sin().backward()) == expected("""
        x: T0
        w: T1
        aten::mul T0(v0), T1(v0) -> T2(v0)
        aten::sin T2(v0) -> T3(v0)
        aten::ones_like T3(v0) -> T4(v0)
        SinBackward0 T2(v0), T4(v0) -> T6(v0)
        [memory] T2(v0*) ->
        MulBackward0 T0(v0), T6(v0) -> T7(v0)
        [memory] T6(v0*) ->
        AccumulateGrad T7(v0) ->
        [memory] T4(v0*) ->
        [memory] T3(v0*) ->
    """)


def test_writing_in_place_makes_versions_and_labels_are_passed():
    def fill(x, y):
        with record_function("Namespaced::label"), record_function("label"):
            x.zero_()
            y.zero_()
            x.zero_()

    assert data_flow({"x": torch.ones(1), "y": torch.ones(1)}, fill) == expected("""
        x: T0
        y: T1
        aten::zero_ T0(v0) -> T0(v1)
        aten::zero_ T1(v0) -> T1(v1)
        aten::zero_ T0(v1) -> T0(v2)
    """)


def test_schemas():
    x = torch.ones(1)
    with profile(experimental_config=_ExperimentalConfig(capture_overload_names=True)) as earlier:
        torch.cat([x, x], out=torch.empty(2))
    assert [event.overload_name for event in earlier.events() if event.name == "aten::cat"] == ["out"]
    with profile(**OPTIONS) as prof:
        torch.cat([x, x], axis=0)
        x.add_(x)
        with record_function("label"):
            pass
    found = []
    for node in _utils.traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()):
        if node.tag is _EventType.TorchOp:
            schemas = memory.SchemaMatcher.match_schemas(node.extra_fields)
            written = memory.SchemaMatcher.inputs_are_mutable(node.extra_fields)
            found.append((node.name, [schema.overload_name for schema in schemas], written))
    assert found == [
        ("aten::cat", [""], (False, False)),
        ("aten::add_", ["Tensor"], (True, False, False)),
        ("label", [], ()),
    ]
    assert memory.SchemaMatcher.lookup_schemas("label") is None
    assert memory.SchemaMatcher.lookup_schemas("no::such") == ()


def categories_of(memory_profile, tensor):
    """The categories of all versions of the newest memory at a tensor's address."""
    snapshot = memory_profile._category_snapshot()
    pointer = tensor.untyped_storage().data_ptr()
    newest = max(key.storage.allocation_id for key, _ in snapshot if key.storage.ptr == pointer)
    return {category for (key, _), category in snapshot.items() if key.storage.allocation_id == newest}


@pytest.mark.parametrize("trained_before", [False, True])
def test_categories_of_a_training_step(trained_before):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, targets = torch.ones(2, 2), torch.ones(2, 1)

    def step():
        optimizer.zero_grad(set_to_none=False)
        torch.nn.functional.mse_loss(model(x), targets).backward()
        optimizer.step()

    if trained_before:
        step()
    with profile(**OPTIONS) as prof:
        step()
    found = prof._memory_profile()
    for parameter in model.parameters():
        assert categories_of(found, parameter) == {memory.Category.PARAMETER}
        assert categories_of(found, parameter.grad) == {memory.Category.GRADIENT}
        assert categories_of(found, optimizer.state[parameter]["momentum_buffer"]) == {memory.Category.OPTIMIZER_STATE}
    assert categories_of(found, x) == categories_of(found, targets) == {memory.Category.INPUT}
    seen = set(found._category_snapshot().values())
    assert {memory.Category.ACTIVATION, memory.Category.AUTOGRAD_DETAIL} <= seen


def test_without_training_or_modules_nothing_is_known():
    w = torch.ones(1, requires_grad=True)
    with profile(**OPTIONS) as prof:
        (torch.ones(2, 2) * w).sin()
    assert set(prof._memory_profile()._category_snapshot().values()) == {None}


def test_parameters_are_found_by_what_flows_into_them():
    w = torch.ones(2, requires_grad=True)
    x = torch.ones(2)
    with profile(**OPTIONS) as prof:
        (x * w).sin().sum().backward()
        with torch.no_grad():
            w.add_(w.grad, alpha=-0.1)
    found = prof._memory_profile()
    assert categories_of(found, w) == {memory.Category.PARAMETER}
    assert categories_of(found, x) == {memory.Category.INPUT}


def test_gradients_are_extracted_from_modules_and_nodes():
    model = torch.nn.Linear(2, 1)
    for first in (True, False):
        with profile(**OPTIONS) as prof:
            model(torch.ones(2)).backward()
        found = {}
        for node in _utils.traverse_dfs(prof.profiler.kineto_results.experimental_event_tree()):
            for parameter, gradient in memory.extract_gradients(node):
                found.setdefault(node.tag, set()).add(gradient.storage.ptr)
                assert (parameter is None) == (node.tag is _EventType.TorchOp)
        expected_pointers = {p.grad.untyped_storage().data_ptr() for p in model.parameters()}
        assert found == {_EventType.TorchOp: expected_pointers} | ({} if first else {_EventType.PyCall: expected_pointers})


def test_the_timeline():
    before = torch.ones(1024)
    with profile(**OPTIONS) as prof:
        unseen = torch.empty(64)
        del unseen
        x = before + 1
        x.neg_()
        del x
    entries = [(action.name, version, size) for _, action, (_, version), size in prof._memory_profile().timeline]
    assert entries == [
        ("PREEXISTING", 0, 4096),
        ("CREATE", 0, 256),
        ("DESTROY", 0, 256),
        ("CREATE", 0, 4096),
        ("INCREMENT_VERSION", 0, 4096),
        ("DESTROY", 1, 4096),
    ]
    times = [time for time, *_ in prof._memory_profile().timeline]
    assert times == sorted(times) and times[0] == -1


def test_options_that_are_missing(tmp_path):
    with profile(record_shapes=True) as prof:
        pass
    with pytest.raises(ValueError, match="profile_memory=True, with_stack=True required"):
        prof._memory_profile()
    with profile(**OPTIONS, stream_to=tmp_path / "s.mtp") as prof:
        torch.ones(1)
    with pytest.raises(NotImplementedError, match="streamed or bounded"):
        prof._memory_profile()


def test_its_parts_have_the_names_of_torch():
    with profile(**OPTIONS) as prof:
        torch.ones(1).neg()
    assert [name for name in dir(prof._memory_profile()) if not name.startswith("__")] == [
        "_any_version_depends_on_gradient",
        "_categories",
        "_category_snapshot",
        "_data_flow_graph",
        "_is_gradient",
        "_op_tree",
        "_set_activations",
        "_set_autograd_detail",
        "_set_gradients_and_temporaries",
        "_set_inputs",
        "_set_optimizer_state",
        "_set_parameters_using_data_flow",
        "_set_parameters_using_python_tracer",
        "_size_map",
        "timeline",
    ]
