"""Process groups of one process, fake ones of any size, ways to meet, and what happens when a process is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rank_programs import free_port

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.distributed import _backends
from mindtorch_v2.distributed._traffic import CheckedRequest, Traffic
from mindtorch_v2.distributed.rendezvous import register_rendezvous_handler, rendezvous


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.fixture
def fake():
    dist.init_process_group("fake", store=dist.HashStore(), rank=2, world_size=1000)
    yield dist.group.WORLD
    dist.destroy_process_group()


NOT_YET = "Default process group has not been initialized, please make sure to call init_process_group."


@pytest.mark.parametrize(
    "call",
    [
        lambda: dist.all_reduce(torch.ones(1)),
        dist.get_rank,
        dist.get_world_size,
        dist.get_backend,
        dist.barrier,
        dist.new_group,
    ],
)
def test_before_a_group_is_joined(call):
    with pytest.raises(ValueError, match=NOT_YET):
        call()
    assert not dist.is_initialized() and dist.group.WORLD is None
    with pytest.raises(AssertionError, match="cannot be None"):
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"backend": "gloo"}, ValueError, "environment variable RANK expected, but not set"),
        ({"backend": "gloo", "init_method": "tcp://127.0.0.1:1"}, ValueError, "tcp:// rendezvous: rank parameter missing"),
        ({"backend": "gloo", "init_method": "tcp://127.0.0.1:1", "rank": 0}, ValueError, "world size parameter missing"),
        ({"backend": "gloo", "init_method": "file:///tmp/x"}, ValueError, "file:// rendezvous: rank parameter missing"),
        ({"backend": "gloo", "init_method": "nope://x", "rank": 0, "world_size": 1}, RuntimeError, "No rendezvous handler"),
        ({"store": dist.HashStore()}, AssertionError, "world_size must be positive if using store"),
        ({"store": dist.HashStore(), "world_size": 1}, AssertionError, "rank must be non-negative"),
        ({"store": dist.HashStore(), "init_method": "env://"}, AssertionError, "Cannot specify both"),
        ({"backend": "nccl", "store": dist.HashStore(), "rank": 0, "world_size": 1}, RuntimeError, "have NCCL built in"),
        ({"backend": "gloo", "timeout": 5}, TypeError, "datetime.timedelta, got 5"),
        ({"backend": 5}, ValueError, "must be string-ish"),
        ({"backend": "cpu:gloo,cpu:mpi"}, ValueError, "custom backend string argument is invalid"),
    ],
)
def test_what_cannot_be_joined(arguments, error, words, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(error, match=words):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


def test_an_unknown_backend_is_named():
    with (
        pytest.warns(UserWarning, match="Device capability of nope unknown"),
        pytest.raises(AssertionError, match="Unknown backend type nope"),
    ):
        dist.init_process_group("nope", store=dist.HashStore(), rank=0, world_size=1)


def test_several_processes_need_the_extra(monkeypatch):
    monkeypatch.setattr(_backends.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"mindtorch_v2\[distributed\]"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=2)
    assert not dist.is_initialized() and not dist.is_mpi_available()


def test_a_process_that_is_alone_has_what_it_sends(alone):
    x = torch.arange(4.0)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    whole, mine = torch.zeros(4), torch.zeros(4)
    dist.all_gather_single(whole, x)
    dist.scatter(mine, [x + 1])
    parts = [torch.zeros(4)]
    dist.all_to_all(parts, [x])
    assert [x.tolist(), whole.tolist(), mine.tolist(), parts[0].tolist()] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [1, 2, 3, 4],
        [0, 1, 2, 3],
    ]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}]
    dist.barrier()
    dist.monitored_barrier()
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_success() and work.result()[0] is x and work.exception() is None
    assert work.get_future() is work.get_future() and work.get_future().wait()[0] is x
    with pytest.raises(RuntimeError, match="sourceRank"):
        work.source_rank()


def test_groups_are_named_in_order_and_described(alone):
    before = dist.get_pg_count()
    group = dist.new_group([0], group_desc="mine")
    assert (group.group_name, group.group_desc, group.size(), dist.get_pg_count()) == (str(before), "mine", 1, before + 1)
    configs = dist.distributed_c10d._get_all_pg_configs()
    assert [config["pg_desc"] for config in configs] == ["default_pg", "mine"]
    assert configs[0] | {"pg_name": "0"} == {
        "pg_name": "0",
        "pg_desc": "default_pg",
        "backend_config": "cpu:gloo,cuda:gloo",
        "pg_size": 1,
        "ranks": [0],
    }
    dist.destroy_process_group(group)
    with pytest.raises(RuntimeError, match=f"rank 0 of group '{before}'.* destroyed"):
        dist.all_reduce(torch.ones(1), group=group)
    dist.all_reduce(torch.ones(1))


def test_a_fake_group_is_as_large_as_it_says(fake):
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (2, 1000, "fake")
    whole = torch.zeros(2000)
    dist.all_gather_single(whole, torch.tensor([1.0, 2.0]))
    assert whole.reshape(1000, 2).unique(dim=0).tolist() == [[1.0, 2.0]]
    group = dist.new_group([1, 2, 3])
    assert (dist.get_rank(group), dist.get_world_size(group)) == (1, 3)
    assert dist.new_group([5]) == dist.GroupMember.NON_GROUP_MEMBER


def test_a_handler_of_ones_own():
    def handler(url, **options):
        yield dist.HashStore(), 0, 1

    register_rendezvous_handler("own", handler)
    assert next(rendezvous("own://anything"))[1:] == (0, 1)
    with pytest.raises(RuntimeError, match="already registered"):
        register_rendezvous_handler("own", handler)


# ---------------------------------------------------------------------- several processes


PROGRAM = """
import sys, time
from datetime import timedelta
import mindtorch_v2 as torch, mindtorch_v2.distributed as dist
{join}
x = torch.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(x)
print(dist.get_rank(), dist.get_world_size(), x.tolist(), flush=True)
{then}
"""


def started(join, size, then="", **environment):
    """Processes that join a group as ranks 0, 1, ..., and their outputs."""
    import os

    code = PROGRAM.format(join=join, then=then)
    return [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), str(size)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"RANK": str(rank), "WORLD_SIZE": str(size)} | environment,
        )
        for rank in range(size)
    ]


def outputs(processes, timeout_s=300):
    deadline = time.monotonic() + timeout_s
    try:
        return [process.communicate(timeout=max(deadline - time.monotonic(), 1)) for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.parametrize("way", ["env", "file", "mpiexec"])
def test_ways_to_meet(way, tmp_path):
    join = {
        "env": "dist.init_process_group('gloo')",
        "file": f"dist.init_process_group('gloo', init_method='file://{tmp_path}/meeting', "
        "rank=int(sys.argv[1]), world_size=int(sys.argv[2]))",
        "mpiexec": "dist.init_process_group('mpi')",
    }[way]
    if way == "mpiexec":
        launcher = [sys.executable.replace("python", "mpiexec"), "-n", "2"]
        code = PROGRAM.format(join=join, then="")
        said = subprocess.run([*launcher, sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
        # mpiexec may put one process's output into the middle of another's line.
        assert sorted(said.stdout) == sorted("0 2 [3.0, 3.0, 3.0]\n1 2 [3.0, 3.0, 3.0]\n"), said.stderr
        return
    answers = outputs(started(join, 2, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port())))
    lines, errors = [answer[0].strip() for answer in answers], [answer[1] for answer in answers]
    assert sorted(lines) == ["0 2 [3.0, 3.0, 3.0]", "1 2 [3.0, 3.0, 3.0]"], errors


def shared_memory(process):
    """The files in memory that MPICH shares between this process and others."""
    words = Path(f"/proc/{process.pid}/maps").read_text().split()
    return {Path(word) for word in words if word.startswith("/dev/shm/mpich_shm_")}


def test_a_process_that_is_killed_is_missed_in_time():
    then = """
