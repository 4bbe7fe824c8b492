"""validate: silent about good recordings, PyTorch's among them, and outspoken about each thing that can be wrong."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load, validate
from mindtorch_v2.profiler.formats import TraceError
from mindtorch_v2.profiler.formats.validate import validate_file
from mindtorch_v2.profiler.store.store import EventStore


def errors(problems):
    return [problem for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize("name", ["mlp_plain", "mlp_everything", "cnn_verbose", "gpt_steps", "threads"])
def test_torchs_own_traces_pass(fixtures, name):
    problems = validate_file(fixtures / f"{name}.json.gz")
    assert not errors(problems)
    # Ranges overlap the Python functions that open them: worth knowing, and not wrong.
    assert ["nesting"] * (name in ("mlp_everything", "cnn_verbose")) == [problem.check for problem in problems]


def test_a_gpu_trace_passes(fixtures):
    problems = validate_file(fixtures / "gpu_by_hand.json")
    assert not problems


def test_live_loaded_and_path_all_pass(live, tmp_path):
    assert validate(live) == []
    live.save(tmp_path / "p")
    assert validate(tmp_path / "p") == [] and validate(str(tmp_path / "p")) == []
    assert validate(load(tmp_path / "p")) == [] and validate(load(tmp_path / "p").store) == []


def store_of(*rows, **more):
    return EventStore.from_rows([{"name": "a", "start": s, "end": e, **extra} for s, e, extra in rows], **more)


def broken(column, values, *rows, **more):
    store = store_of(*(rows or ((20, 30, {}), (0, 100, {}))), **more)
    setattr(store, column, np.array(values, getattr(store, column).dtype))
    return store


WRONG = [
    ("tables", broken("name", [0, 7])),
    ("tables", broken("tid", [0, -1])),
    ("tables", broken("shapes", [0, -1])),
    ("times", broken("end", [100, 5])),
    ("times", broken("start", [20, 0])),
    ("times", store_of((0, 5, {}), clock_start_ns=10, clock_end_ns=5)),
    ("nesting", broken("parent", [-1, 0], (200, 300, {}), (0, 100, {}))),
    ("nesting", store_of((0, 100, {}), (50, 150, {}))),
    ("self time", broken("self_ns", [-5, 10])),
    ("self time", broken("self_ns", [1, 10])),
    ("memory", EventStore.from_rows([], [{"time": 1, "bytes": -5}])),
]


@pytest.mark.parametrize("check, store", WRONG, ids=[f"{check}-{at}" for at, (check, _) in enumerate(WRONG)])
def test_each_thing_that_can_be_wrong_is_found(check, store):
    assert check in {problem.check for problem in errors(validate(store))}


def test_totals_of_memory_must_follow():
    store = EventStore.from_rows([], [{"time": 1, "bytes": 5}, {"time": 2, "bytes": 7}], clock_end_ns=9)
    assert validate(store) == []
    store.mem_total = np.array([5, 99])
    assert [problem.check for problem in errors(validate(store))] == ["memory"]
    store.metadata = {"ascend_config": {}}  # there a release of a block from before is not listed
    assert [(problem.severity, problem.check) for problem in validate(store)] == [("note", "memory")]


def test_overlapping_ranges_are_a_note(made_up):
    store = store_of((0, 100, {"kind": observer.PYTHON}), (50, 150, {"kind": observer.SCOPE}))
    [problem] = validate(store)
    assert problem.severity == "note" and "overlap partially" in problem.detail
    assert validate(made_up) == []


def test_backward_nodes_without_a_forward_op_and_kernels_without_a_launch_are_notes():
    store = store_of(
        (0, 100, {"kind": observer.BACKWARD, "seq": 4, "fwd_thread": 1}),
        (200, 250, {"kind": observer.KERNEL, "device_type": 1, "stream": 7, "correlation": 3}),
    )
    assert sorted(problem.detail for problem in validate(store)) == [
        "1 backward nodes have no forward op in the recording",
        "1 of 1 device events have no launch in the recording",
    ]


def test_what_is_wrong_with_a_file(tmp_path, fixtures, span):
    whole = gzip.decompress((fixtures / "mlp_plain.json.gz").read_bytes())
    path = tmp_path / "t.json"
    path.write_bytes(whole[: len(whole) // 2])
    assert {problem.check for problem in errors(validate_file(path))} == {"complete", "readable"}
    path.write_text(json.dumps([span(), {"ph": "X"}]).replace("1.0", "NaN", 1))
    problems = {str(problem) for problem in errors(validate_file(path))}
    assert "error: events: 1 left out: no name" in problems and "error: events: 1 left out: no duration" in problems
    assert "error: file: some of it is not strict JSON" in problems
    path.write_text("nothing")
    with pytest.raises(TraceError):
        validate_file(path)
