"""Collectives of traces that others wrote: NCCL's old and new names, arguments or none, gloo's ranges."""

import gzip
import json

import numpy as np
import pytest

from mindtorch_v2.profiler import ranks
from mindtorch_v2.profiler.ranks.collectives import KINDS, item_bytes, kind_of
from mindtorch_v2.profiler.ranks.mapping import map_file

NEW = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
OLD = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (NEW, "all_reduce"),
        (OLD, "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t", "all_gather"),
        ("gloo:all_gather", "all_gather"),
        ("hcom_allReduce__123_0", "all_reduce"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "other"),
        ("recv 0<-1", "recv"),
    ],
)
def test_kinds_by_name(name, kind):
    assert KINDS[kind_of(name)] == kind


@pytest.mark.parametrize(
    ("dtype", "size"), [("Float", 4), ("BFloat16", 2), ("Long", 8), ("c10::Half", 2), ("int32", 4), ("", 1)]
)
def test_bytes_of_an_element(dtype, size):
    assert item_bytes(dtype) == size


def trace(rank, name, arguments, category="kernel"):
    """Two steps of one kernel and one all-reduce; rank 1 comes 300 us late to each."""
    late = 300.0 if rank == 1 else 0.0
    events = []
    for step in range(2):
        base = 10_000.0 * step
        span = {"ph": "X", "pid": 1, "tid": 1}
        events.append(
            {**span, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": base, "dur": 10_000.0, "args": {}}
        )
        compute = {"cat": category if category == "kernel" else "cpu_op", "name": "gemm", "ts": base + 10, "dur": 1000.0 + late}
        sent = {"cat": category, "name": name, "ts": base + 1020 + late, "dur": 2000.0 - late}
        for number, event in enumerate((compute, sent)):
            place = {"device": 0, "stream": 7 + number, "correlation": 1 + number} if category == "kernel" else {}
            more = arguments(step) if number else {}
            lane = {"pid": 0, "tid": 7 + number} if category == "kernel" else {"pid": 1, "tid": 1 + number}
            events.append({"ph": "X", **lane, **event, "args": {**place, **more}})
    info = {"backend": "nccl", "rank": rank, "world_size": 2, "pg_count": 1, "pg_config": []}
    return {"schemaVersion": 1, "distributedInfo": info, "host_name": f"h{rank}", "traceEvents": events}


def with_arguments(step):
    return {
        "Collective name": "allreduce",
        "In msg nelems": 1024,
        "Out msg nelems": 1024,
        "Group size": 2,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
        "Seq": 17 + step,
    }


@pytest.mark.parametrize(
    ("name", "arguments", "category"),
    [
        (NEW, with_arguments, "kernel"),
        (NEW, lambda step: {}, "kernel"),
        (OLD, lambda step: {}, "kernel"),
        ("gloo:all_reduce", lambda step: {}, "user_annotation"),
        ("gloo:all_reduce", with_arguments, "user_annotation"),
    ],
    ids=["new", "new without arguments", "old", "gloo", "gloo with arguments"],
)
def test_traces_of_torch(tmp_path, name, arguments, category):
    for rank in range(2):
        (tmp_path / f"trace{rank}.json.gz").write_bytes(
            gzip.compress(json.dumps(trace(rank, name, arguments, category)).encode())
        )
    answers = ranks.load(tmp_path, processes=1)
    job, instances = answers.job, answers.instances
    assert not job.left_out
    assert len(instances) == 2
    assert instances.count.tolist() == [2, 2]
    assert instances.transfer.tolist() == [1_700_000, 1_700_000]
    assert job.messages.rank[instances.rows[instances.last]].tolist() == [1, 1]
    assert np.unique(instances.wait).tolist() == [0, 300_000]
    assert job.steps["computing"].tolist() == [[1_000_000] * 2, [1_300_000] * 2]
    assert job.steps["exposed"].tolist() == [[2_000_000] * 2, [1_700_000] * 2]
    if arguments(0):
        assert set(instances.size.tolist()) == {4096}
        assert job.messages.seq.tolist() == [17, 18, 17, 18]
    assert (answers.clocks.part == 0).all()


def test_arguments_of_collectives_survive_load_save_load(tmp_path):
    from mindtorch_v2.profiler.results.loaded import load

    path = tmp_path / "trace_rank1.json"
    path.write_text(json.dumps(trace(1, NEW, with_arguments)))
    load(path).save(tmp_path / "rank1.mtp")
    load(tmp_path / "rank1.mtp").export_chrome_trace(str(tmp_path / "again_rank1.json"))
    blocks = {name: map_file("rank1", str(tmp_path / name)) for name in ("trace_rank1.json", "rank1.mtp", "again_rank1.json")}
    assert all(not one.reason for one in blocks.values())
    from mindtorch_v2.profiler.ranks.digest_file import decode

    sent = [decode(one.blocks[0]).communications for one in blocks.values()]
    for other in sent[1:]:
        assert other.seq.tolist() == sent[0].seq.tolist() == [17, 18]
        assert other.size.tolist() == sent[0].size.tolist()
        assert other.length.tolist() == sent[0].length.tolist()
