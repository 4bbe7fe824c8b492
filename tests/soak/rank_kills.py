"""Kills a rank of a training job at random moments: the others must say so in time, and nothing may be left behind.

    python tests/soak/rank_kills.py [--kills 50] [--seed 0] [--ranks 3] [--timeout 10]

Every rank trains by DistributedDataParallel under profile(stream_to=...). Jobs in turns are
- processes that nothing watches: each survivor must raise within the group's timeout an error that has its rank, group, op and
  sequence number;
- processes of mtrun: it must end, and name the rank that was killed as the root cause.
A fifth of the kills comes while processes still join the group. Afterwards no shared memory, no process is left, and each
rank's profile can be read as far as it was written.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Set
from pathlib import Path

SLACK_S = 20.0  # beyond the timeout, on a machine that is busy
MOST_PID = 1 << 22
PROGRAM = """
import os, sys, time
from datetime import timedelta
import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.profiler import profile

folder, rank = sys.argv[1], os.environ["RANK"]
open(f"{folder}/{rank}.pid", "w").write(str(os.getpid()))
dist.init_process_group("gloo", timeout=timedelta(seconds=float(sys.argv[2])))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 8)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
begin = time.monotonic()
with profile(stream_to=f"{folder}/{rank}.mtp", flush_interval_s=0.2) as prof:
    open(f"{folder}/{rank}.ready", "w").close()
    try:
        while True:
            begin = time.monotonic()
            optimizer.zero_grad()
            model(torch.randn(8, 64)).sum().backward()
            optimizer.step()
            prof.step()
    except dist.DistBackendError as error:
        print(f"{time.monotonic() - begin:.2f}|{error}", flush=True)
        raise
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for(paths: list[Path], limit_s: float = 120) -> bool:
    deadline = time.monotonic() + limit_s
    while not all(path.exists() and (path.suffix != ".pid" or path.read_text()) for path in paths):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def one_kill(folder: Path, number: int, chance: random.Random, args: argparse.Namespace, ours: set[int]) -> str | None:
    """Start, wait, kill, look. Returns what is wrong, None if nothing is; `ours` takes the numbers of the processes."""
    script = folder / "train.py"
    script.write_text(PROGRAM)
    program = [str(script), str(folder), str(args.timeout)]
    watched, early, culprit = number % 2 == 1, chance.random() < 0.2, chance.randrange(args.ranks)
    outs = [open(folder / f"{rank}.out", "w") for rank in range(args.ranks)]  # noqa: SIM115
    if watched:
        launch = ["-m", "mindtorch_v2.distributed.run", "--standalone", f"--nproc-per-node={args.ranks}"]
        processes = [subprocess.Popen([sys.executable, *launch, *program], stdout=outs[0], stderr=subprocess.STDOUT)]
    else:
        shared = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(args.ranks)}
        processes = [
            subprocess.Popen(
                [sys.executable, *program], env=shared | {"RANK": str(rank)}, stdout=outs[rank], stderr=subprocess.STDOUT
            )
            for rank in range(args.ranks)
        ]
    try:
        pids = [folder / f"{rank}.pid" for rank in range(args.ranks)]
        if not wait_for(pids if early else [folder / f"{rank}.ready" for rank in range(args.ranks)]):
            said = " | ".join((folder / f"{rank}.out").read_text()[-800:] for rank in range(args.ranks))
            return f"the job did not start: {said}"
        time.sleep(chance.uniform(0, 1.0 if early else 2.0))
        all_pids = [int(path.read_text()) for path in pids]
        ours.update(all_pids)
        os.kill(all_pids[culprit], signal.SIGKILL)
        killed = time.monotonic()
        deadline = killed + args.timeout + SLACK_S
        for rank, process in enumerate(processes):
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                return f"{'mtrun' if watched else f'rank {rank}'} still ran {time.monotonic() - killed:.0f} s after the kill"
        took = time.monotonic() - killed
        texts = [(folder / f"{rank}.out").read_text() for rank in range(args.ranks)]
        problem = after_mtrun(texts[0], culprit) if watched else after_kill(texts, culprit, early, args)
        if problem is None:
            alive = [pid for pid in all_pids if Path(f"/proc/{pid}").exists()]
            problem = f"processes {alive} are left" if alive else unreadable(folder, args.ranks)
        kind = f"{'mtrun' if watched else 'alone'}{', joining' if early else ''}"
        print(f"{number + 1}: {kind}, rank {culprit}: all had ended after {took:.1f} s", flush=True)
        return problem
    finally:
        for process in processes:
            process.kill()
        for path in folder.glob("*.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(path.read_text()), signal.SIGKILL)
        for out in outs:
            out.close()


def after_mtrun(said: str, culprit: int) -> str | None:
    told = said.partition("Root Cause (first observed failure):")[2]
    right = f"rank      : {culprit} (local_rank: {culprit})" in told and "(SIGKILL)" in told
    return None if right else f"mtrun did not name rank {culprit}: {said[-1500:]}"


def after_kill(said: list[str], culprit: int, early: bool, args: argparse.Namespace) -> str | None:
    for rank, text in enumerate(said):
        if rank == culprit:
            continue
        line = re.search(r"^([\d.]+)\|.*\(rank \d+ of group '0' with \d+ processes, sequence number \d+\)", text, re.M)
        if line is None and not (early and re.search(r"^\S*(Error|Exception)\b.*", text, re.M)):
            return f"rank {rank} did not say what it waited for: {text[-1500:]}"
        if line is not None and float(line[1]) > args.timeout + SLACK_S:
            return f"rank {rank} waited for {line[1]} s"
    return None


def unreadable(folder: Path, ranks: int) -> str | None:
    """Which rank's profile cannot be used."""
    from mindtorch_v2.profiler import TraceError, load, validate

    for path in (folder / f"{rank}.mtp" for rank in range(ranks)):
        if not path.exists():
            continue  # killed before it recorded
        try:
            store = load(str(path)).store
        except TraceError as error:
            if "no whole frame" in str(error) or path.stat().st_size < 4096:
                continue  # killed before the first flush
            return f"{path.name}: {error}"
        errors = [problem for problem in validate(store) if problem.severity == "error"]
        if errors:
            return f"{path.name}: {errors[0]}"
    return None


def left_behind(before: Set[str] = frozenset(), patience_s: float = 0, ours: Set[int] = frozenset()) -> set[str]:
    """Shared memory of MPI that was not there before, and stays: other jobs of the machine have theirs for a second.

    A process alone names it by its own number, a job by 32 bits of its name: the former counts if it is `ours`.
    """
    deadline = time.monotonic() + patience_s
    while left := {path.name for path in Path("/dev/shm").glob("mpich_*")} - before:
        left = {name for name in left if (number := int(name.split("_")[2], 16)) > MOST_PID or number in ours}
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=10, help="of the group, in seconds")
    args = parser.parse_args()
    chance, failures = random.Random(args.seed), []
    for number in range(args.kills):
        before, ours = left_behind(), set[int]()
        with tempfile.TemporaryDirectory() as folder:
            problem = one_kill(Path(folder), number, chance, args, ours)
        left = left_behind(before, patience_s=10, ours=ours)
        if problem is None and left:
            problem = f"shared memory is left: {sorted(left)}"
        if problem is not None:
            failures.append(problem)
            print(f"FAILED kill {number + 1}: {problem}", flush=True)
    print(f"{args.kills - len(failures)} of {args.kills} kills were told in time and left nothing behind")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
