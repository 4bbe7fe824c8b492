"""Profiles of PyTorch's profiler, stood in for by an object that exports a trace which PyTorch wrote."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import from_torch, load, profile, trace_handler

TRACE = Path(__file__).parents[1] / "fixtures" / "mlp_plain.json.gz"


class Inner:
    def __init__(self, results):
        self.kineto_results = results


class TorchProfile:
    """What from_torch() uses of a torch.profiler.profile."""

    step_num = 7

    def __init__(self, finished=True):
        self.profiler = Inner(object() if finished else None)
        self.exported = False

    def export_chrome_trace(self, path):
        if self.exported:
            raise RuntimeError("Trace is already saved.")
        self.exported = True
        with gzip.open(TRACE) as packed, open(path, "wb") as file:
            shutil.copyfileobj(packed, file)


def test_a_finished_profile():
    recording = from_torch(TorchProfile())
    assert recording.key_averages().table() == load(TRACE).key_averages().table()


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
