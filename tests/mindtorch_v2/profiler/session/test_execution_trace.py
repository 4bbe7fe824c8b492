"""ExecutionTraceObserver: its states, and the file that it writes."""

from __future__ import annotations

import json
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, _ExperimentalConfig, profile, record_function, schedule


def attribute(node, name):
    return next(a["value"] for a in node["attrs"] if a["name"] == name)


def written(path, work):
    observer = ExecutionTraceObserver().register_callback(str(path))
    with profile(execution_trace_observer=observer):
        work()
    assert not observer.is_registered
    return json.loads(path.read_text())


def test_states(tmp_path):
    observer = ExecutionTraceObserver()
    observer.start()
    assert not observer.is_running() and observer.get_output_file_path() is None
    assert observer.register_callback(str(tmp_path / "et.json")) is observer
    observer.start()
    assert observer.is_running() and observer.is_registered
    observer.stop()
    assert not observer.is_running()
    observer.unregister_callback()
    assert not observer.is_registered and (tmp_path / "et.json").exists()
    assert observer.get_output_file_path() == str(tmp_path / "et.json")
    observer.extra_resources_collection = True
    assert observer.get_resources_dir(can_create=True) == str(tmp_path / "et_resources")


def test_nodes_form_a_tree_with_inputs(tmp_path):
    x = torch.ones(2, 3)

    def work():
        with record_function("label"):
            y = x + x
            y * x

    data = written(tmp_path / "et.json", work)
    assert {"schema", "pid", "time", "start_ts", "nodes", "finish_ts"} <= data.keys()
    nodes = {node["name"]: node for node in data["nodes"]}
    add, mul, label = nodes["aten::add"], nodes["aten::mul"], nodes["label"]
    assert add["ctrl_deps"] == mul["ctrl_deps"] == label["id"]
    assert label["ctrl_deps"] == nodes["[pytorch|profiler|execution_trace|thread]"]["id"]
    assert add["inputs"]["shapes"] == [[2, 3], [2, 3], []]
    assert add["inputs"]["types"] == ["Tensor(float)", "Tensor(float)", "Int"]
    assert add["inputs"]["values"][0] == add["inputs"]["values"][1] == mul["inputs"]["values"][1]
    assert add["inputs"]["values"][0][2:] == [0, 6, 4, "cpu"] and add["inputs"]["values"][2] == 1
    assert attribute(add, "op_schema").startswith("aten::add.Tensor(")
    assert len({node["id"] for node in data["nodes"]}) == len(data["nodes"])


def test_ops_have_their_outputs(tmp_path):
    x, weight = torch.ones(4, 3), torch.ones(2, 3, requires_grad=True)

    def work():
        y = torch.nn.functional.linear(x, weight)
        y.relu_()
        torch.max(x, 0)
        x.split(2)
        torch.cat([x, x])
        y.sum().backward()
        x.sum().item()

    nodes = {node["name"]: node for node in written(tmp_path / "et.json", work)["nodes"]}
    linear, mm, relu = nodes["aten::linear"], nodes["aten::mm"], nodes["aten::relu_"]
    assert linear["outputs"]["shapes"] == [[4, 2]] and linear["outputs"]["strides"] == [[2, 1]]
    assert linear["outputs"]["types"] == ["Tensor(float)"]
    # who made a tensor, and who used it
    assert linear["outputs"]["values"] == relu["inputs"]["values"] == relu["outputs"]["values"]
    assert mm["ctrl_deps"] and mm["outputs"]["values"]
    best = nodes["aten::max"]["outputs"]
    assert (best["shapes"], best["types"]) == ([[3], [3]], ["Tensor(float)", "Tensor(long int)"])
    parts = nodes["aten::split"]["outputs"]
    assert (parts["shapes"], parts["types"]) == ([[[2, 3], [2, 3]]], ["GenericList[Tensor(float),Tensor(float)]"])
    assert [part[1:] for part in parts["values"][0]] == [
        [nodes["aten::split"]["inputs"]["values"][0][1], 0, 6, 4, "cpu"],
        [nodes["aten::split"]["inputs"]["values"][0][1], 6, 6, 4, "cpu"],
    ]
    assert nodes["aten::cat"]["inputs"]["types"] == ["GenericList[Tensor(float),Tensor(float)]", "Int"]
    assert nodes["aten::item"]["outputs"] == {"values": [12.0], "shapes": [[]], "types": ["Double"], "strides": [[]]}
    engine = nodes["autograd::engine::evaluate_function: SumBackward0"]
    assert (attribute(engine, "seq_id"), attribute(engine, "fw_tid")) == (-1, 0)


