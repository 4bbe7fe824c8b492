"""The backend hccl: collectives of NPU tensors between processes, each with the simulator's device, against torch's answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from rank_programs import free_port, programs, run_ranks

ROOT = Path(__file__).resolve().parents[3]
RECORDED = json.loads((ROOT / "tests/mindtorch_v2/distributed/recorded_ranks.json").read_text())
DTYPES = ("float32", "bfloat16", "float64", "bool", "complex64")
# Of HCCL: no float64 and no bits in reductions, no tags, no message from anybody; monitored_barrier is gloo's.
NOT_BY_HCCL = ("any_source", "tags", "barriers", "refused/bits of floats", "split", "gather/complex64")
NAMES = [
    name
    for name, _ in programs()
    if name not in NOT_BY_HCCL
    and not any(bits in name for bits in ("/BAND/", "/BOR/", "/BXOR/"))
    and not (name.endswith("/float64") and ("reduce" in name))
    and (name.endswith(DTYPES) or "/" not in name)
] + ["ddp/plain", "ddp/looked for", "ddp/own hook"]


@pytest.fixture
def environment(simulator, monkeypatch):
    """Has processes use the simulator."""
    monkeypatch.setenv("MINDTORCH_NPU_LIBRARY", str(simulator))


@pytest.fixture(scope="module")
def answers(simulator):
    before = os.environ.get("MINDTORCH_NPU_LIBRARY")
    os.environ["MINDTORCH_NPU_LIBRARY"] = str(simulator)
    try:
        return run_ranks(sys.executable, "mindtorch_v2", 2, NAMES, backend="hccl")
    finally:
        if before is None:
            del os.environ["MINDTORCH_NPU_LIBRARY"]
        else:
            os.environ["MINDTORCH_NPU_LIBRARY"] = before


@pytest.mark.parametrize("name", NAMES)
def test_tensors_of_npus_become_what_torch_makes_of_those_of_cpus(answers, name):
    for rank in range(2):
        assert answers[rank][name] == RECORDED["2"][rank][name]


# ---------------------------------------------------------------------- programs of their own

START = """
    import json, os, sys
    from datetime import timedelta
    import mindtorch_v2 as torch
    import mindtorch_v2.distributed as dist

    rank, size, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4]
    def join(backend="hccl"):
        place = f"tcp://127.0.0.1:{sys.argv[3]}"
        dist.init_process_group(backend, place, timedelta(seconds=120), world_size=size, rank=rank)
    def said(call):
        try:
            return str(call())
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    def answer(value):
        open(out, "w").write(json.dumps(value))
