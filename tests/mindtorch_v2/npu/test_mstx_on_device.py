"""Marks of mstx with a stream: one row of the host and one on the device's lane, in every form of the recording."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import ProfilerActivity, load, profile

pytestmark = pytest.mark.npu
BOTH = [ProfilerActivity.CPU, ProfilerActivity.NPU]
ON_BOTH = ["[data] fetch", "epoch", "now"]


def marked():
    """A mark and two ranges with a stream, a mark without one, and a kernel."""
    mstx, stream = torch.npu.mstx, torch.npu.current_stream()
    x = torch.ones(8, device="npu")
    mstx.mark("now", stream)
    with mstx.annotate("epoch", stream), mstx.annotate("fetch", stream, "data"):
        x + 1
    mstx.mark("host alone")


def rows(store):
    """Names of the annotations of the host and of the device."""
    found = {}
    for place, chosen in (("host", store.device_type == 0), ("device", store.device_type != 0)):
        scopes = np.flatnonzero(chosen & (store.kind == observer.SCOPE))
        found[place] = sorted(store.names[store.name[row]] for row in scopes)
    return found


@pytest.fixture
def recorded(npu):
    with profile(activities=BOTH) as prof:
        marked()
    return prof


def test_a_mark_with_a_stream_is_a_row_of_the_host_and_one_of_the_device(recorded):
    store = recorded.profiler.store
    assert rows(store) == {"host": sorted([*ON_BOTH, "host alone"]), "device": ON_BOTH}
    device = np.flatnonzero((store.device_type != 0) & (store.kind == observer.SCOPE))
    kernel = next(row for row in np.flatnonzero(store.is_work) if "Adds" in store.names[store.name[row]])
    around = [row for row in device if store.names[store.name[row]] != "now"]
    assert {int(store.tid[row]) for row in device} == {int(store.tid[kernel])}
    assert all(store.start[row] <= store.start[kernel] <= store.end[kernel] <= store.end[row] for row in around)


def test_marks_take_no_time_of_the_device(recorded):
    store = recorded.profiler.store
    averages = recorded.key_averages()
    assert sorted(row.count for row in averages if row.key == "epoch") == [1, 1]  # each for itself
    kernels = int(store.duration[store.is_work].sum())
    assert sum(event.self_device_time_total for event in recorded.events() if event.device_type == "CPU") * 1000 == (
        pytest.approx(kernels)
    )


@pytest.mark.parametrize(
    "form, path", [("chrome", "x.json"), ("ascend", "x_ascend_pt"), ("ascend-db", "y_ascend_pt"), ("perfetto", "x.pftrace")]
)
def test_they_are_kept_in_every_form(recorded, tmp_path, form, path):
    store = recorded.profiler.store
    recorded.save(tmp_path / "x.mtp")
    load(tmp_path / "x.mtp").export(form, tmp_path / path)
    again = load(tmp_path / path)
    assert again.recovery.intact and rows(again.store) == rows(store)
    chosen = [(each.device_type != 0) & (each.kind == observer.SCOPE) for each in (store, again.store)]
    assert int(again.store.duration[chosen[1]].sum()) == int(store.duration[chosen[0]].sum()) > 0


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, []),
        ({"mstx": True}, ON_BOTH),
        ({"mstx": True, "mstx_domain_include": ["data"]}, ["[data] fetch"]),
        ({"mstx": True, "mstx_domain_exclude": ["data"]}, ["epoch", "now"]),
    ],
)
def test_options_of_torch_npu_choose_those_of_the_device_too(npu, options, expected):
    profiler = torch.npu.profiler
    with profiler.profile(experimental_config=profiler._ExperimentalConfig(**options)) as prof:
        marked()
    assert rows(prof.profiler.store)["device"] == expected
