"""Starts four ranks again and again, in every way there is, on a machine that is busy: each start must end in a right sum.

    python tests/soak/starts.py [--starts 100] [--load 10] [--ranks 4] [--ways mtrun,spawn,tcp,file,env,mpiexec]
                                [--mpiexec PATH] [--python PATH]

`--load` processes keep the processors busy meanwhile. `--mpiexec` and `--python` name another MPI and an interpreter whose
mpi4py was built for it, for `--ways mpiexec`.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PROGRAM = """
import sys
import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist

def train(rank, options):
    dist.init_process_group("gloo", **options, **({} if rank is None else {"rank": rank}))
    x = torch.ones(1000) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    dist.barrier()
    open(f"{sys.argv[1]}/{dist.get_rank()}", "w").write(f"{dist.get_world_size()} {x[0].item():g} {x[-1].item():g}")
    dist.destroy_process_group()

if __name__ == "__main__":
    way, size, meeting = sys.argv[2], int(sys.argv[3]), sys.argv[4]
    options = {} if way in ("mtrun", "env", "mpiexec") else {"init_method": meeting, "world_size": size}
    if way == "spawn":
        torch.multiprocessing.spawn(train, (options,), nprocs=size)
    else:
        train(int(sys.argv[5]) if options else None, options)
"""
WAYS = ("mtrun", "spawn", "tcp", "file", "env", "mpiexec")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def commands(way: str, args: argparse.Namespace, script: Path, folder: Path) -> list[tuple[list[str], dict[str, str]]]:
    """What is started, and with which more variables."""
    port = free_port()
    meeting = f"file://{folder}/meeting" if way == "file" else f"tcp://127.0.0.1:{port}"
    program = [str(script), str(folder), way, str(args.ranks), meeting]
    if way == "mtrun":
        launch = ["-m", "mindtorch_v2.distributed.run", "--standalone", f"--nproc-per-node={args.ranks}"]
        return [([args.python, *launch, *program], {})]
    if way == "spawn":
        return [([args.python, *program], {})]
    if way == "mpiexec":
        return [([*args.mpiexec.split(), "-n", str(args.ranks), args.python, *program], {})]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(args.ranks)} if way == "env" else {}
    return [
        ([args.python, *program, str(rank)], shared | ({"RANK": str(rank)} if shared else {})) for rank in range(args.ranks)
    ]


def one_start(way: str, args: argparse.Namespace, script: Path, folder: Path) -> str | None:
    """What went wrong, None if nothing did."""
    started = [
        subprocess.Popen(command, env=os.environ | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command, more in commands(way, args, script, folder)
    ]
    deadline = time.monotonic() + args.limit
    try:
        said = [process.communicate(timeout=max(deadline - time.monotonic(), 1))[0] for process in started]
    except subprocess.TimeoutExpired:
        return f"not done after {args.limit} s"
    finally:
        for process in started:
            process.kill()
    if any(process.returncode for process in started):
        return f"ended with {[process.returncode for process in started]}: {' | '.join(said)[-2000:]}"
    total = args.ranks * (args.ranks + 1) // 2
    answers = [(folder / str(rank)).read_text() if (folder / str(rank)).exists() else "none" for rank in range(args.ranks)]
    return None if set(answers) == {f"{args.ranks} {total} {total}"} else f"answered {answers}"


def left_behind() -> set[str]:
    """Shared memory of MPI that is still there."""
    return {path.name for path in Path("/dev/shm").glob("*") if path.name.startswith(("mpich_", "vader", "osc"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=100, help="in all, the ways in turns")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--load", type=int, default=10, help="processes that compute meanwhile")
    parser.add_argument("--limit", type=float, default=180, help="seconds that a start may take")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mpiexec", default=str(Path(sys.executable).with_name("mpiexec")))
    args = parser.parse_args()
    ways = args.ways.split(",")
    before, right, seconds, failures = left_behind(), Counter[str](), dict.fromkeys(ways, 0.0), 0
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.load)]
    try:
        with tempfile.TemporaryDirectory() as top:
            script = Path(top, "starts.py")
            script.write_text(PROGRAM)
            for number in range(args.starts):
                way, folder = ways[number % len(ways)], Path(top, str(number))
                folder.mkdir()
                begin = time.monotonic()
                problem = one_start(way, args, script, folder)
                seconds[way] = max(seconds[way], time.monotonic() - begin)
                right[way] += problem is None
                if problem is not None:
                    failures += 1
                    print(f"FAILED start {number + 1} ({way}): {problem}", flush=True)
    finally:
        for process in busy:
            process.kill()
    for way in ways:
        print(f"{way}: {right[way]} right, the longest took {seconds[way]:.1f} s")
    left = left_behind() - before
    print(f"{right.total()} of {args.starts} starts of {args.ranks} ranks; {len(left)} pieces of shared memory left behind")
    return int(bool(failures or left))


if __name__ == "__main__":
    sys.exit(main())