"""


def ranks(tmp_path, code, size=2, timeout=240, **env):
    """What each of some processes answers."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(START) + textwrap.dedent(code))
    outs, port = [tmp_path / f"{rank}.json" for rank in range(size)], free_port()
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(size), str(port), str(out)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **env},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, out in enumerate(outs)
    ]
    try:
        said = [process.communicate(timeout=timeout)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(out.exists() for out in outs), said
    return [json.loads(out.read_text()) for out in outs]


def test_recorded_with_group_ranks_and_sizes_and_on_the_device(environment, tmp_path):
    told = ranks(
        tmp_path,
        """
        join("cpu:gloo,npu:hccl")
        from mindtorch_v2.profiler import profile
        pair, single = torch.ones(6, device="npu"), torch.empty(3, device="npu")
        other, mine = torch.empty(4, device="npu"), torch.full((4,), float(rank), device="npu")
        with profile(record_shapes=True) as prof:
            dist.all_reduce(pair)
            dist.reduce_scatter_single(single, pair)
            work = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)])
            for each in work:
                each.wait()
            dist.all_reduce(torch.ones(2))  # of the CPU
            dist.barrier()
            torch.npu.synchronize()
        prof.export_chrome_trace(out + ".trace.json")
        trace = json.load(open(out + ".trace.json"))
        rows = [each for each in trace["traceEvents"] if ":" in each.get("name", "") and "Comms Id" in each.get("args", {})]
        answer({
            "rows": {each["name"]: each["args"] for each in rows},
            "kernels": sorted(each["name"] for each in trace["traceEvents"] if each.get("cat") == "kernel"),
            "groups": [each["backend_config"] for each in trace["distributedInfo"]["pg_config"]],
            "received": other.tolist(),
        })
        dist.destroy_process_group()
        """,
    )
    for rank, told_here in enumerate(told):
        rows = told_here["rows"]
        assert {"hccl:all_reduce", "hccl:reduce_scatter", "hccl:send", "hccl:recv", "gloo:all_reduce"} <= set(rows)
        reduced = rows["hccl:all_reduce"]
        assert (reduced["In msg nelems"], reduced["dtype"], reduced["Group size"], reduced["Rank"]) == (6, "Float", 2, rank)
        assert reduced["Process Group Ranks"] == "[0, 1]" and reduced["Seq"] == 1
        scattered = rows["hccl:reduce_scatter"]
        assert (scattered["In msg nelems"], scattered["Out msg nelems"], scattered["Seq"]) == (6, 3, 2)
        assert {"HcclAllReduce", "HcclReduceScatter", "HcclBatchSendRecv"} <= set(told_here["kernels"])
        assert told_here["groups"] == ["cpu:gloo,npu:hccl"] and told_here["received"] == [1.0 - rank] * 4
    first, second = (each["rows"] for each in told)
    assert first["hccl:all_reduce"]["Comms Id"] == second["hccl:all_reduce"]["Comms Id"]
    assert first["hccl:send"]["Comms Id"] == second["hccl:recv"]["Comms Id"] != first["hccl:recv"]["Comms Id"]


def test_other_sizes_and_what_hccl_has_not_are_told_on_every_rank(environment, tmp_path):
    for first, second in ranks(
        tmp_path,
        """
        join()
        refused = [
            said(lambda: dist.all_reduce(torch.ones(2))),
            said(lambda: dist.all_reduce(torch.ones(2, dtype=torch.float64, device="npu"))),
            said(lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32, device="npu"), op=dist.ReduceOp.BAND)),
            said(lambda: dist.send(torch.ones(2, device="npu"), 1 - rank, tag=3)),
            said(lambda: dist.recv(torch.ones(2, device="npu"))),
            said(lambda: dist.monitored_barrier()),
            said(lambda: dist.new_group([0, 1], backend="gloo")),
        ]
        from mindtorch_v2.profiler.live.group_statistics import GroupStatistics
        cpu = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=cpu, mode="aggregate", max_memory_mb=32) as prof:
            torch.ones(3, device="npu") + 1
        added_up = GroupStatistics(prof.aggregate, 1, write=lambda summary: None).reduce()
        refused.append(added_up and added_up.ranks)
        def wrong():
            dist.all_reduce(torch.ones(2 + rank, device="npu"))
            dist.barrier()
        answer([refused, [said(wrong), said(lambda: dist.barrier())]])
        """,
        HCCL_BLOCKING_WAIT="1",
    ):
        assert first[0] == "RuntimeError: No backend type associated with device type cpu"
        assert first[1].endswith("HCCL has no ReduceOp.SUM of float64")
        assert first[2].endswith("HCCL has no ReduceOp.BAND of int32")
        assert "no tags" in first[3] and "recvAnysource" in first[4] and "only implemented for GLOO" in first[5]
        assert "need those of init_process_group" in first[6]
        assert first[7] in (2, None)  # statistics of both, on the first of them
        assert second[0].startswith("DistBackendError: all_reduce (rank ") and "sequence number" in second[0]
        assert "EI0005" in second[0] and "count 2" in second[0] and "count 3" in second[0]
        assert "the group cannot be used any more" in second[1]


def test_a_rank_that_does_not_come_is_an_error_within_the_timeout(environment, tmp_path):
    left, _ = ranks(
        tmp_path,
        """
        join()
        dist.group.WORLD.set_timeout(timedelta(seconds=2))  # the processes may take longer to meet
        x = torch.ones(3, device="npu")
        dist.all_reduce(x)
        if rank == 0:
            import time
            begin = time.monotonic()
            text = said(lambda: dist.all_reduce(x))
            answer([text, time.monotonic() - begin])
        else:
            answer([])
            os._exit(1)
        os._exit(0)
        """,
        HCCL_BLOCKING_WAIT="1",
    )
    place = "rank 0 of group '0' with 2 processes, sequence number 2"
    assert left[0].startswith(f"DistBackendError: all_reduce ({place}): not done after 2 s")
    assert 2 <= left[1] < 30


def test_a_library_without_a_function_is_told(simulator_without, tmp_path, monkeypatch):
    code = """
    answer([dist.is_backend_available("hccl"), said(join)])
    """
    monkeypatch.setenv("MINDTORCH_NPU_LIBRARY", str(simulator_without("HcclAllReduce")))
    [[available, text]] = ranks(tmp_path, code, size=1)
    assert not available and "The backend hccl cannot be used" in text and "has no function HcclAllReduce" in text


def test_ddp_moves_its_inputs_to_the_device_of_the_module(environment, tmp_path):
    code = """
        torch.npu.set_device(rank)
        join()
        class Net(torch.nn.Linear):
            def forward(self, pair, scale):
                return [each.device.type for each in (pair["x"], pair["more"][0], scale)], super().forward(pair["x"]) * scale
        net = torch.nn.parallel.DistributedDataParallel(Net(3, 2).to(f"npu:{rank}"), device_ids=[rank])
        kinds, output = net({"x": torch.ones(4, 3), "more": [torch.ones(1), "text"]}, scale=torch.ones(1))
        output.sum().backward()
        answer([kinds, net.module.weight.grad.cpu().tolist()])
        dist.destroy_process_group()
    """
    for kinds, gradient in ranks(tmp_path, code):
        assert kinds == ["npu"] * 3
        assert gradient == [[4.0] * 3] * 2