def test_every_op_has_inputs_and_outputs(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.GELU(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.zeros(5, dtype=torch.int64)).backward()
        optimizer.step()

    step()
    nodes = written(tmp_path / "et.json", step)["nodes"]
    ops = [node for node in nodes if attribute(node, "op_schema")]
    assert len(ops) > 40
    assert [node["name"] for node in ops if not node["inputs"]["types"]] == []
    without = {node["name"] for node in ops if not node["outputs"]["types"]}
    assert all(attribute(node, "op_schema").endswith("-> ()") for node in ops if node["name"] in without)


def test_arguments_that_are_no_tensors(tmp_path):
    work = lambda: torch.zeros(2, dtype=torch.int64, device="cpu").contiguous(memory_format=torch.contiguous_format)  # noqa: E731
    nodes = {node["name"]: node for node in written(tmp_path / "et.json", work)["nodes"]}
    assert nodes["aten::zeros"]["inputs"]["values"][:4] == [[2], 4, "<None>", "cpu"]
    assert nodes["aten::zeros"]["inputs"]["types"][:4] == ["GenericList[Int]", "Int", "None", "Device"]
    assert nodes["aten::zeros"]["inputs"]["shapes"][0] == [[]]


def test_observing_changes_neither_results_nor_errors(tmp_path):
    x = torch.ones(2, 3, requires_grad=True)

    def work():
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            x @ x
        with pytest.raises(RuntimeError, match="The size of tensor a"):
            x + torch.ones(5)
        (x * x).sum().backward()

    written(tmp_path / "et.json", work)
    assert x.grad.tolist() == [[2.0] * 3] * 2
    seen = []

    class Counting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def with_a_mode():
        with Counting():
            x + x

    written(tmp_path / "et2.json", with_a_mode)
    assert seen == ["add"]


def test_a_folder_for_further_files(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    assert observer.get_resources_dir() is None
    observer.set_extra_resource_collection(True)
    assert observer.get_resources_dir() == str(tmp_path / "et_resources")
    observer.unregister_callback()


def test_switched_on_by_the_environment(monkeypatch):
    assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    observer = ExecutionTraceObserver.build_execution_trace_obs_from_env()
    assert observer is not None and observer.is_registered
    observer.unregister_callback()


def test_what_was_abandoned_is_in_no_later_file(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "parent.json"))
    x = torch.ones(2)
    observer.start()
    x.neg()
    observer.abandon()  # what happens to it in a forked child
    assert not observer.is_registered and observer.last_window is None
    observer.register_callback(str(tmp_path / "child.json"))
    observer.start()
    x.exp()
    observer.unregister_callback()
    names = {node["name"] for node in json.loads((tmp_path / "child.json").read_text())["nodes"]}
    assert "aten::exp" in names and "aten::neg" not in names and not (tmp_path / "parent.json").exists()


def numbers_of(nodes):
    """The names of an execution trace's nodes by rf_id."""
    return {attribute(node, "rf_id"): node["name"] for node in nodes if attribute(node, "rf_id")}


def numbers_in(path):
    """The names in a Chrome trace by record function id."""
    events = json.loads(path.read_text())["traceEvents"]
    names_by_id = [
        (event["args"]["Record function id"], event["name"])
        for event in events
        if "Record function id" in event.get("args", {}) and event["cat"] != "first_use"
    ]
    assert len(dict(names_by_id)) == len(names_by_id)
    return dict(names_by_id)


def train():
    x = torch.ones(3, 3, requires_grad=True)
    with record_function("label"):
        (x @ x).sum().backward()


@pytest.mark.parametrize("options", [{}, {"with_stack": True, "profile_memory": True, "record_shapes": True}])
def test_a_chrome_trace_of_the_same_time_has_the_same_numbers(tmp_path, options):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    with profile(execution_trace_observer=observer, **options) as prof:
        train()
    for _ in range(2):
        prof.export_chrome_trace(tmp_path / "trace.json")
        wanted = numbers_of(json.loads((tmp_path / "et.json").read_text())["nodes"])
        assert numbers_in(tmp_path / "trace.json") == wanted and "aten::mm" in wanted.values()


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_the_numbers_go_on_from_window_to_window(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    traces = [tmp_path / "0.json", tmp_path / "1.json"]
    ready = iter(traces)
    with profile(
        execution_trace_observer=observer,
        schedule=schedule(wait=1, warmup=0, active=1, repeat=2),
        on_trace_ready=lambda prof: prof.export_chrome_trace(next(ready)),
    ) as prof:
        for _ in range(4):
            train()
            prof.step()
    first, second = map(numbers_in, traces)
    assert first and max(first) < min(second)
    assert {**first, **second} == numbers_of(json.loads((tmp_path / "et.json").read_text())["nodes"])
    prof.export_chrome_trace(tmp_path / "2.json")
    assert numbers_in(tmp_path / "2.json") == second


def test_threads_that_are_not_observed_have_no_numbers(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    x = torch.ones(2)
    with profile(execution_trace_observer=observer, experimental_config=_ExperimentalConfig(profile_all_threads=True)) as prof:
        other = threading.Thread(target=x.neg)
        other.start()
        other.join()
        x.exp()
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert numbers_in(tmp_path / "trace.json") == {0: "aten::neg", 1: "aten::exp"}


def test_without_an_observer_there_are_no_numbers(tmp_path):
    with profile() as prof:
        torch.empty(2)
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert numbers_in(tmp_path / "trace.json") == {0: "aten::empty"}
