"""Record functions that are given values: what their events show. The answers are those of torch 2.13."""

from __future__ import annotations

import json

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._C._profiler import _RecordFunctionFast
from mindtorch_v2.profiler import ExecutionTraceObserver, profile

X = torch.ones(4, 4)


def events(prof, name):
    return [event for event in prof.events() if event.name == name]


def test_fast_range_counts_as_an_op_with_its_inputs():
    with profile(record_shapes=True) as prof, _RecordFunctionFast("range", [X, 3, [1, 2], "x", [X, X], None, 2.5]):
        torch.neg(X)
    (event,) = events(prof, "range")
    assert event.input_shapes == [[4, 4], [], [], [], [], [], []]
    assert event.concrete_inputs == [None, 3, [1, 2], None, None, None, 2.5]
    assert event.input_dtypes == ["float", "Scalar", "ScalarList", "", "TensorList", "", "Scalar"]
    assert event.structured_input_shapes == [[4, 4], [], [], [], [[4, 4], [4, 4]], [], []]
    assert (event.scope, event.is_user_annotation, event.sequence_nr) == (0, False, -1)
    assert [child.name for child in event.cpu_children] == ["aten::neg"]


def test_keyword_values_show_in_the_event_and_in_the_trace(tmp_path):
    keywords = {"stream": 0, "sizes": [1, 2], "nothing": None, "half": 0.5, "quoted": 'a"b', "names": ["p", "q"]}
    with profile(record_shapes=True) as prof, _RecordFunctionFast("range", (X,), keywords):
        pass
    assert events(prof, "range")[0].kwinputs == keywords
    prof.export_chrome_trace(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    (line,) = [each for each in trace if each["name"] == "range"]
    shown = {name: line["args"].get(name) for name in keywords}
    assert shown == {**keywords, "sizes": None}  # lists of numbers are not shown
    assert line["cat"] == "cpu_op"


def test_a_stream_that_is_no_number_is_left_out_of_the_trace(tmp_path):
    with profile(record_shapes=True) as prof, _RecordFunctionFast("range", [], {"stream": "s"}):
        pass
    prof.export_chrome_trace(tmp_path / "t.json")
    (line,) = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["name"] == "range"]
    assert "stream" not in line["args"]


def test_keyword_values_are_saved_with_a_profile(tmp_path):
    with profile(record_shapes=True) as prof, _RecordFunctionFast("range", [X], {"a": 1}):
        pass
    prof.save(tmp_path / "p.mtp")
    assert events(torch.profiler.load(tmp_path / "p.mtp"), "range")[0].kwinputs == {"a": 1}


def test_without_shapes_there_are_no_inputs():
    with profile() as prof, _RecordFunctionFast("range", [X], {"a": 1}):
        pass
    (event,) = events(prof, "range")
    assert (event.input_shapes, event.kwinputs) == ([], {})


def test_a_fast_range_may_be_entered_again_and_left_by_an_exception():
    fast = _RecordFunctionFast("range", ["hi"], {"hi": "hello"})
    fast.__exit__(None, None, None)  # never entered: nothing happens
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            with pytest.raises(ValueError), fast:
                raise ValueError
    assert [event.input_shapes for event in events(prof, "range")] == [[[]]] * 3


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((1,), RuntimeError, "must be a string"),
        (("a", 1), RuntimeError, "input_values must be a list or tuple"),
        (("a", [], [1]), RuntimeError, "keyword_values must be dict"),
        (("a", [], {1: 2}), RuntimeError, "keys that are strings"),
    ],
)
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        _RecordFunctionFast(*arguments)


def test_a_keyword_of_another_kind_is_shown_as_null():
    with pytest.warns(UserWarning, match="Unable to infer type of value for keyword: t"):
        fast = _RecordFunctionFast("range", [], {"t": X})
    with profile(record_shapes=True) as prof, fast:
        pass
    assert events(prof, "range")[0].kwinputs == {"t": "NULL"}


def test_labels_with_arguments():
    with profile(record_shapes=True) as prof:
        handle = torch.autograd._record_function_with_args_enter("label", 1, X, [X, X], "s", 2.5)
        torch.autograd._record_function_with_args_exit(handle)
    (event,) = events(prof, "label")
    assert event.input_shapes == [[], [4, 4], [], [], []]
    assert event.concrete_inputs == [1, None, None, None, 2.5]
    assert event.input_dtypes == ["Scalar", "float", "TensorList", "", "Scalar"]
    assert event.scope == 7 and event.is_user_annotation


def test_labels_by_ops():
    with profile(record_shapes=True) as prof:
        for name, args in (("a", None), ("b", "text")):
            torch.ops.profiler._record_function_exit(torch.ops.profiler._record_function_enter(name, args))
        handle = torch.ops.profiler._record_function_enter_new("c", None)
        torch.ops.profiler._record_function_exit._RecordFunction(handle)
    shown = [(event.name, event.input_shapes, event.scope) for event in prof.events()]
    assert shown == [("a", [], 7), ("b", [[]], 7), ("c", [], 7)]
    with pytest.raises(TypeError):
        torch.ops.profiler._record_function_exit(1)
    assert not hasattr(torch.ops.profiler, "_nothing")


def test_execution_traces_have_the_values_of_ranges(tmp_path):
    path = str(tmp_path / "et.json")
    trace = ExecutionTraceObserver().register_callback(path)
    assert not trace._execution_trace_running
    trace.start()
    assert trace._execution_trace_running
    with torch.profiler.record_function("text", "1, 2"):
        pass
    handle = torch.autograd._record_function_with_args_enter("values", 1, False, [X, X], (X, X), "hello", None)
    torch.autograd._record_function_with_args_exit(handle)
    trace.stop()
    trace.unregister_callback()
    with open(path) as file:
        nodes = {node["name"]: node for node in json.load(file)["nodes"]}
    assert nodes["text"]["inputs"] == {"values": ["1, 2"], "shapes": [[]], "types": ["String"], "strides": [[]]}
    inputs = nodes["values"]["inputs"]
    pair = "[Tensor(float),Tensor(float)]"
    assert inputs["types"] == ["Int", "Bool", f"GenericList{pair}", f"Tuple{pair}", "String", "None"]
    assert len(inputs["values"][2][0]) == 6 and inputs["shapes"][2] == [[4, 4], [4, 4]]
