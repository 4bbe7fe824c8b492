"""Profiles of PyTorch's profiler, stood in for by an object that exports a trace which PyTorch wrote."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import from_torch, load, profile, trace_handler

TRACE = Path(__file__).parents[1] / "fixtures" / "mlp_plain.json.gz"


class Inner:
    def __init__(self, results):
        self.kineto_results = results


class KinetoEvent:
    """An event of PyTorch 2.13's kineto_results, whose fields are methods; those not given are as it fills them."""

    _FIELDS: ClassVar = {
        "activity_type": "cpu_op",
        "device_resource_id": 11,
        "start_thread_id": 1,
        "sequence_nr": -1,
        "fwd_thread_id": 0,
        "flops": 0,
        "flow_id": 0,
        "flow_start": False,
        "kwinputs": {},
        "structured_input_shapes": [],
        "structured_input_strides": [],
        "dtypes": [],
        "concrete_inputs": [],
    }

    def __init__(self, name, start, end, **fields):
        self._given = self._FIELDS | {"name": name, "start_ns": BASE + start, "duration_ns": end - start} | fields


for _field in ("name", "start_ns", "duration_ns", *KinetoEvent._FIELDS):
    setattr(KinetoEvent, _field, lambda self, field=_field: self._given[field])


class Results:
    """What torch._C._autograd._ProfilerResult tells; the tree has the allocations."""

    def __init__(self, events, allocations=()):
        self._events, self._allocations = events, list(allocations)

    def trace_start_ns(self):
        return BASE

    def events(self):
        return self._events

    def experimental_event_tree(self):
        return self._allocations


BASE = 1_794_987_601_424_000_000
KERNEL = KinetoEvent("gemm", 0, 1, activity_type="kernel")  # of a device: only a trace tells its launch


class TorchProfile:
    """What from_torch() uses of a torch.profiler.profile; by default it records a device, so that its trace is read."""

    step_num = 7

    def __init__(self, finished=True, results=None, **options):
        self.profiler = Inner((results or Results([KERNEL])) if finished else None)
        self.exported = False
        vars(self.profiler).update(options)

    def export_chrome_trace(self, path):
        if self.exported:
            raise RuntimeError("Trace is already saved.")
        self.exported = True
        with gzip.open(TRACE) as packed, open(path, "wb") as file:
            shutil.copyfileobj(packed, file)


def test_a_finished_profile():
    recording = from_torch(TorchProfile())
    assert recording.key_averages().table() == load(TRACE).key_averages().table()


def test_events_are_read_where_pytorch_keeps_them():
    inputs = {
        "structured_input_shapes": [[4, 8], [[2], [3]], []],
        "structured_input_strides": [[8, 1], [[1], [1]], []],
        "dtypes": ["float", "TensorList", "ScalarList"],
        "concrete_inputs": [None, [], [1, 2.5]],
    }
    events = [
        KinetoEvent("train.py(3): step", 0, 900, activity_type="python_function"),
        KinetoEvent("block", 10, 500, activity_type="user_annotation"),
        KinetoEvent("aten::mm", 20, 400, sequence_nr=5, flops=640, flow_id=1, flow_start=True, **inputs),
        KinetoEvent("[memory]", 30, 30, activity_type="cpu_instant_event"),
        KinetoEvent(
            "autograd::engine::evaluate_function: MmBackward0", 500, 800, device_resource_id=12, sequence_nr=5, fwd_thread_id=1
        ),
        KinetoEvent("MmBackward0", 510, 790, device_resource_id=12, sequence_nr=5, fwd_thread_id=1, flow_id=1),
    ]
    sizes = SimpleNamespace(device=SimpleNamespace(type="cpu"), alloc_size=64, ptr=4096, total_allocated=64, total_reserved=0)
    allocation = SimpleNamespace(name="[memory]", children=[], start_time_ns=BASE + 30, start_tid=1, extra_fields=sizes)
    root = SimpleNamespace(name="aten::mm", children=[allocation])
    prof = TorchProfile(results=Results(events, [root]), record_shapes=True, with_flops=True, trace_id="ABC")
    recording = from_torch(prof)
    assert not prof.exported
    store = recording.store
    assert [store.names[name] for name in store.name] == [event.name() for event in events if event.name() != "[memory]"]
    assert store.start.tolist() == [0, 10, 20, 500, 510] and store.end.tolist() == [900, 500, 400, 800, 790]
    assert store.flops.tolist() == [0, 0, 640, 0, 0]
    assert store.tid.tolist() == [0, 0, 0, 1, 1] and store.fwd_tid.tolist() == [-1, -1, -1, 0, 0]
    (info,) = store.input_infos
    assert info.dims == ((4, 8), ((2,), (3,)), ()) and info.concrete == (None, (), (1, 2.5))
    assert (store.mem_time.tolist(), store.mem_bytes.tolist(), store.mem_addr.tolist()) == ([30], [64], [4096])
    assert store.stacks[store.stack[2]] == ("train.py(3): step",)
    assert store.wall_start_ns == BASE and store.trace_id == "ABC"
    (row,) = [row for row in recording.key_averages() if row.key == "aten::mm"]
    assert (row.count, row.self_cpu_memory_usage) == (1, 64)


