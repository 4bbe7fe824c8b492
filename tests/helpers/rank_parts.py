"""Programs of two processes on what is built on collectives: meshes, samplers, joins, sharded state. Of torch and this package.

python tests/helpers/rank_parts.py --package torch --out FILE    # torch's answers
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import two_ranks

Program = Callable[[Any, Any, int], Any]


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{name}")


def _numbers(tensor: Any) -> Any:
    return [round(float(each), 5) for each in tensor.detach().reshape(-1).tolist()]


def _net(torch: Any, *, norm: bool = False) -> Any:
    """A model with numbers of its own, since random ones differ from torch's."""
    nn = torch.nn
    layers = [nn.Linear(3, 5), *([nn.BatchNorm1d(5)] if norm else []), nn.Tanh(), nn.Linear(5, 1)]
    net = nn.Sequential(*layers)
    for parameter in net.parameters():
        count = parameter.numel()
        parameter.data = (torch.arange(count).reshape(parameter.shape) * 7 % 11 - 5) / 10.0
    return net


def _batch(torch: Any, rank: int, at: int = 0, rows: int = 4) -> Any:
    return (torch.arange(rows * 3).reshape(rows, 3) * (3 + rank) % 7 - 3 + at) / 5.0


def mesh(torch: Any, dist: Any, rank: int) -> Any:
    made = _module(torch, "distributed.device_mesh").init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))
    answers = [made.mesh.tolist(), made.shape, made.ndim, made.size(), made.size(0), made.get_coordinate()]
    answers += [made["dp"].mesh.tolist(), made["tp"].mesh.tolist(), made.get_local_rank("dp")]
    x = torch.ones(2) * (rank + 1)
    dist.all_reduce(x, group=made.get_group("dp"))
    dist.all_reduce(x, group=made["tp"].get_group())
    for wrong in (lambda: made["pp"], lambda: made.get_group(), lambda: made.get_local_rank()):
        try:
            wrong()
        except (KeyError, RuntimeError) as error:
            answers.append(type(error).__name__)
    return [*answers, _numbers(x)]


def functional(torch: Any, dist: Any, rank: int) -> Any:
    fcol = _module(torch, "distributed._functional_collectives")
    group = dist.group.WORLD
    x = torch.arange(4.0).reshape(2, 2) + 10 * rank
    answers = [
        fcol.all_reduce(x, "sum", group),
        fcol.all_gather_tensor(x, 0, group),
        fcol.all_gather_tensor(x, 1, group),
        fcol.reduce_scatter_tensor(x, "sum", 0, group),
        fcol.broadcast(x, 1, group),
        fcol.all_to_all_single(x, None, None, group),
    ]
    return [_numbers(fcol.wait_tensor(each)) for each in answers] + [_numbers(x)]


def differentiable(torch: Any, dist: Any, rank: int) -> Any:
    functions = _module(torch, "distributed.nn.functional")
    answers = []
    for call in (
        lambda x: functions.all_reduce(x),
        lambda x: torch.cat(functions.all_gather(x)),
        lambda x: functions.broadcast(x, 0),
        lambda x: functions.reduce_scatter(torch.empty(1), [x[:1], x[1:]]),
        lambda x: torch.cat(functions.all_to_all([torch.empty(1), torch.empty(1)], [x[:1], x[1:]])),
    ):
        x = (torch.arange(2.0) + 1 + rank).requires_grad_()
        result = call(x)
        (result * (rank + 2)).sum().backward()
        answers += [_numbers(result), _numbers(x.grad)]
    return answers


def sampler(torch: Any, dist: Any, rank: int) -> Any:
    made = _module(torch, "utils.data.distributed").DistributedSampler(range(7), shuffle=False)
    return [list(made), len(made)]


def join(torch: Any, dist: Any, rank: int) -> Any:
    answers = []
    for divide in (True, False):
        model = torch.nn.parallel.DistributedDataParallel(_net(torch))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with model.join(divide_by_initial_world_size=divide):
            for at in range(2 + 2 * rank):
                optimizer.zero_grad()
                model(_batch(torch, rank, at)).pow(2).mean().backward()
                optimizer.step()
        answers += [_numbers(each) for each in model.parameters()]
    return answers


