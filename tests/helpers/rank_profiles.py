"""Programs of two processes under a profiler, by the names of the cases of `torch_profiles.json`, and what they recorded.

python tests/helpers/rank_profiles.py --package torch --out FILE    # as torch 2.13 records them
"""

from __future__ import annotations

import importlib
import json
import tempfile
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import two_ranks

_OF_CALLER = ("c10d::", "DistributedDataParallel")
_COUNTED = ("External id", "Ev Idx", "Record function id", "Sequence number", "Fwd thread id", "finished")
Program = Callable[[Any, Any, int, dict[str, Any]], Any]


def _clone(name: str, **arguments: Any) -> Program:
    return lambda torch, dist, rank, have: getattr(dist, name)(have["x"].clone(), **arguments)


def _all_reduce_async(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_reduce(have["x"].clone(), async_op=True).wait()


def _subgroup(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_reduce(have["x"].clone(), group=have["group"])


def _all_gather(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_gather([torch.empty(1024) for _ in range(2)], have["x"])


def _all_gather_into_tensor(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_gather_into_tensor(torch.empty(2048), have["x"])


def _reduce_scatter(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.reduce_scatter(torch.empty(512), [torch.ones(512) for _ in range(2)])


def _reduce_scatter_tensor(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.reduce_scatter_tensor(torch.empty(512), have["x"].clone())


def _gather(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.gather(have["x"], [torch.empty(1024) for _ in range(2)] if rank == 0 else None, dst=0)


def _scatter(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    output = torch.empty(1024)
    dist.scatter(output, [have["x"].clone() for _ in range(2)] if rank == 0 else None, src=0)


def _all_to_all(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_to_all([torch.empty(512) for _ in range(2)], [torch.ones(512) for _ in range(2)])


def _all_to_all_single(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_to_all_single(torch.empty(1024), have["x"])


def _send_recv(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    if rank == 0:
        dist.send(have["x"], 1)
    else:
        dist.recv(torch.empty(1024), 0)


def _isend_irecv(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    work = dist.isend(have["x"], 1) if rank == 0 else dist.irecv(torch.empty(1024), 0)
    work.wait()


def _all_gather_object(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_gather_object([None, None], {"rank": 0})


def _broadcast_object_list(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.broadcast_object_list([{"rank": 0}], src=0)


def _all_reduce_coalesced(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
    dist.all_reduce_coalesced([have["x"].clone(), have["x"].clone()])


def _trained(name: str, without_sync: bool = False) -> Program:
    def program(torch: Any, dist: Any, rank: int, have: dict[str, Any]) -> None:
        model, optimizer = have[name]
        if optimizer is None:
            model(torch.randn(4, 64)).sum().backward()
            return
        optimizer.zero_grad()
        if without_sync:
            with model.no_sync():
                model(torch.randn(32, 64)).square().mean().backward()
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()

    return program


PROGRAMS: dict[str, Program] = {
    "all_reduce": _clone("all_reduce"),
    "all_reduce_async": _all_reduce_async,
    "all_reduce_subgroup": _subgroup,
    "all_reduce_coalesced": _all_reduce_coalesced,
    "broadcast": _clone("broadcast", src=0),
    "reduce": _clone("reduce", dst=0),
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
    "gather": _gather,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
    "all_to_all_single": _all_to_all_single,
    "barrier": lambda torch, dist, rank, have: dist.barrier(),
    "monitored_barrier": lambda torch, dist, rank, have: dist.monitored_barrier(),
    "send_recv": _send_recv,
    "isend_irecv": _isend_irecv,
    "all_gather_object": _all_gather_object,
    "broadcast_object_list": _broadcast_object_list,
    "ddp": _trained("ddp"),
    "ddp_no_sync": _trained("ddp", without_sync=True),
    "ddp_find_unused": _trained("ddp_find_unused"),
    "ddp_fp16_hook": _trained("ddp_fp16_hook"),
}


def _models(torch: Any) -> dict[str, Any]:
    nn = torch.nn
    ddp = nn.parallel.DistributedDataParallel
    hooks = importlib.import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks")
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.BatchNorm1d(256), nn.Linear(256, 10))
    whole = ddp(net)
    hooked = ddp(nn.Linear(64, 64))
    hooked.register_comm_hook(None, hooks.fp16_compress_hook)
    return {
        "ddp": (whole, torch.optim.SGD(whole.parameters(), lr=0.1)),
        "ddp_find_unused": (ddp(nn.Linear(64, 64), find_unused_parameters=True), None),
        "ddp_fp16_hook": (hooked, None),
    }


def run_rank(package: str, rank: int, port: int, out: Path) -> None:
    """Run every program as one of the two processes, and write down what the profiler recorded."""
    warnings.simplefilter("ignore")
    torch, dist = importlib.import_module(package), importlib.import_module(f"{package}.distributed")
    profiler = importlib.import_module(f"{package}.profiler")
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2, timeout=timedelta(seconds=300)
    )
    have = {"x": torch.ones(1024), "group": dist.new_group([0, 1], group_desc="my_group"), **_models(torch)}
    answers: dict[str, Any] = {}
    for name, program in PROGRAMS.items():
        for _ in range(3 if name.startswith("ddp") else 1):  # what only happens the first times
            program(torch, dist, rank, have)
        dist.barrier()
        with profiler.profile(record_shapes=True) as profile:
            program(torch, dist, rank, have)
        answers[name] = recorded(profile)
    dist.barrier()
    out.write_text(json.dumps(answers))
    dist.destroy_process_group()


def recorded(profile: Any) -> dict[str, Any]:
    """The caller's rows as "depth name shapes" without the insides of ops, and the arguments of communication in the trace."""
    rows: list[str] = []
    threads = {event.thread for event in profile.events() if event.name.startswith(_OF_CALLER)}
    for event in sorted(profile.events(), key=lambda each: (each.time_range.start, -each.time_range.end)):
        above, parent = [], event.cpu_parent
        while parent is not None:
            above.append(parent.name)
            parent = parent.cpu_parent
        is_inside = any(name.startswith(("aten::", "c10d::")) for name in above)
        if event.thread in threads and not is_inside and not event.name.startswith("gloo:"):
            shapes = json.dumps(event.input_shapes or None, separators=(",", ":"))
            rows.append(f"{'  ' * len(above)}{event.name} {shapes}")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profile.export_chrome_trace(file.name)
        trace = json.loads(Path(file.name).read_text())
    communication = [
        [event["cat"], event["name"], {key: value for key, value in event["args"].items() if key not in _COUNTED}]
        for event in trace["traceEvents"]
        if event.get("ph") == "X" and event["name"].startswith((*_OF_CALLER, "gloo:"))
    ]
    return {"rows": rows, "communication": communication, "distributedInfo": trace.get("distributedInfo")}


def run(python: str, package: str) -> list[Any]:
    """What both ranks answered, from processes of their own."""
    return two_ranks.run(__file__, python, package)


if __name__ == "__main__":
    two_ranks.main(__doc__, __file__, run_rank)
