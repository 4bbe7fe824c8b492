"""Communication in a profile, in its files, and in each way of keeping events: a process alone is enough for it."""

from __future__ import annotations

import json

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2._dispatch import communications
from mindtorch_v2.profiler import load, profile, validate


@pytest.fixture(autouse=True)
def _group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _work():
    x = torch.ones(8)
    dist.all_reduce(x)
    dist.broadcast(x, 0)


def _gloo(events):
    return [event for event in events if event.name.startswith("gloo:")]


def test_the_table_has_communication_that_takes_no_time_of_the_cpu():
    with profile(record_shapes=True) as prof:
        _work()
    rows = {row.key: row for row in prof.key_averages()}
    row = rows["gloo:all_reduce"]
    assert (row.count, row.is_async, row.self_cpu_time_total, row.is_user_annotation) == (1, True, 0, True)
    assert row.cpu_time_total > 0
    line = next(line for line in prof.key_averages().table().splitlines() if "gloo:all_reduce" in line)
    assert line.split()[1:4] == ["0.00%", "0.000us", "0"]


def test_a_group_has_a_lane_of_its_own():
    with profile() as prof:
        _work()
    events = _gloo(prof.events())
    assert [event.name for event in events] == ["gloo:all_reduce", "gloo:broadcast"]
    (caller,) = {event.thread for event in prof.events() if event.name.startswith("c10d::")}
    assert {event.thread for event in events} != {caller}
    assert all(event.cpu_parent is None for event in events)
    metadata = events[0].event_metadata
    assert (metadata.collective_name, metadata.in_msg_nelems, metadata.group_ranks, metadata.seq) == ("allreduce", 8, "[0]", 1)


@pytest.mark.parametrize("suffix", (".json", ".mtp", ".json.gz"))
def test_files_keep_group_and_sequence_number(tmp_path, suffix):
    with profile(record_shapes=True) as prof:
        _work()
    path = str(tmp_path / f"a{suffix}")
    (prof.save if suffix == ".mtp" else prof.export_chrome_trace)(path)
    again = str(tmp_path / "b.mtp")
    load(path).save(again)
    for read in (load(path), load(again)):
        told = [event.event_metadata for event in _gloo(read.events())]
        assert [(each.collective_name, each.seq, each.process_group_name) for each in told] == [
            ("allreduce", 1, "0"),
            ("broadcast", 2, "0"),
        ]
        assert read.key_averages().self_cpu_time_total == pytest.approx(prof.key_averages().self_cpu_time_total, rel=1e-3)


def test_a_stream_and_a_ring_and_statistics_keep_communication(tmp_path):
    path = tmp_path / "stream.mtp"
    with profile(record_shapes=True, stream_to=path):
        _work()
    with profile(record_shapes=True, max_memory_mb=8, mode="ring") as ring:
        _work()
    for read, first in ((load(str(path)), 1), (ring, 3)):
        told = [event.event_metadata for event in _gloo(read.events())]
        assert [(each.collective_name, each.seq) for each in told] == [("allreduce", first), ("broadcast", first + 1)]
    with profile(max_memory_mb=8, mode="aggregate") as statistics:
        _work()
    counts = {row.name: row.calls.count for row in statistics.aggregate().rows}
    assert (counts["gloo:all_reduce"], counts["gloo:broadcast"]) == (1, 1)


def test_what_had_not_ended_is_kept_and_says_so(tmp_path):
    x = torch.ones(4)
    with profile(record_shapes=True) as prof:
        work = dist.irecv(x, 0)
    path = tmp_path / "a.json"
    prof.export_chrome_trace(str(path))
    (event,) = (each for each in json.loads(path.read_text())["traceEvents"] if each["name"] == "gloo:recv")
    assert event["args"]["finished"] is False and event["args"]["Collective name"] == "recv"
    dist.distributed_c10d._get_default_group().send([torch.zeros(4)], 0, 0)
    work.wait()


def test_communication_that_overlaps_is_on_lanes_beside_each_other():
    x = torch.ones(4)
    group = dist.distributed_c10d._get_default_group()
    with profile() as prof:
        works = [dist.irecv(x, 0, tag=tag) for tag in (1, 2)]
        for tag in (1, 2):
            group.send([x], 0, tag)
        for work in works:
            work.wait()
    received = [event for event in prof.events() if event.name == "gloo:recv"]
    assert len({event.thread for event in received}) == 2


def test_nothing_listens_when_nothing_records():
    with profile():
        assert communications.listeners.every
    assert communications.listeners.every == ()


NCCL = {
    "Collective name": "allreduce",
    "In msg nelems": 1024,
    "Out msg nelems": 1024,
    "Group size": 8,
    "dtype": "BFloat16",
    "In split size": "[]",
    "Out split size": "[]",
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]",
    "Rank": 3,
    "Seq": 17,
    "Comms Id": 123456789012345678,
}


@pytest.mark.parametrize(
    "name",
    (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    ),
)
def test_arguments_of_nccl_survive_load_save_load(tmp_path, name):
    trace = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 1, "pg_config": []},
        "traceEvents": [
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": "c10d::allreduce_",
                "pid": 1,
                "tid": 1,
                "ts": 0,
                "dur": 50,
                "args": {"External id": 1},
            },
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": "record_param_comms",
                "pid": 1,
                "tid": 1,
                "ts": 5,
                "dur": 20,
                "args": {"External id": 2, **NCCL},
            },
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": 1,
                "tid": 1,
                "ts": 10,
                "dur": 4,
                "args": {"External id": 2, "correlation": 7},
            },
            {
                "ph": "X",
                "cat": "kernel",
                "name": name,
                "pid": 0,
                "tid": 7,
                "ts": 20,
                "dur": 90,
                "args": {"External id": 2, "correlation": 7, "device": 0, "stream": 7, **NCCL},
            },
        ],
    }
    first, second, third = (tmp_path / each for each in ("a.json", "b.mtp", "c.json"))
    first.write_text(json.dumps(trace))
    load(str(first)).save(str(second))
    load(str(second)).export_chrome_trace(str(third))
    for path in (first, second, third):
        read = load(str(path))
        for event in read.events():
            if event.name in ("record_param_comms", name):
                told = event.event_metadata
                assert (told.collective_name, told.seq, told.group_size, told.rank) == ("allreduce", 17, 8, 3)
    written = json.loads(third.read_text())
    assert written["distributedInfo"] == trace["distributedInfo"]
    for event in written["traceEvents"]:
        if event["name"] in ("record_param_comms", name):
            assert event["args"].items() >= NCCL.items()


def test_a_recording_of_communication_keeps_its_promises(tmp_path):
    with profile() as prof:
        _work()
    prof.save(str(tmp_path / "a.mtp"))
    assert not [problem for problem in validate(load(str(tmp_path / "a.mtp")).store) if problem.severity == "error"]