if dist.get_rank() == 1:
    time.sleep(600)
dist.group.WORLD.set_timeout(timedelta(seconds=2))  # the processes may take longer to meet
begin = time.monotonic()
try:
    dist.all_reduce(x)
except dist.DistBackendError as error:
    print(f"{time.monotonic() - begin:.1f}|{error}")
try:
    dist.barrier()
except dist.DistBackendError as error:
    print(error)
"""
    processes = started("dist.init_process_group('gloo')", 2, then, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    first = processes[1].stdout.readline()
    assert first.startswith("1 2")
    shared = shared_memory(processes[1])
    assert shared
    processes[1].send_signal(signal.SIGKILL)
    processes[1].wait()
    said, errors = outputs(processes)[0]
    _, failed, after = said.strip().splitlines()
    waited, text = failed.split("|")
    assert 1.9 < float(waited) < 30, errors  # two seconds, on a machine that may be busy
    assert "all_reduce (rank 0 of group '0' with 2 processes, sequence number 2): not done after 2 s" in text
    assert "barrier" in after and "cannot be used any more" in after
    assert not any(path.exists() for path in shared)


def test_mpi_is_started_once_and_says_so():
    join = "dist.init_process_group('gloo')"
    then = """
dist.destroy_process_group()
dist.init_process_group('gloo')
dist.barrier()
dist.destroy_process_group()
try:
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=3)
except dist.DistBackendError as error:
    print(error)
