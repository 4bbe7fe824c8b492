"""Views of a device, on recordings put together by hand so that every figure is known."""

import json

import numpy as np
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.device import summary as device_time
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.formats import saved
from mindtorch_v2.profiler.store.intervals import Intervals
from mindtorch_v2.profiler.store.store import EventStore, RowDetails

CUDA, NPU = 1, 20


def details(**arguments):
    return RowDetails("", json.dumps(arguments))


def work(name, start, end, stream=7, kind=observer.KERNEL, device=CUDA, **more):
    return {
        "name": name,
        "start": start,
        "end": end,
        "kind": kind,
        "stream": stream,
        "device_type": device,
        "device_index": 0,
        **more,
    }


def host(name, start, end, kind=observer.OP, **more):
    return {"name": name, "start": start, "end": end, "kind": kind, **more}


def geometry(grid, block, occupancy, per_sm):
    return details(**{"grid": grid, "block": block, "est. achieved occupancy %": occupancy, "blocks per SM": per_sm})


def two_steps(device=CUDA):
    """Two steps of 1000 ns: of the first 200 ns compute, 150 communication (50 of it hidden), 100 copy."""
    launched = {"launch_thread": 1, "correlation": 5, "launch_ns": 20}
    return EventStore.from_rows(
        [
            host("cudaLaunchKernel", 20, 30, observer.RUNTIME, correlation=5),
            host("aten::mm", 10, 60),
            host("cudaStreamSynchronize", 560, 700, observer.RUNTIME),
            host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 700, 820, observer.SCOPE),
            host("aten::add", 850, 900),
            host("ProfilerStep#4", 0, 1000, observer.STEP),
            host("aten::mm", 1100, 1300),
            host("ProfilerStep#5", 1000, 2000, observer.STEP),
            work(
                "ampere_s16816gemm_fp16", 100, 200, device=device, details=geometry([8, 1, 1], [128, 1, 1], 40, 0.5), **launched
            ),
            work("sgemm", 200, 300, device=device, details=geometry([8, 1, 1], [128, 1, 1], 20, 2.0)),
            work(
                "ncclDevKernel_AllReduce", 250, 400, stream=20, device=device, details=geometry([2, 1, 1], [64, 1, 1], 0, 0.1)
            ),
            work("Memcpy HtoD", 400, 500, kind=observer.COPY, device=device, details=details(bytes=2000)),
            work("Memcpy HtoD", 1200, 1300, kind=observer.COPY, device=device, details=details(bytes=1000)),
            work("Memset", 500, 510, kind=observer.FILL, device=device),
            work("ProfilerStep#4", 100, 510, kind=observer.SCOPE, device=device),
        ],
        metadata={"deviceProperties": [{"id": 0, "name": "A100"}]},
    )


def test_the_summary_of_a_device():
    (summary,) = device_time.device_summaries(two_steps())
    assert (summary.device, summary.name, summary.span_ns, summary.streams) == ("cuda:0", "A100", 2000, 2)
    assert (summary.busy_ns, summary.kernel_ns, summary.communication_ns, summary.copy_ns) == (510, 200, 150, 210)
    assert summary.exposed_communication_ns == 100 and summary.utilization == pytest.approx(0.255)
    assert summary.occupancy == pytest.approx((40 * 100 + 20 * 100) / 350)
    assert summary.sm_efficiency == pytest.approx((0.5 * 100 + 1.0 * 100 + 0.1 * 150) / 350)
    assert summary.tensor_core_share == pytest.approx(100 / 350)


def test_what_a_recording_does_not_tell_is_none():
    rows = [work("MatMul", 10, 30, device=NPU), work("Memcpy H2D", 40, 50, kind=observer.COPY, device=NPU)]
    store = EventStore.from_rows(rows)
    (summary,) = device_time.device_summaries(store)
    assert (summary.occupancy, summary.sm_efficiency, summary.tensor_core_share, summary.name) == (None,) * 4
    (kernel,) = device_time.kernel_groups(store)
    assert (kernel.grid, kernel.block, kernel.occupancy, kernel.tensor_cores, kernel.op) == (None,) * 5
    (copy,) = device_time.copy_groups(store)
    assert copy.bytes is None and copy.gigabytes_per_second is None
    assert device_time.launch_stats(store) == []


