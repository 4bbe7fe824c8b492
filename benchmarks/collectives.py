"""all_reduce here beside torch's gloo, two ranks of each in turns: wall and CPU time of a call, and what a late peer costs.

    python benchmarks/collectives.py --torch /path/to/python [--rounds 5] [--ranks 2]

Limits, as ratios to torch: 1 KB 0.5 wall; 4 MB 1.0 wall and 0.6 CPU; 32 MB 1.1 wall. A peer that is 100 ms late costs at
most 0.1 of a core. Times are the best of all rounds; CPU time is that of all threads of a rank.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time

SIZES = {"1 KB": (256, 2000), "64 KB": (1 << 14, 500), "4 MB": (1 << 20, 60), "32 MB": (8 << 20, 8)}  # elements, calls
LIMITS = {("1 KB", "wall"): 0.5, ("4 MB", "wall"): 1.0, ("4 MB", "CPU"): 0.6, ("32 MB", "wall"): 1.1}
LATE_S, LATE_CALLS, LATE_CORE = 0.1, 20, 0.1


def rank_program(package: str, rank: int, size: int, port: int, calls: float) -> None:
    """One rank: prints its times as JSON."""
    import importlib

    torch = importlib.import_module(package)
    dist = importlib.import_module(f"{package}.distributed")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    answers = {}
    for name, (elements, most) in SIZES.items():
        tensor, count = torch.zeros(elements), max(3, int(most * calls))
        for _ in range(3):
            dist.all_reduce(tensor)
        dist.barrier()
        walls, begin_cpu = [], time.process_time()
        for _ in range(count):
            begin = time.perf_counter()
            dist.all_reduce(tensor)
            walls.append(time.perf_counter() - begin)
        answers[name] = {"wall": min(walls), "CPU": (time.process_time() - begin_cpu) / count}
    tensor, late_cpu, late_wall = torch.zeros(256), 0.0, 0.0
    for _ in range(LATE_CALLS):
        dist.barrier()
        if rank:
            time.sleep(LATE_S)
        begin, begin_cpu = time.perf_counter(), time.process_time()
        dist.all_reduce(tensor)
        late_cpu, late_wall = late_cpu + time.process_time() - begin_cpu, late_wall + time.perf_counter() - begin
    answers["late"] = late_cpu / late_wall if rank == 0 else 0.0
    dist.destroy_process_group()
    print(json.dumps(answers), flush=True)


def run(python: str, package: str, args: argparse.Namespace) -> dict:
    """The worst of the ranks, each time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [python, __file__, "--package", package, "--ranks", str(args.ranks), "--port", str(port)]
    command += ["--calls", str(args.calls)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen([*command, "--rank", str(rank)], stdout=subprocess.PIPE, text=True, env=environment)
        for rank in range(args.ranks)
    ]
    answers = [json.loads(process.communicate(timeout=600)[0].splitlines()[-1]) for process in ranks]
    worst = {name: {clock: max(each[name][clock] for each in answers) for clock in ("wall", "CPU")} for name in SIZES}
    return worst | {"late": answers[0]["late"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="an interpreter that has torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=float, default=1.0, help="times the usual number of calls")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--package", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank is not None:
        rank_program(args.package, args.rank, args.ranks, args.port, args.calls)
        return 0
    sides = {"ours": (sys.executable, "mindtorch_v2")} | ({"torch": (args.torch, "torch")} if args.torch else {})
    rounds: dict[str, list[dict]] = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, (python, package) in sides.items():
            rounds[side].append(run(python, package, args))
    failed = 0
    for name in SIZES:
        for clock in ("wall", "CPU"):
            best = {side: 1e3 * min(each[name][clock] for each in found) for side, found in rounds.items()}
            line = f"{name:>5} {clock:4}: " + ", ".join(f"{side} {ms:.3f} ms" for side, ms in best.items())
            if "torch" in best:
                ratio, limit = best["ours"] / best["torch"], LIMITS.get((name, clock))
                line += f", ratio {ratio:.2f}" + (f" (at most {limit})" if limit else "")
                failed += limit is not None and ratio > limit
            print(line)
    late = {side: min(each["late"] for each in found) for side, found in rounds.items()}
    print("a peer 100 ms late: " + ", ".join(f"{side} {share:.3f} of a core" for side, share in late.items()))
    return int(failed + (late["ours"] > LATE_CORE))


if __name__ == "__main__":
    sys.exit(main())