def sync_batch_norm(torch: Any, dist: Any, rank: int) -> Any:
    batches = [_batch(torch, each, rows=3 + each) for each in (0, 1)]
    if torch.__name__ == "torch":  # it has no such layers for the CPU: one process with the whole batch is what they stand for
        net = _net(torch, norm=True)
        output = net(torch.cat(batches))
        (output.pow(2).sum() / 2).backward()
        output = output[:3] if rank == 0 else output[3:]
    else:
        net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(_net(torch, norm=True))
        output = torch.nn.parallel.DistributedDataParallel(net)(batches[rank])
        output.pow(2).sum().backward()
    return [_numbers(output), *[_numbers(each.grad) for each in net.parameters()], _numbers(net[1].running_var)]


def zero(torch: Any, dist: Any, rank: int) -> Any:
    optim = _module(torch, "distributed.optim")
    model = torch.nn.parallel.DistributedDataParallel(_net(torch))
    optimizer = optim.ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.05)
    for at in range(3):
        optimizer.zero_grad()
        model(_batch(torch, rank, at)).pow(2).mean().backward()
        optimizer.step()
    optimizer.consolidate_state_dict(to=0)
    state = optimizer.state_dict() if rank == 0 else {"state": {}}
    moments = [_numbers(state["state"][number]["exp_avg"]) for number in sorted(state["state"])]
    return [
        *[_numbers(each) for each in model.parameters()],
        moments,
        sum(len(g["params"]) for g in optimizer.optim.param_groups),
    ]