def test_steps_by_what_they_spend_their_time_on():
    first, second = device_time.step_breakdown(two_steps())
    assert (first.step, first.duration_ns, second.step) == (4, 1000, 5)
    assert first.parts == {
        "kernel": 200,
        "communication": 100,
        "copy": 100,
        "fill": 10,
        "waiting": 140,
        "launching": 10,
        "loader": 120,
        "cpu": 40 + 50,
        "idle": 1000 - 200 - 100 - 100 - 10 - 140 - 10 - 120 - 90,
    }
    assert second.parts["copy"] == 100 and second.parts["cpu"] == 100 and second.parts["idle"] == 800


def test_work_that_outlasts_the_last_step_belongs_to_it():
    rows = [host("ProfilerStep#1", 0, 100, observer.STEP), work("k", 50, 300)]
    (step,) = device_time.step_breakdown(EventStore.from_rows(rows))
    assert step.duration_ns == 300 and step.parts["kernel"] == 250


def test_kernels_by_launch_geometry():
    groups = device_time.kernel_groups(two_steps())
    assert [(group.name, group.total_ns, group.grid) for group in groups] == [
        ("ncclDevKernel_AllReduce", 150, (2, 1, 1)),
        ("ampere_s16816gemm_fp16", 100, (8, 1, 1)),
        ("sgemm", 100, (8, 1, 1)),
    ]
    assert [group.op for group in groups] == [None, "aten::mm", None]
    assert [group.tensor_cores for group in groups] == [False, True, False]
    apart = [work("k", at, at + 5, details=geometry([at, 1, 1], [1, 1, 1], 1, 1)) for at in (10, 20)]
    assert len(device_time.kernel_groups(EventStore.from_rows(apart))) == 2


def on_npu():
    """A kernel on 48 cores and later on 24, and a collective of a group."""
    launched = {"launch_thread": 1, "correlation": 5, "launch_ns": 20, "device": NPU}
    core = {"Accelerator Core": "AI_VECTOR_CORE"}
    return EventStore.from_rows(
        [
            work("Mul", 100, 200, details=details(**core, **{"Block Num": 48}), **launched),
            work("Mul", 200, 500, details=details(**core, **{"Block Dim": 24}), **launched),
            work(
                "hcom_allReduce_",
                300,
                600,
                stream=-1,
                details=details(**{"Collective name": "allreduce", "Block Num": 0}),
                **launched,
            ),
        ]
    )


def test_kernels_of_an_npu_have_cores():
    computes, talks = device_time.kernel_groups(on_npu())
    assert (computes.core, computes.blocks) == ("AI_VECTOR_CORE", 30)
    assert (talks.core, talks.blocks) == (None, None)


def test_the_command_shows_the_columns_that_a_recording_has(tmp_path, capsys):
    for store, expected in ((on_npu(), ["core", "blocks"]), (two_steps(), ["occupancy", "grid", "block"])):
        saved.save(store, tmp_path / "a.mtp")
        assert main(["device", str(tmp_path / "a.mtp")]) == 0
        lines = capsys.readouterr().out.splitlines()
        (head,) = (line for line in lines if line.endswith("  kernel"))
        assert head.split() == ["time", "share", "calls", "mean", *expected, "kernel"]


def test_bandwidth_of_copies():
    copies = device_time.copy_groups(two_steps())
    assert [(group.name, group.calls, group.total_ns, group.bytes) for group in copies] == [
        ("Memcpy HtoD", 2, 200, 3000),
        ("Memset", 1, 10, None),
    ]
    assert copies[0].gigabytes_per_second == 15.0


def test_launch_delay_and_queue():
    """Three kernels launched at 0, 10 and 20 that begin at 10, 50 and 90, each for 40."""
    rows = []
    for number, (launched, began) in enumerate([(0, 10), (10, 50), (20, 90)]):
        rows.append(work("k", began, began + 40, correlation=number, launch_thread=1, launch_ns=launched))
    (stats,) = device_time.launch_stats(EventStore.from_rows(rows))
    assert (stats.launches, stats.median_delay_ns, stats.longest_delay_ns, stats.longest_queue) == (3, 40, 70, 2)
    assert stats.mean_queue == pytest.approx((10 + 40 + 70) / 130) and stats.starved_share == 0.0