def _with_old_fields(event):
    """An event of a PyTorch that does not tell what it is."""
    return type("OldEvent", (), {"name": event.name, "start_ns": event.start_ns})()


@pytest.mark.parametrize(
    "results",
    [
        Results([KERNEL]),
        Results([KinetoEvent("record_param_comms", 0, 1)]),
        Results([KinetoEvent("[OutOfMemory]", 0, 0, activity_type="cpu_instant_event")]),
        Results([KinetoEvent("block", 0, 1, kwinputs={"size": 3})]),
        Results([_with_old_fields(KERNEL)]),
    ],
    ids=["device", "collective", "instant", "keywords", "old"],
)
def test_what_only_a_trace_tells_is_read_from_one(results):
    prof = TorchProfile(results=results, record_shapes=True)
    assert len(from_torch(prof)) == len(load(TRACE))
    assert prof.exported


def test_its_legacy_form_has_the_results_itself():
    legacy = TorchProfile()
    legacy.kineto_results = legacy.profiler.kineto_results
    del legacy.profiler
    assert len(from_torch(legacy)) == len(load(TRACE))


def test_a_profile_of_this_package():
    with profile() as prof:
        torch.ones(3).neg()
    assert from_torch(prof).events().to_dict() == prof.events().to_dict()


@pytest.mark.parametrize(
    ("prof", "error", "text"),
    [
        (TorchProfile(finished=False), RuntimeError, "must be started and stopped first"),
        (None, TypeError, "a torch.profiler.profile is wanted, not NoneType"),
        ("trace.json", TypeError, "not str"),
    ],
    ids=["running", "none", "path"],
)
def test_what_is_no_finished_profile(prof, error, text):
    with pytest.raises(error, match=text):
        from_torch(prof)


def test_a_trace_that_was_exported_before(tmp_path):
    prof = TorchProfile()
    prof.export_chrome_trace(tmp_path / "trace.json")
    with pytest.raises(RuntimeError, match=r"exported before: read the file with profiler\.load\(\)"):
        from_torch(prof)


def test_handler_writes_each_format_and_prints(tmp_path, capsys):
    handle = trace_handler(tmp_path / "new", "rank0", formats=(".mtp", ".html", ".json.gz"), row_limit=2)
    handle(TorchProfile())
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"rank0.7.mtp", "rank0.7.html", "rank0.7.json.gz"}
    assert len(load(tmp_path / "new" / "rank0.7.mtp")) == len(load(TRACE))
    rules = [number for number, line in enumerate(capsys.readouterr().out.splitlines()) if line.startswith("---")]
    assert rules == [0, 2, 5]  # a table of two rows


def test_handler_of_an_own_profile_names_files_by_host_and_process(tmp_path):
    with profile(on_trace_ready=trace_handler(tmp_path)):
        torch.empty(3)
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".0.mtp") and "_" in path.name
    assert [event.name for event in load(path).events()] == ["aten::empty"]


@pytest.mark.parametrize("formats", [(".txt",), ".mtp", ("mtp",)])
def test_handler_refuses_unknown_formats(formats, tmp_path):
    with pytest.raises(ValueError, match=r"known are \.mtp, \.html"):
        trace_handler(tmp_path, formats=formats)


def test_handler_refuses_names_that_lead_out_of_its_folder(tmp_path):
    with pytest.raises(ValueError, match="worker_name"):
        trace_handler(tmp_path, "../rank0")
