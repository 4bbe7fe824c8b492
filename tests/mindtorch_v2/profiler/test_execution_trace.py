"""ExecutionTraceObserver: its states, and the file that it writes."""

from __future__ import annotations

import json

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function


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