@pytest.mark.parametrize(
    "name, uses",
    [
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>", True),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n", True),
        ("volta_h884gemm_64x64_ldg8_nn", True),
        ("ampere_sgemm_128x64_nn", False),
        ("void at::native::vectorized_elementwise_kernel<4>", False),
    ],
)
def test_names_of_kernels_that_use_tensor_cores(name, uses):
    assert device_time.uses_tensor_cores(name) is uses


def test_unions_of_intervals():
    union = Intervals(np.array([5, 0, 20, 8]), np.array([10, 6, 30, 9]))
    assert union.start.tolist() == [0, 20] and union.end.tolist() == [10, 30] and union.total == 20
    assert union.covered(np.array([0, 8, 12, -5]), np.array([40, 25, 18, 1])).tolist() == [20, 7, 0, 1]
    assert Intervals(np.array([]), np.array([])).covered(np.array([0]), np.array([9])).tolist() == [0]


def test_the_command(tmp_path, capsys):
    saved.save(two_steps(), tmp_path / "a.mtp")
    assert main(["device", str(tmp_path / "a.mtp")]) == 0
    text = capsys.readouterr().out
    assert "cuda:0 (A100): busy 25.5% of 2 us" in text and "Memcpy HtoD" in text and "8,1,1" in text
    assert main(["device", str(tmp_path / "a.mtp"), "--json", "-n", "1"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["devices"][0]["utilization"] == 0.255 and answer["steps"][0]["kernel_ns"] == 200
    assert len(answer["kernels"]) == 1 and answer["kernels_in_all"] == 3
    assert answer["copies"][0]["gigabytes_per_second"] == 15.0 and answer["launches"][0]["launches"] == 1


def test_the_command_says_that_nothing_ran_on_a_device(tmp_path, capsys):
    saved.save(EventStore.from_rows([host("aten::mm", 0, 5)]), tmp_path / "a.mtp")
    assert main(["device", str(tmp_path / "a.mtp")]) == 3
    assert "nothing in it ran on a device" in capsys.readouterr().err


def test_flops_are_divided_by_the_time_of_kernels_where_they_are_known(tmp_path, capsys):
    launched = {"launch_thread": 1, "correlation": 5, "launch_ns": 20}
    rows = [
        host("cudaLaunchKernel", 20, 30, observer.RUNTIME, correlation=5),
        host("aten::mm", 10, 1010, flops=4000),
        host("aten::add", 2000, 2100, flops=100),
        work("sgemm", 400, 600, **launched),
    ]
    saved.save(EventStore.from_rows(rows), tmp_path / "a.mtp")
    assert main(["flops", str(tmp_path / "a.mtp"), "--json"]) == 0
    by_name = {row["name"]: (row["time_ns"], row["time_of"]) for row in json.loads(capsys.readouterr().out)["operators"]}
    assert by_name == {"aten::mm": (200, "kernels"), "aten::add": (100, "host")}


def test_intervals_in_common_and_left_over():
    some = Intervals(np.array([0, 20, 40]), np.array([10, 30, 50]))
    others = Intervals(np.array([5, 25, 45, 60]), np.array([8, 42, 50, 70]))

    def pairs(intervals):
        return list(zip(intervals.start.tolist(), intervals.end.tolist(), strict=True))

    assert pairs(some - others) == [(0, 5), (8, 10), (20, 25), (42, 45)]
    assert pairs(some & others) == [(5, 8), (25, 30), (40, 42), (45, 50)]
    none = Intervals(np.array([]), np.array([]))
    assert (pairs(some - none), pairs(some & none), pairs(none - some)) == (pairs(some), [], [])
    assert some.overlap(np.array([10, 9, 15, 50]), np.array([20, 10, 41, 60])).tolist() == [False, True, True, False]