"""
    processes = started(join, 2, then, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    for said, errors in outputs(processes):
        assert "cannot be as rank 0 of 3: MPI starts once in a process" in said, errors


def test_default_timeouts():
    from mindtorch_v2.distributed.constants import default_pg_timeout

    assert default_pg_timeout == timedelta(minutes=30)


X = torch.ones(10)
MISMATCHES = [
    (Traffic("allreduce", [X], 10, 10, "SUM"), Traffic("allreduce", [X], 20, 20, "SUM"), "of 10 .*; rank 1: allreduce .*of 20"),
    (Traffic("allreduce", [X], 10, 10, "SUM"), Traffic("allreduce", [X], 10, 10, "MAX"), "SUM .*; rank 1: allreduce MAX"),
    (Traffic("allreduce", [X], 10, 10, "SUM"), Traffic("broadcast", [X], 10, 10, root=0), "rank 1: broadcast .*with root 0"),
    (Traffic("broadcast", [X], 10, 10, root=0), Traffic("broadcast", [X], 10, 10, root=1), "root 0; .*with root 1"),
    (Traffic("allreduce", [X], 10, 10, "SUM"), Traffic("allreduce", [X.double()], 10, 10, "SUM"), "float32.*float64"),
]


@pytest.mark.parametrize("here, there, told", MISMATCHES)
def test_processes_that_call_something_else_are_told(here, there, told):
    done = SimpleNamespace(test=lambda: True)
    rows = np.array([here.signature(), there.signature()], np.int64)
    with pytest.raises(dist.DistBackendError, match=f"the processes do not call the same: rank 0: .*{told}"):
        CheckedRequest(done, rows, done).test()
    assert CheckedRequest(done, np.array([here.signature()] * 2, np.int64), done).test()


def test_every_process_of_a_mismatch_is_told(tmp_path):
    join = "rank, size = map(int, sys.argv[1:])\n"
    join += f"dist.init_process_group('gloo', init_method='file://{tmp_path}/meet', rank=rank, world_size=size)"
    then = "try: dist.all_reduce(torch.ones(10 + 10 * dist.get_rank()))\n"
    then += "except RuntimeError as error: print(error, flush=True)\nimport os; os._exit(0)"
    said = outputs(started(join, 2, then))
    assert all("rank 0: allreduce" in out and "of 10" in out and "of 20" in out for out, _ in said), said
