"""Small programs that several processes run together, for torch and for this package alike.

    python tests/helpers/rank_programs.py --package torch --size 2 --out FILE      what each rank answers, as JSON

A program is a function of (torch, dist, rank, size) and returns what can be written down. A program that raises answers with
the class of the exception. Run with another package, the answers must be the same.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import ddp_programs

Program = Callable[[Any, Any, int, int], Any]

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int8",
    "uint8",
    "int32",
    "int64",
    "bool",
    "complex64",
    "int16",
    "uint16",
)
REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def values(torch: Any, dtype: str, rank: int, count: int = 6) -> Any:
    """Small numbers that differ by rank, and whose sums and products every dtype holds."""
    numbers = [(3 * at + 2 * rank) % 5 for at in range(count)]
    return torch.tensor(numbers).to(getattr(torch, dtype))


def shown(tensor: Any) -> Any:
    """A tensor as JSON."""
    kind = str(tensor.dtype).rpartition(".")[2]
    if kind.startswith("complex"):
        return [kind, list(tensor.shape), [[value.real, value.imag] for value in tensor.flatten().tolist()]]
    return [kind, list(tensor.shape), tensor.flatten().tolist()]


def programs() -> Iterator[tuple[str, Program]]:
    """All programs by name."""
    for dtype in DTYPES:
        for op in REDUCTIONS:
            yield f"all_reduce/{op}/{dtype}", reduction("all_reduce", op, dtype)
        yield f"reduce/SUM/{dtype}", reduction("reduce", "SUM", dtype)
        yield f"reduce/MAX/{dtype}", reduction("reduce", "MAX", dtype)
        for name, moving in MOVING.items():
            yield f"{name}/{dtype}", with_dtype(moving, dtype)
    for name, program in PROGRAMS.items():
        yield name, program
    for name, program in ddp_programs.PROGRAMS.items():
        yield f"ddp/{name}", ddp_programs.as_rank_program(program)


def reduction(name: str, op: str, dtype: str) -> Program:
    def program(torch: Any, dist: Any, rank: int, size: int) -> Any:
        tensor = values(torch, dtype, rank)
        more = {"dst": size - 1} if name == "reduce" else {}
        getattr(dist, name)(tensor, op=getattr(dist.ReduceOp, op), **more)
        return shown(tensor) if name != "reduce" or rank == size - 1 else None

    return program


def with_dtype(moving: Callable[..., Any], dtype: str) -> Program:
    return lambda torch, dist, rank, size: moving(torch, dist, rank, size, dtype)


def broadcast(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    tensor = values(torch, dtype, rank)
    dist.broadcast(tensor, src=1)
    return shown(tensor)


def all_gather(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    parts = [torch.zeros(2, 3).to(getattr(torch, dtype)) for _ in range(size)]
    dist.all_gather(parts, values(torch, dtype, rank).reshape(2, 3))
    return [shown(part) for part in parts]


def all_gather_single(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    whole = torch.zeros(6 * size).to(getattr(torch, dtype))
    dist.all_gather_single(whole, values(torch, dtype, rank))
    return shown(whole)


def gather(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    parts = [torch.zeros(6).to(getattr(torch, dtype)) for _ in range(size)] if rank == 1 else None
    dist.gather(values(torch, dtype, rank), parts, dst=1)
    return [shown(part) for part in parts or ()]


def scatter(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    mine = torch.zeros(6).to(getattr(torch, dtype))
    dist.scatter(mine, [values(torch, dtype, each + 7) for each in range(size)] if rank == 0 else None, src=0)
    return shown(mine)


def all_to_all(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    received = [torch.zeros(6).to(getattr(torch, dtype)) for _ in range(size)]
    dist.all_to_all(received, [values(torch, dtype, rank + each) for each in range(size)])
    return [shown(each) for each in received]


def reduce_scatter(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    mine = torch.zeros(6).to(getattr(torch, dtype))
    dist.reduce_scatter(mine, [values(torch, dtype, rank + each) for each in range(size)])
    return shown(mine)


def message(torch: Any, dist: Any, rank: int, size: int, dtype: str) -> Any:
    tensor = values(torch, dtype, rank)
    if rank == 0:
        dist.send(tensor, 1)
    elif rank == 1:
        dist.recv(tensor, 0)
    return shown(tensor)


MOVING = {
    "broadcast": broadcast,
    "all_gather": all_gather,
    "all_gather_single": all_gather_single,
    "gather": gather,
    "scatter": scatter,
    "all_to_all": all_to_all,
    "reduce_scatter": reduce_scatter,
    "send_recv": message,
}


def transposed(torch: Any, dist: Any, rank: int, size: int) -> Any:
    tensor = (torch.arange(6.0) + rank).reshape(2, 3).t()
    dist.all_reduce(tensor)
    return shown(tensor)


def one_row(torch: Any, dist: Any, rank: int, size: int) -> Any:
    whole = torch.zeros(3, 4) + rank
    dist.broadcast(whole[1], src=1)
    return shown(whole)


def empty(torch: Any, dist: Any, rank: int, size: int) -> Any:
    tensor = torch.ones(0)
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0)
    return shown(tensor)


def scalar(torch: Any, dist: Any, rank: int, size: int) -> Any:
    tensor = torch.tensor(rank + 1.0)
    dist.all_reduce(tensor)
    return shown(tensor)


def large(torch: Any, dist: Any, rank: int, size: int) -> Any:
    tensor = torch.ones(5_000_000) * (rank + 1)  # 20 MB: more than one piece
    dist.all_reduce(tensor)
    return [tensor.min().item(), tensor.max().item()]


def asynchronous(torch: Any, dist: Any, rank: int, size: int) -> Any:
    tensors = [torch.ones(4) * (rank + at) for at in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    answers = [work.wait() for work in works]
    return [answers, [shown(tensor) for tensor in tensors], all(work.is_completed() for work in works)]


def future(torch: Any, dist: Any, rank: int, size: int) -> Any:
    work = dist.all_reduce(torch.ones(2) + rank, async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0] * 2)
    return shown(doubled.wait())


def version(torch: Any, dist: Any, rank: int, size: int) -> Any:
    tensor = torch.ones(2)
    before = tensor._version
    dist.all_reduce(tensor)
    return tensor._version > before or "unchanged"


def uneven(torch: Any, dist: Any, rank: int, size: int) -> Any:
    sent = [each + 1 for each in range(size)]
    output = torch.zeros(size * (rank + 1), 2)
    dist.all_to_all_single(output, torch.ones(sum(sent), 2) * rank, [rank + 1] * size, sent)
    return shown(output)


def even(torch: Any, dist: Any, rank: int, size: int) -> Any:
    output = torch.zeros(2 * size)
    dist.all_to_all_single(output, torch.arange(2.0 * size) + 10 * rank)
    return shown(output)


def reduce_scatter_single(torch: Any, dist: Any, rank: int, size: int) -> Any:
    output = torch.zeros(2, 2)
    dist.reduce_scatter_single(output, torch.arange(4.0 * size).reshape(2 * size, 2) + rank)
    return shown(output)


def objects(torch: Any, dist: Any, rank: int, size: int) -> Any:
    everything = [None] * size
    dist.all_gather_object(everything, {"rank": rank, "text": "é" * rank})
    gathered = [None] * size if rank == 0 else None
    dist.gather_object((rank, None), gathered)
    listed = [rank, [rank] * rank, "x"]
    dist.broadcast_object_list(listed, src=1)
    mine = [None]
    dist.scatter_object_list(mine, [each * "ab" for each in range(size)] if rank == 0 else None)
    return [everything, gathered, listed, mine]


def object_messages(torch: Any, dist: Any, rank: int, size: int) -> Any:
    if rank == 0:
        dist.send_object_list([1, "two", None], dst=1)
    if rank == 1:
        received = [None, None, None]
        return [dist.recv_object_list(received, src=0), received]
    return None


def any_source(torch: Any, dist: Any, rank: int, size: int) -> Any:
    sources = []
    if rank:
        dist.send(torch.tensor([float(rank)]), 0)
    else:
        tensor = torch.zeros(1)
        for _ in range(size - 1):
            source = dist.recv(tensor)
            sources.append([source, tensor.item()])
    dist.barrier()  # before another program sends
    return sorted(sources)


def tags(torch: Any, dist: Any, rank: int, size: int) -> Any:
    if rank == 0:
        works = [dist.isend(torch.tensor([float(tag)]), 1, tag=tag) for tag in (5, 6)]
    elif rank == 1:
        tensors = {tag: torch.zeros(1) for tag in (6, 5)}
        works = [dist.irecv(tensor, 0, tag=tag) for tag, tensor in tensors.items()]
    else:
        return None
    for work in works:
        work.wait()
    return [tensor.item() for tensor in tensors.values()] if rank else None


def ring(torch: Any, dist: Any, rank: int, size: int) -> Any:
    received = torch.zeros(3)
    batch = [
        dist.P2POp(dist.isend, torch.ones(3) * rank, (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    return shown(received)


def subgroup(torch: Any, dist: Any, rank: int, size: int) -> Any:
    group = dist.new_group([1, 0], group_desc="two")
    tensor = torch.ones(2) * (rank + 1)
    answers: list[Any] = [dist.get_rank(group), dist.get_world_size(group)]
    if rank < 2:
        dist.all_reduce(tensor, group=group)
        answers += [dist.get_process_group_ranks(group), dist.get_global_rank(group, 1), dist.get_group_rank(group, 1)]
        answers += [group.group_desc]
        dist.broadcast(tensor, src=1, group=group)
        dist.broadcast(tensor, group_src=0, group=group)
        dist.barrier(group)
    else:
        answers.append(repr(group))
    return [answers, shown(tensor)]


def unsorted_subgroup(torch: Any, dist: Any, rank: int, size: int) -> Any:
    group = dist.new_group([1, 0], sort_ranks=False)
    return dist.get_rank(group)


def subgroups(torch: Any, dist: Any, rank: int, size: int) -> Any:
    mine, listed = dist.new_subgroups_by_enumeration([[each] for each in range(size)])
    tensor = torch.ones(1) * rank
    dist.all_reduce(tensor, group=mine)
    return [len(listed), dist.get_world_size(mine), shown(tensor)]


def not_a_member(torch: Any, dist: Any, rank: int, size: int) -> Any:
    group = dist.new_group([0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dist.all_reduce(torch.ones(1), group=group)
    return [str(each.message) for each in caught]


def split(torch: Any, dist: Any, rank: int, size: int) -> Any:
    return [dist.get_backend(), dist.get_backend_config(), dist.is_initialized(), dist.get_rank(), dist.get_world_size()]


def barriers(torch: Any, dist: Any, rank: int, size: int) -> Any:
    dist.barrier()
    work = dist.barrier(async_op=True)
    work.wait()
    dist.monitored_barrier(timeout=timedelta(seconds=30))
    return True


def coalesced(torch: Any, dist: Any, rank: int, size: int) -> Any:
    tensors = [torch.ones(2) * rank, torch.ones(3, 1) + rank]
    dist.all_reduce_coalesced(tensors)
    return [shown(tensor) for tensor in tensors]


def store(torch: Any, dist: Any, rank: int, size: int) -> Any:
    shared = dist.distributed_c10d._get_default_store()
    shared.set(f"mine/{rank}", str(rank * 3))
    shared.add("counted", rank + 1)
    dist.barrier()
    return [[shared.get(f"mine/{each}").decode() for each in range(size)], shared.add("counted", 0)]


def raising(call: Callable[[Any, Any, int, int], Any]) -> Program:
    """The class and the text of what a call raises, on every rank."""

    def program(torch: Any, dist: Any, rank: int, size: int) -> Any:
        try:
            call(torch, dist, rank, size)
        except Exception as error:
            return [type(error).__name__, str(error)]
        return "no error"

    return program


PROGRAMS: dict[str, Program] = {
    function.__name__: function
    for function in (
        *(
            transposed,
            one_row,
            empty,
            scalar,
            large,
            asynchronous,
            future,
            version,
            uneven,
            even,
            reduce_scatter_single,
            objects,
        ),
        *(object_messages, any_source, tags, ring, subgroup, unsorted_subgroup, subgroups, not_a_member, split),
        *(barriers, coalesced, store),
    )
} | {
    f"refused/{name}": raising(call)
    for name, call in {
        "no tensor": lambda torch, dist, rank, size: dist.all_reduce([torch.ones(1)]),
        "complex maximum": lambda torch, dist, rank, size: dist.all_reduce(torch.ones(1) * 1j, op=dist.ReduceOp.MAX),
        "bits of floats": lambda torch, dist, rank, size: dist.all_reduce(torch.ones(1), op=dist.ReduceOp.BAND),
        "no source": lambda torch, dist, rank, size: dist.broadcast(torch.ones(1)),
        "two sources": lambda torch, dist, rank, size: dist.broadcast(torch.ones(1), 0, group_src=0),
        "source out of range": lambda torch, dist, rank, size: dist.broadcast(torch.ones(1), 9),
        "number of outputs": lambda torch, dist, rank, size: dist.all_gather([torch.ones(1)], torch.ones(1)),
        "size of outputs": lambda torch, dist, rank, size: dist.all_gather([torch.ones(3)] * size, torch.ones(4)),
        "dtype of outputs": lambda torch, dist, rank, size: dist.all_gather([torch.ones(1).long()] * size, torch.ones(1)),
        "list of outputs": lambda torch, dist, rank, size: dist.all_gather(torch.ones(1), torch.ones(1)),
        "elements of outputs": lambda torch, dist, rank, size: dist.all_gather([1] * size, torch.ones(1)),
        "size of the whole": lambda torch, dist, rank, size: dist.all_gather_single(torch.ones(1), torch.ones(4)),
        "number of inputs": lambda torch, dist, rank, size: dist.reduce_scatter(torch.ones(1), [torch.ones(1)] * 9),
        "gathered where not": lambda torch, dist, rank, size: dist.gather(torch.ones(1), [torch.ones(1)] * size, dst=size),
        "nothing to scatter": lambda torch, dist, rank, size: dist.scatter(torch.ones(1), None, src=rank),
        "scattered sizes": lambda torch, dist, rank, size: dist.scatter(torch.ones(1), [torch.ones(2)] * size, src=rank),
        "number of splits": lambda torch, dist, rank, size: dist.all_to_all_single(torch.ones(4), torch.ones(4), [4], [4]),
        "sum of splits": lambda torch, dist, rank, size: dist.all_to_all_single(
            torch.ones(4), torch.ones(4), [1] * size, [9] * size
        ),
        "number of all to all": lambda torch, dist, rank, size: dist.all_to_all([torch.ones(1)], [torch.ones(1)]),
        "sent to itself": lambda torch, dist, rank, size: dist.send(torch.ones(1), rank),
        "rank twice": lambda torch, dist, rank, size: dist.new_group([0, 0]),
        "rank out of range": lambda torch, dist, rank, size: dist.new_group([7]),
        "too many ranks": lambda torch, dist, rank, size: dist.new_group(list(range(9))),
        "size of subgroups": lambda torch, dist, rank, size: dist.new_subgroups(9),
        "no split": lambda torch, dist, rank, size: dist.split_group(),
        "initialized twice": lambda torch, dist, rank, size: dist.init_process_group("gloo"),
        "no message": lambda torch, dist, rank, size: dist.batch_isend_irecv([1]),
        "no messenger": lambda torch, dist, rank, size: dist.P2POp(dist.all_reduce, torch.ones(1), 0),
        "no output of objects": lambda torch, dist, rank, size: dist.scatter_object_list([], [1]),
    }.items()
}


# ------------------------------------------------------------------------------------------------ running


def run_rank(package: str, rank: int, size: int, port: int, out: Path, names: list[str], backend: str) -> None:
    """Run programs as one of the processes, and write down the answers."""
    warnings.simplefilter("ignore")
    torch = importlib.import_module(package)
    dist = importlib.import_module(f"{package}.distributed")
    importlib.import_module(f"{package}.distributed.distributed_c10d")
    if backend == "hccl":
        torch.set_default_device("npu")
    dist.init_process_group(
        backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size, timeout=timedelta(seconds=300)
    )
    answers = {}
    for name, program in programs():
        if not names or name in names:
            if os.environ.get("RANK_PROGRAMS_VERBOSE"):
                print(rank, name, file=sys.stderr, flush=True)
            try:
                answers[name] = program(torch, dist, rank, size)
            except Exception as error:
                answers[name] = f"raises {type(error).__name__}"
    dist.barrier()
    out.write_text(json.dumps(answers))
    dist.destroy_process_group()


def free_port() -> int:
    """A port to listen on, which the system gives to nothing else while this process runs."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # it is bound, and does not listen: another one can
    held.bind(("127.0.0.1", 0))
    port = int(held.getsockname()[1])
    held.detach()
    return port


