"""Anti-patterns under torch's names, and how far a host runs ahead of its device."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import DeviceType, _utils, profile
from mindtorch_v2.profiler import _pattern_matcher as patterns

STACK = {"with_stack": True}


def matches(pattern, prof):
    return len(pattern(prof).matched_events())


def test_loops_over_an_index():
    x = torch.ones(20, 20)

    def assign():
        for i in range(20):
            x[i] = i

    def product():
        y = x
        for _ in range(20):
            y = y @ x

    for function, count in ((assign, 1), (product, 0)):
        with profile(**STACK) as prof:
            function()
        assert matches(patterns.ForLoopIndexingPattern, prof) == count


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW])
def test_optimizers_of_single_tensors(kind, foreach):
    model = nn.Linear(2, 2)
    optimizer = kind(model.parameters(), lr=0.1, foreach=foreach)
    model(torch.ones(2)).sum().backward()
    with profile(**STACK) as prof:
        optimizer.step()
    assert matches(patterns.OptimizerSingleTensorPattern, prof) == (not foreach)


def test_gradients_that_are_filled_with_zeros():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    cases = (
        (0, optimizer.zero_grad),
        (0, model.zero_grad),
        (1, lambda: optimizer.zero_grad(set_to_none=False)),
        (1, lambda: model.zero_grad(set_to_none=False)),
    )
    for count, function in cases:
        model(torch.ones(2)).sum().backward()
        with profile(**STACK) as prof:
            function()
        assert matches(patterns.GradNotSetToNonePattern, prof) == count


def test_data_loaders_without_workers():
    loader = torch.utils.data.DataLoader(torch.rand(20, 2), batch_size=10)
    with profile(**STACK) as prof:
        for _ in loader:
            pass
    assert matches(patterns.SynchronizedDataLoaderPattern, prof) == 1


def test_a_bias_before_a_batch_norm():
    x = torch.randn(1, 3, 8, 8)
    for bias, count in ((True, 1), (False, 0)):
        model = nn.Sequential(nn.Conv2d(3, 3, 3, bias=bias), nn.BatchNorm2d(3))
        with profile(record_shapes=True, **STACK) as prof:
            model(x)
        assert matches(patterns.Conv2dBiasFollowedByBatchNorm2dPattern, prof) == count


def test_names_and_the_events_around_an_event():
    x = torch.ones(4, 4)
    with profile() as prof:
        for _ in range(2):
            x = x @ x + x
    assert [event.name for event in patterns.NamePattern(prof, "aten::m[mu]$").matched_events()] == ["aten::mm"] * 2
    pattern, tree = patterns.Pattern(prof), prof.profiler.kineto_results.experimental_event_tree()
    assert pattern.siblings_of(tree[1]) == (tree[:1], tree[2:])
    assert pattern.prev_of(tree[0]) is None and pattern.next_of(tree[0]) == tree[1] and pattern.next_of(tree[-1]) is None
    assert pattern.root_of(tree[0].children[0]) == tree[0]
    with pytest.raises(NotImplementedError):
        pattern.match(tree[0])
    with pytest.raises(NotImplementedError, match="should_benchmark"):
        patterns.Pattern(prof, should_benchmark=True)


def test_the_report(tmp_path, capsys):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(record_shapes=True, **STACK) as prof:
        model(torch.ones(2)).sum().backward()
        optimizer.step()
    patterns.report_all_anti_patterns(prof, json_report_dir=str(tmp_path))
    assert "Optimizer Single Tensor Pattern: 1 events matched." in capsys.readouterr().out
    report = json.loads((tmp_path / "torchtidy_report.json").read_text())
    (entries,) = [found for file, found in report.items() if file.endswith("test_patterns.py")]
    assert [sorted(entry) for entry in entries] == [["line_number", "message", "name", "url"]]


# ---------------------------------------------------------------- the queue of a device


@dataclass(frozen=True)
class Kineto:
    """An event of a launch or a kernel, in microseconds."""

    name: str
    start: int
    correlation: int
    kind: DeviceType = DeviceType.CPU

    def start_ns(self):
        return self.start * 1000

    def duration_ns(self):
        return 100_000

    def linked_correlation_id(self):
        return self.correlation

    def device_type(self):
        return self.kind


@dataclass(frozen=True)
class Event:
    """An event of the tree, in nanoseconds."""

    name: str
    id: int
    start_time_ns: int
    duration_time_ns: int
    children: list = field(default_factory=list)
    parent: None = None

    @property
    def end_time_ns(self):
        return self.start_time_ns + self.duration_time_ns


class Profile:
    """Five kernels that are launched early, and one later."""

    def __init__(self):
        launches = [Kineto("cudaLaunchKernel", at, n) for n, at in enumerate((400, 500, 600, 700, 800, 1500))]
        kernels = [Kineto("GPU", at, n, DeviceType.CUDA) for n, at in enumerate((900, 1000, 1100, 1200, 1300, 1700))]
        self.kineto_results = self
        self.events = lambda: launches + kernels
        starts = (0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1100, 1200)
        tree = [Event(f"cpu {n}", n, at * 1000, 500_000 if n == 11 else 100_000) for n, at in enumerate(starts)]
        self.experimental_event_tree = lambda: tree


def test_queue_depth_and_idle_time():
    evaluation = _utils.BasicEvaluation(Profile())
    assert [point.queue_depth for point in evaluation.queue_depth_list] == [1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 1, 0]
    metrics = [evaluation.metrics[key] for key in evaluation.event_keys]
    assert [each.queue_depth for each in metrics] == [0, 0, 0, 0, 1, 2, 3, 4, 5, 4, 2, 1]
    assert [each.idle_time_ns for each in metrics] == [100_000] * 4 + [0] * 7 + [100_000]
    assert [key.event.name for key in evaluation.get_optimizable_events(1, print_enable=False)] == ["cpu 11"]


def test_a_recording_without_a_device_has_no_queue():
    with profile() as prof:
        torch.ones(1)
    evaluation = _utils.BasicEvaluation(prof.profiler)
    assert evaluation.queue_depth_list == [] == evaluation.get_optimizable_events(print_enable=False)
    for key, metrics in evaluation.metrics.items():
        children = sum(child.duration_time_ns for child in key.event.children)
        assert metrics.self_time_ns == key.event.duration_time_ns - children


def test_overlap_counts_no_time_twice():
    intervals = [_utils.Interval(*ends) for ends in ((8, 12), (0, 9), (1, 2), (4, 5))]
    assert _utils.EventKey(Event("e", 1, 5, 5)).intervals_overlap(intervals) == 5
