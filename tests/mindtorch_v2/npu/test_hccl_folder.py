"""Collectives that libmspti tells of are in the recording's folder for Ascend's tools, with their times, sizes and group."""

from __future__ import annotations

import json

PROGRAM = """
    import json, socket, tempfile
    from pathlib import Path
    import mindtorch_v2 as torch
    import mindtorch_v2.distributed as dist
    from mindtorch_v2.profiler import ProfilerActivity, load, profile
    from mindtorch_v2.profiler.analysis.device.summary import device_summaries

    dist.init_process_group("hccl", store=dist.HashStore(), rank=0, world_size=1)
    x = torch.ones(6, device="npu")
    dist.all_reduce(x)
    torch.npu.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]) as prof:
        for _ in range(3):
            dist.all_reduce(x)
        x + 1
        torch.npu.synchronize()
    folder = Path(tempfile.mkdtemp())
    told = {"losses": prof.profiler.store.metadata.get("losses"), "forms": {}}
    told["communication"] = [each.communication_ns for each in device_summaries(prof.profiler.store)]
    for form in ("ascend", "ascend-db"):
        prof.save(folder / "x.mtp")
        load(folder / "x.mtp").export(form, folder / f"{form}_ascend_pt")
        loaded = load(folder / f"{form}_ascend_pt")
        names = [loaded.store.names[name] for name in loaded.store.name[loaded.store.is_work & loaded.store.is_collective]]
        told["forms"][form] = names, [each.communication_ns for each in device_summaries(loaded.store)]
    told["json"] = json.loads((folder / "ascend_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json").read_text())
    told["rows"] = [
        json.loads(prof.profiler.store.row_details[at].arguments)
        for at in prof.profiler.store.details[prof.profiler.store.is_work & prof.profiler.store.is_collective]
    ]
    print(json.dumps(told))
    dist.destroy_process_group()
"""


def test_collectives_of_a_recording_are_in_its_folder(in_process):
    run = in_process(PROGRAM)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["losses"] is None
    assert [(row["Collective name"], row["In msg nelems"], row["dtype"]) for row in told["rows"]] == (
        [("HcclAllReduce", 6, "fp32")] * 3
    )
    (group,) = {row["Process Group Name"] for row in told["rows"]}
    (step,) = told["json"].values()
    named = {key: figures for key, figures in step["collective"].items() if key != "Total Op Info"}
    assert len(named) == 3 and all(key.startswith("hcom_allReduce__") and key.endswith(f"@{group}") for key in named)
    spent = sum(figures["Communication Time Info"]["Elapse Time(ms)"] for figures in named.values())
    assert told["communication"][0] > 0 and round(spent * 1e6) == told["communication"][0]
    for names, communication in told["forms"].values():
        assert sorted(names) == sorted(key.rpartition("@")[0] for key in named)
        assert communication == told["communication"]
