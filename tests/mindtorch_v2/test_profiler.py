"""The profiler as a user meets it: one test per promise."""

from __future__ import annotations

import inspect
import json

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerActivity, profile, record_function
from mindtorch_v2.profiler import profiler as profiler_module

CPU = [ProfilerActivity.CPU]


def names(prof):
    return [event.name for event in prof.events()]


def profiled(work, **arguments):
    with profile(activities=CPU, **arguments) as prof:
        work()
    return prof


def two_ops():
    x = torch.ones(4, 4)
    return x + x, x * x


def test_profiler_context_and_step_basics():
    x = torch.ones(3)
    with profile(activities=CPU) as prof:
        x + x
        prof.step()
        x * x
    assert {event["step"] for event in prof.events()} == {0, 1}
    assert [event["kind"] for event in prof.events()] == ["op", "op"]
    for event in prof.events():
        assert event["duration_ns"] == event["end_ns"] - event["start_ns"] > 0


def test_profiler_captures_dispatch_ops():
    x = torch.ones(3, requires_grad=True)
    prof = profiled(lambda: (x * x).sum().backward())
    assert names(prof).count("aten::sum") == 1
    forward = [event for event in prof.events() if event.name == "aten::mul" and event.cpu_parent is None]
    assert len(forward) == 1
    assert {"MulBackward0", "SumBackward0", "torch::autograd::AccumulateGrad"} <= set(names(prof))


def test_record_function_nesting_and_exception_safe():
    with profile(activities=CPU) as prof, pytest.raises(ValueError, match="boom"), record_function("outer"):
        with record_function("inner"):
            raise ValueError("boom")
    outer, inner = prof.events()
    assert (outer.name, inner.name) == ("outer", "inner")
    assert outer["start_ns"] <= inner["start_ns"] <= inner["end_ns"] <= outer["end_ns"]
    assert inner.cpu_parent is outer


def test_key_averages_table_contains_expected_columns():
    table = profiled(two_ops).key_averages().table(sort_by="cpu_time_total")
    for word in ("Name", "Count", "Total", "aten::add", "aten::mul"):
        assert word in table


def test_export_chrome_trace_json_valid(tmp_path):
    prof = profiled(two_ops)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    data = json.loads((tmp_path / "trace.json").read_text())
    ops = [event for event in data["traceEvents"] if event.get("cat") == "cpu_op"]
    assert [event["name"] for event in ops if event["name"] in ("aten::add", "aten::mul")] == ["aten::add", "aten::mul"]
    assert all({"ph", "ts", "dur", "pid", "tid", "args"} <= event.keys() for event in ops)


def test_profiler_covers_optimizer_ops():
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    (weight * weight).sum().backward()
    prof = profiled(optimizer.step)
    (step,) = [event for event in prof.events() if event.name == "Optimizer.step#SGD.step"]
    assert [child.name for child in step.cpu_children] == ["aten::add_"]


def test_profiler_no_mindspore_dependency():
    assert "mindspore" not in inspect.getsource(profiler_module).lower()


@pytest.mark.npu
def test_profiler_npu_event_device_type(npu):
    x = torch.ones(3, device="npu")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]) as prof:
        x + x
    assert {event["device_type"] for event in prof.events()} >= {"NPU"}


def test_key_averages_supports_group_by_input_shape():
    a, b = torch.ones(2, 2), torch.ones(4, 4)
    prof = profiled(lambda: (a + a, b + b, a + a), record_shapes=True)
    rows = prof.key_averages(group_by_input_shape=True)
    assert [(row.input_shapes, row.count) for row in rows] == [([[2, 2], [2, 2], []], 2), ([[4, 4], [4, 4], []], 1)]


def test_key_averages_supports_group_by_stack_n():
    x = torch.ones(3)

    def one():
        return x + x

    def other():
        return x + x

    prof = profiled(lambda: (one(), other(), one()), with_stack=True)
    rows = [row for row in prof.key_averages(group_by_stack_n=1) if row.key == "aten::add"]
    assert sorted((row.stack[0].rpartition(": ")[2], row.count) for row in rows) == [("one", 2), ("other", 1)]


def test_key_averages_table_unknown_sort_key_raises():
    with pytest.raises(AttributeError):
        profiled(two_ops).key_averages().table(sort_by="nonsense")


def test_key_averages_exposes_self_cpu_time_total_aggregate():
    prof = profiled(two_ops)
    averages = prof.key_averages()
    assert averages.self_cpu_time_total == pytest.approx(sum(row.self_cpu_time_total for row in averages))
    assert averages.self_cpu_time_total > 0


def test_key_averages_total_average_returns_total_row():
    total = profiled(two_ops).key_averages().total_average()
    assert total.key == "Total" and total.count >= 2


def test_key_averages_empty_events_total_average_is_zero():
    total = profiled(lambda: None).key_averages().total_average()
    assert (total.key, total.count, total.cpu_time_total, total.self_cpu_time_total) == ("Total", 0, 0, 0)


def test_key_averages_row_exposes_torch_like_default_attributes():
    (row,) = [row for row in profiled(two_ops).key_averages() if row.key == "aten::add"]
    assert row.device_type == "CPU"
    assert row.input_shapes == "" and row.stack == [] and row.scope == 0 and row.flops == 0
    assert row.cpu_memory_usage == row.self_cpu_memory_usage == row.device_memory_usage == 0
    assert row.is_async is False and row.use_device is None and row.is_user_annotation is False


def test_key_averages_row_populates_memory_and_input_shape_fields():
    kept = []
    prof = profiled(lambda: kept.extend(two_ops()), record_shapes=True, profile_memory=True)
    (row,) = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::add"]
    assert row.input_shapes == [[4, 4], [4, 4], []]
    assert row.cpu_memory_usage >= row.self_cpu_memory_usage == 64


def test_key_averages_row_is_not_subscriptable_like_torch():
    with pytest.raises(TypeError):
        profiled(two_ops).key_averages()[0]["key"]


def test_key_averages_supported_export_stacks_metrics_matches_torch_shape():
    assert profiled(two_ops).key_averages().supported_export_stacks_metrics() == [
        "self_cpu_time_total",
        "self_cuda_time_total",
        "self_xpu_time_total",
        "self_privateuse1_time_total",
    ]


def test_key_averages_export_stacks_rejects_unsupported_metric(tmp_path):
    with pytest.raises(ValueError, match="metric should be one of"):
        profiled(two_ops, with_stack=True).key_averages().export_stacks(str(tmp_path / "s.txt"), "nonsense")


def test_key_averages_export_stacks_writes_stack_lines(tmp_path):
    x = torch.ones(200, 200)

    def work():
        return x @ x

    prof = profiled(work, with_stack=True)
    prof.key_averages(group_by_stack_n=5).export_stacks(str(tmp_path / "s.txt"), "self_cpu_time_total")
    lines = (tmp_path / "s.txt").read_text().splitlines()
    assert lines and all(";" in line or ":_" in line for line in lines)
    assert any("work" in line for line in lines)
    assert all(int(line.rsplit(" ", 1)[1]) > 0 for line in lines)