def run_ranks(
    python: str, package: str, size: int, names: list[str] | None = None, timeout_s: float = 300, backend: str = "gloo"
) -> list[Any]:
    """The answers of every rank, from processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder, f"{rank}.json") for rank in range(size)]
        port = free_port()
        common = ["--package", package, "--size", str(size), "--port", str(port), "--names", json.dumps(names or [])]
        common += ["--backend", backend]
        commands = [[python, __file__, *common, "--rank", str(rank), "--out", str(out)] for rank, out in enumerate(outs)]
        processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
        deadline, errors = time.monotonic() + timeout_s, []
        for rank, process in enumerate(processes):
            try:
                _, said = process.communicate(timeout=max(deadline - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                for each in processes:
                    each.kill()
                said = "did not end"
            if process.returncode:
                errors.append(f"rank {rank} ended with {process.returncode}: {said[-2000:]}")
        if errors:
            raise RuntimeError("\n".join(errors))
        return [json.loads(out.read_text()) for out in outs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", default="torch")
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--port", type=int)
    parser.add_argument("--names", type=json.loads, default=[])
    parser.add_argument("--backend", default="gloo")
    arguments = parser.parse_args()
    if arguments.rank is None:
        answers = run_ranks(sys.executable, arguments.package, arguments.size, arguments.names)
        arguments.out.write_text(json.dumps(answers, separators=(",", ":")) + "\n")
    else:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        run_rank(
            arguments.package,
            arguments.rank,
            arguments.size,
            arguments.port,
            arguments.out,
            arguments.names,
            arguments.backend,
        )


if __name__ == "__main__":
    main()