def power_sgd(torch: Any, dist: Any, rank: int) -> Any:
    hooks = _module(torch, "distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8, bias=True))
    for parameter in model.parameters():
        parameter.data = (torch.arange(parameter.numel()).reshape(parameter.shape) * 7 % 11 - 5) / 10.0
    # A gradient of two rows has rank 2, so nothing is left out, and the answer does not depend on random numbers.
    state = hooks.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=0.1)
    model.register_comm_hook(state, hooks.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for at in range(5):
        optimizer.zero_grad()
        x = (torch.arange(8).reshape(1, 8) * (3 + rank) % 7 - 3 + at) / 5.0
        model(x).pow(2).mean().backward()
        optimizer.step()
    return [[round(value, 3) for value in _numbers(each)] for each in model.parameters()]


def fully_sharded(torch: Any, dist: Any, rank: int) -> Any:
    fsdp = _module(torch, "distributed.fsdp")
    net = _net(torch)
    fsdp.fully_shard(net[0])
    fsdp.fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for at in range(3):
        optimizer.zero_grad()
        loss = net(_batch(torch, rank, at)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(round(float(loss), 5))
    parts = [list(each.to_local().shape) for each in net.parameters()]
    return [losses, parts, *[_numbers(each.full_tensor()) for each in net.parameters()], type(net).__name__]


def checkpoint(torch: Any, dist: Any, rank: int) -> Any:
    dcp, fsdp = _module(torch, "distributed.checkpoint"), _module(torch, "distributed.fsdp")
    helpers = _module(torch, "distributed.checkpoint.state_dict")
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    net = _net(torch)
    fsdp.fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    net(_batch(torch, rank)).pow(2).mean().backward()
    optimizer.step()
    model_state, optimizer_state = helpers.get_state_dict(net, optimizer)
    dcp.save({"model": model_state, "optim": optimizer_state, "epoch": 3}, checkpoint_id=folder[0])
    # Into a model that is not sharded.
    plain = _net(torch)
    state = {"model": {name: torch.zeros_like(each) for name, each in plain.state_dict().items()}, "epoch": 0}
    dcp.load(state, checkpoint_id=folder[0])
    plain.load_state_dict(state["model"])
    whole = helpers.get_model_state_dict(net, options=helpers.StateDictOptions(full_state_dict=True))
    same = all(torch.equal(whole[name], each) for name, each in plain.state_dict().items())
    return [state["epoch"], same, sorted(whole), [_numbers(each) for each in plain.parameters()]]


def functional_in_place(torch: Any, dist: Any, rank: int) -> Any:
    functional = _module(torch, "distributed._functional_collectives")
    x, group = torch.arange(4.0) + rank, dist.group.WORLD
    answers = [_numbers(functional.all_reduce_inplace(x.clone(), "sum", group))]
    answers.append(_numbers(functional.all_gather_tensor_inplace(torch.zeros(8), x, group)))
    answers.append(_numbers(functional.reduce_scatter_tensor_inplace(torch.zeros(2), x, "sum", group)))
    answers.append(_numbers(functional.all_to_all_inplace(torch.zeros(4), x, group=group)))
    answers += [_numbers(each) for each in functional.all_gather_inplace([torch.zeros(4), torch.zeros(4)], x, group)]
    answers.append(_numbers(functional.all_gather_single(x, 0, group)))
    answers.append(_numbers(functional.reduce_scatter_single(x, "sum", 0, group)))
    try:
        functional.all_reduce_inplace(x, "sum", group, async_op=True)
    except AssertionError as error:
        answers.append(str(error))
    return answers


def averaged(torch: Any, dist: Any, rank: int) -> Any:
    """Post-local SGD: gradients of all processes at first, then each its own, with means of parameters every second step."""
    hooks = _module(torch, "distributed.algorithms.ddp_comm_hooks")
    hook = _module(torch, "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook")
    averagers = _module(torch, "distributed.algorithms.model_averaging.averagers")
    optim = _module(torch, "distributed.optim")
    answers = []
    alone = [dist.new_group([0]), dist.new_group([1])][rank]
    for options in ((alone,), (dist.group.WORLD,), (alone, False)):
        net = torch.nn.parallel.DistributedDataParallel(_net(torch))
        subgroup, *more = options
        net.register_comm_hook(hook.PostLocalSGDState(None, subgroup, 2, *more), hook.post_localSGD_hook)
        averager = averagers.PeriodicModelAverager(period=2, warmup_steps=2)
        optimizer = optim.PostLocalSGDOptimizer(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), averager)
        for at in range(6):
            optimizer.zero_grad()
            net(_batch(torch, rank, at)).square().sum().backward()
            optimizer.step()
            answers.append(_numbers(next(net.parameters())))
        state = optimizer.state_dict()
        answers += [state["step"], sorted(state)]
        averager.step = 0
        optimizer.load_state_dict(state)
        answers.append(averager.step)
    net = torch.nn.parallel.DistributedDataParallel(_net(torch))
    net.register_comm_hook(None, _module(torch, "distributed.algorithms.ddp_comm_hooks.debugging_hooks").noop_hook)
    net(_batch(torch, rank)).sum().backward()
    assert hooks.DDPCommHookType
    answers.append(_numbers(next(net.parameters()).grad))
    for wrong in ((0,), (2, -1)):
        try:
            averagers.PeriodicModelAverager(*wrong)
        except ValueError as error:
            answers.append(str(error))
    return answers


def results_or_errors(torch: Any, dist: Any, rank: int) -> Any:
    """collective_utils: what a function gives or raises in one process, in both."""
    utils = _module(torch, "distributed.collective_utils")

    def fails_in_one() -> int:
        if rank:
            raise ValueError("no")
        return 4

    answers: list[Any] = []
    for call in (
        lambda: utils.broadcast(lambda: [rank, "told"], rank=1, pg=dist.group.WORLD),
        lambda: utils.broadcast(fails_in_one, rank=1, stage_name="reading", pg=dist.group.WORLD),
        lambda: utils.broadcast(3, success=False),
        lambda: utils.broadcast(fails_in_one),
        lambda: utils.all_gather(lambda: rank * 2, "a stage", pg=dist.group.WORLD),
        lambda: utils.all_gather(rank, pg=dist.group.WORLD),
        lambda: utils.all_gather_object_enforce_type(dist.group.WORLD, [None, None], 1 if rank else "one"),
    ):
        try:
            answers.append(call())
        except (AssertionError, RuntimeError, TypeError) as error:
            answers.append(f"{type(error).__name__}: {error}")
    return answers


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        mesh, functional, differentiable, sampler, join, sync_batch_norm, zero, power_sgd, fully_sharded, checkpoint,
        functional_in_place, averaged, results_or_errors,
    )
}  # fmt: skip


def run_rank(package: str, rank: int, port: int, out: Path) -> None:
    """Run every program as one of the two processes, and write down the answers."""
    warnings.simplefilter("ignore")
    torch, dist = importlib.import_module(package), importlib.import_module(f"{package}.distributed")
    limit = timedelta(seconds=300)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2, timeout=limit)
    answers = {}
    for name, program in PROGRAMS.items():
        if os.environ.get("RANK_PROGRAMS_VERBOSE"):
            print(rank, name, file=sys.stderr, flush=True)
        answers[name] = program(torch, dist, rank)
    dist.barrier()
    out.write_text(json.dumps(answers))
    dist.destroy_process_group()


def run(python: str, package: str) -> list[Any]:
    """What both ranks answered, from processes of their own."""
    return two_ranks.run(__file__, python, package)


if __name__ == "__main__":
    two_ranks.main(__doc__, __file__, run_rank)
