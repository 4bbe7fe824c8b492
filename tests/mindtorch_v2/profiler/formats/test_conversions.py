"""A recording keeps its sums on the way through every form and back."""

from __future__ import annotations

import itertools
import json

import ascend_folders as folders
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import TraceError, load, profile
from mindtorch_v2.profiler.analysis.device.summary import device_summaries
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore, RowDetails

FORMS = {"chrome": "x.json", "ascend": "x_ascend_pt", "ascend-db": "x_db_ascend_pt", "perfetto": "x.pftrace"}


def sums(store):
    """Count and time by kind and name, of host and device, and what the device did as a whole."""
    kept = store.kind != observer.RUNTIME
    totals: dict[tuple[int, str], list[int]] = {}
    for row in np.flatnonzero(kept).tolist():
        total = totals.setdefault((int(store.kind[row]), store.names[store.name[row]]), [0, 0])
        total[0] += 1
        total[1] += int(store.duration[row])
    launched = sorted(
        (store.names[store.name[row]], store.names[store.name[store.launcher[row]]]) for row in np.flatnonzero(store.is_work)
    )
    device = [
        (summary.device, summary.kernel_ns, summary.communication_ns, summary.copy_ns) for summary in device_summaries(store)
    ]
    return totals, launched, device


def own_recording(folder):
    """What this project records on a device: kernels, copies and a fill under their own names, a range on the device."""
    rows = [{"name": "ProfilerStep#3", "kind": observer.STEP, "start": 0, "end": 100_000, "step": 3}]
    device = {"device_type": 20, "device_index": 0, "stream": 7, "step": 3}
    work = [("aclnnAdds_AddsAiCore_Adds", observer.KERNEL), ("Memcpy HtoD", observer.COPY), ("Memset", observer.FILL)]
    for number, (name, kind) in enumerate(work, 1):
        at = 10_000 * number
        rows.append({"name": f"aten::op{number}", "start": at, "end": at + 5_000, "step": 3})
        rows.append(
            {"name": "launch", "kind": observer.RUNTIME, "start": at + 500, "end": at + 900, "correlation": number, "step": 3}
        )
        told = None if kind == observer.KERNEL else RowDetails("", json.dumps({"device": 0, "stream": 7, "bytes": 64 * number}))
        times = {"start": at + 2_000, "end": at + 2_500 + number, "launch_thread": 1, "launch_ns": at + 500}
        rows.append({"name": name, "kind": kind, **times, **device, "correlation": number, "details": told})
    rows.append({"name": "[data] fetch", "kind": observer.SCOPE, "start": 11_000, "end": 50_000, **device})
    store = EventStore.from_rows(rows, pid=77, wall_start_ns=folders.BASE, options={"use_device": "npu"})
    writers.get("saved")(store, folder.with_suffix(".mtp"))
    return folder.with_suffix(".mtp")


def as_cards_record(folder):
    """A folder with calls of Python that overlap ops without nesting, and two copies of a number, of which one has a flow."""
    trace = folders.text_folder(folder) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    events = json.loads(trace.read_text())
    for number, (start, end) in enumerate(((500, 1_500), (1_200, 2_000), (1_900, 25_000), (29_500, 40_000))):
        times = {"ts": folders.micro(start), "dur": (end - start) / 1000}
        place = {"pid": folders.PROCESS, "tid": folders.THREAD}
        args = {"Python id": number + 1, "Python parent id": 0}
        events.append({"ph": "X", "name": f"call {number}", "cat": "python_function", **place, **times, "args": args})
    copy = next(event for event in events if event["name"] == "MEMCPY_ASYNC" and event["ph"] == "X")
    events.remove(next(event for event in events if event["name"] == "Node@aclrtMemcpyAsync"))  # as at the lowest level
    events.append({**copy, "ts": folders.micro(folders.COPY[3] + 100), "dur": 0.5})
    trace.write_text(json.dumps(events))
    return folder


@pytest.mark.parametrize("recording", [folders.text_folder, own_recording, as_cards_record])
@pytest.mark.parametrize("first, second", [*itertools.combinations(FORMS, 2)])
def test_sums_are_equal_both_ways(tmp_path, capsys, first, second, recording):
    start = recording(tmp_path / "start_ascend_pt")
    expected = sums(load(start).store)
    path = start
    for number, form in enumerate((first, second, first)):
        target = tmp_path / f"{number}{FORMS[form]}"
        assert main(["convert", str(path), "--to", form, "-o", str(target)]) == 0
        path = target
        assert sums(load(path).store) == expected, form
    capsys.readouterr()


def test_a_perfetto_trace_that_is_damaged_keeps_the_rest(tmp_path):
    loaded = load(folders.text_folder(tmp_path / "x_ascend_pt"))
    loaded.export("perfetto", tmp_path / "x.pftrace")
    whole = (tmp_path / "x.pftrace").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-20])
    cut = load(tmp_path / "cut")
    assert not cut.recovery.complete and any("breaks off" in note for note in cut.recovery.notes)
    assert len(cut.store) >= len(loaded.store) - 2
    (tmp_path / "foreign").write_bytes(b"\x0a\x02\x30\x01")
    with pytest.raises(TraceError, match="has no slices"):
        load(tmp_path / "foreign")
    loaded.export("perfetto", tmp_path / "x.pftrace.gz")
    assert len(load(tmp_path / "x.pftrace.gz").store) == len(loaded.store)


def test_links_from_forward_to_backward_survive_perfetto(tmp_path):
    with profile() as prof:
        torch.ones(2, requires_grad=True).mul(2).sum().backward()
    writers.get("perfetto")(prof._recording(), tmp_path / "x.pftrace")
    again = load(tmp_path / "x.pftrace")
    assert again.recovery.intact
    assert [len(rows) for rows in again.store.links] == [len(rows) for rows in prof._recording().links]
    assert [len(rows) for rows in again.store.links] != [0, 0]
