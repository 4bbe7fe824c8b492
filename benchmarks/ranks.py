"""What `mtprof ranks` finds and costs on made-up jobs of many ranks, whose faults and clocks are known.

    python benchmarks/ranks.py planted --seeds 50      # slow ranks, links and pauses: how many are named exactly; false names
    python benchmarks/ranks.py clocks --seeds 10       # errors of clocks, and how often the stated one covers them
    python benchmarks/ranks.py cost --ranks 1000       # CPU a file, bytes a digest, merging, memory, the page
    python benchmarks/ranks.py digests --ranks 10000   # merging of many digests
    python benchmarks/ranks.py engines --ranks 104     # the same bytes in this process, processes, Dask, Ray, MPI, s3: those
                                                       # that are installed
    python benchmarks/ranks.py hta --ranks 16          # HolisticTraceAnalysis beside it, on the same Kineto traces

`make ranks` runs them all. Times are CPU time of the process.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
from peak_memory import peak_mb
from synthetic_job import MS, Faults, SyntheticJob

from mindtorch_v2.profiler import load, ranks
from mindtorch_v2.profiler.ranks.digest_file import encode, read_blocks, write_digests
from mindtorch_v2.profiler.ranks.mapping import map_file
from mindtorch_v2.profiler.ranks.page import export

LIMITS = {"planted": 48 / 50, "false": 1 / 50}


def answers_of(job: SyntheticJob) -> ranks.JobAnswers:
    blocks = [encode(ranks.make_digest(job.rows(rank), f"rank{rank:05d}.mtp")) for rank in range(job.ranks)]
    return ranks.JobAnswers(ranks.merge(blocks))


def named(answers: ranks.JobAnswers) -> list[tuple]:
    late = answers.stragglers
    found = [("rank", one.rank) for one in late.slow] + [("pause", one.rank, one.step) for one in late.pauses]
    found += [("link", one.source, one.target) if one.is_pair else ("group", one.group) for one in answers.links]
    return found + [("moves",) for finding in answers.findings if finding.rule == "moving_stragglers"]


def planted(args: argparse.Namespace) -> int:
    """Plant one fault a job; it must be named, and nothing else."""
    size, failed = args.ranks, 0
    for kind in ("rank", "link", "group", "pause", "nothing"):
        exact = 0
        for seed in range(args.seeds):
            random = np.random.default_rng([seed, 7])
            rank, step = int(random.integers(size)), int(random.integers(10))
            source = int(random.integers(size - 8))
            group = int(random.integers(8))
            faults, expected = {
                "rank": (Faults(slow_rank=(rank, 1.05)), [("rank", rank)]),
                "link": (Faults(slow_link=(source, source + 8, 0.6)), [("link", source, source + 8)]),
                "group": (Faults(slow_group=(group, 0.6)), [("group", f"dp{group}")]),
                "pause": (Faults(pause=(rank, step, 25 * MS)), [("pause", rank, step + 5)]),
                "nothing": (Faults(), []),
            }[kind]
            found = named(answers_of(SyntheticJob(size, events=args.events, seed=seed, faults=faults)))
            if found == expected:
                exact += 1
            else:
                print(f"  {kind}, seed {seed}: {found} in place of {expected}")
        needed = args.seeds * (1 - LIMITS["false"] if kind == "nothing" else LIMITS["planted"])
        failed += exact < needed
        print(f"{kind}: {exact} of {args.seeds} exactly named (at least {needed:.0f})", flush=True)
    return failed


def clocks(args: argparse.Namespace) -> int:
    """Errors of all hosts' clocks against the truth, over the whole recording."""
    failed = 0
    for jitter, limit in ((15_000, 5_000), (100_000, 50_000)):
        worst, covered, hosts = 0.0, 0, 0
        for seed in range(args.seeds):
            job = SyntheticJob(args.ranks, events=60, seed=seed, exit_jitter_ns=jitter)
            answers = answers_of(job)
            moments = np.linspace(0, job.bounds[-1][1].max(), 11)
            wall = answers.job.to_wall
            truth = job.read_clock(0, moments) + wall[0]
            for rank in range(8, args.ranks, 8):
                own = answers.clocks.to_reference(rank, job.read_clock(rank, moments) + wall[rank])
                error = float(np.abs(own - truth).max())
                worst, hosts = max(worst, error), hosts + 1
                covered += error <= answers.clocks.error_ns[rank]
        failed += worst > limit or covered < 0.95 * hosts
        print(
            f"exit jitter {jitter / 1e3:.0f} us: worst of {hosts} hosts {worst / 1e3:.2f} us (at most {limit / 1e3:.0f}), "
            f"stated error covers {covered} of {hosts}",
            flush=True,
        )
    return failed


def cost(args: argparse.Namespace) -> int:
    """Reading, merging and showing one large job."""
    folder = Path(args.folder or tempfile.mkdtemp(prefix="ranks"))
    job = SyntheticJob(args.ranks, events=20_000, faults=Faults((args.ranks // 3, 1.05), (16, 24, 0.6), None, (40, 4, 25 * MS)))
    if not (folder / f"rank{args.ranks - 1:05d}.mtp").exists():
        job.save(folder)
    files = sorted(folder.glob("*.mtp"))
    size = sum(file.stat().st_size for file in files)
    map_file("warm.mtp", str(files[0]))
    times, blocks = [], []
    for file in files:
        begin = time.process_time()
        blocks += map_file(file.name, str(file)).blocks
        times.append(time.process_time() - begin)
    steps = len(job.bounds)
    print(f"{len(files)} files, {size / 1e6:.1f} MB; {job.rows(0).columns['start'].size} events each")
    print(f"map: median {1e3 * np.median(times):.2f} ms CPU a file, least {1e3 * min(times):.2f} (at most 12)")
    print(f"digest: {sum(map(len, blocks)) / len(blocks) / steps:.0f} bytes a rank and step (at most 1024)")
    page = Path(tempfile.gettempdir()) / "ranks.html"
    failed = _merge_cost(blocks, page, 1, 200) + (page.stat().st_size > 2_000_000)
    if not args.folder:
        shutil.rmtree(folder)
    return failed + (sum(map(len, blocks)) / len(blocks) / steps > 1024) + (float(np.median(times)) > 0.012)


def digests(args: argparse.Namespace) -> int:
    """Merging of digests alone, which are made without recordings, and all answers."""
    file = Path(args.folder) / f"{args.ranks}.mtranks" if args.folder else None
    if file is not None and file.exists():
        blocks = list(read_blocks(file.read_bytes()))
    else:
        job = SyntheticJob(args.ranks, events=1000)
        blocks = [encode(ranks.make_digest(job.rows(rank), f"rank{rank:05d}.mtp")) for rank in range(args.ranks)]
        del job
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(write_digests(blocks))
            print(f"made {file}: run again to measure")
            return 0
    return _merge_cost(blocks, None, 10, 1000, with_answers=True)


def _merge_cost(blocks: list[bytes], page: Path | None, most_s: float, most_mb: float, with_answers: bool = False) -> int:
    """Merge digests and tell the cost; whether it is above what it may be. with_answers: their time counts as well."""
    before = peak_mb()
    begin = time.process_time()
    job = ranks.merge(blocks)
    merged = time.process_time()
    answers = ranks.JobAnswers(job)
    text = answers.to_json()
    done = time.process_time()
    peak = peak_mb()
    print(
        f"merge of {len(blocks)}: {merged - begin:.2f} s CPU; answers with clocks: {done - merged:.2f} s "
        f"(at most {most_s:g}{' together' if with_answers else ' for the merge'}); "
        f"peak of the process {peak:.0f} MB (at most {most_mb:g}; before {before:.0f}); "
        f"{len(job.messages)} communications; JSON {len(text)} characters"
    )
    if page is not None:
        export(answers, page)
        print(f"page: {page.stat().st_size / 1e6:.2f} MB (at most 2)")
    print(*answers.text().splitlines()[:4], sep="\n")
    return int((done if with_answers else merged) - begin > most_s or peak > most_mb)


def engines(args: argparse.Namespace) -> int:
    """The same bytes on every engine that is there."""
    with tempfile.TemporaryDirectory(prefix="ranks") as folder:
        job = SyntheticJob(args.ranks, events=2000, faults=Faults(slow_rank=(args.ranks // 2, 1.05)))
        job.save(Path(folder) / "job")
        path = str(Path(folder) / "job")
        wanted = _hash(ranks.load(path, processes=1))
        print(f"serial: {wanted}", flush=True)
        runs = (("2 processes", _processes), ("s3", _s3), ("MPI", _mpi), ("Dask", _dask), ("Ray", _ray))
        failed = 0
        for name, run in runs:
            try:
                found = run(path)
            except ImportError as error:
                print(f"{name}: not installed ({error.name})")
                continue
            failed += found != wanted
            print(f"{name}: {'the same' if found == wanted else found}", flush=True)
    return failed


def _processes(path: str) -> str:
    return _hash(ranks.load(path, processes=2))


def _hash(answers: ranks.JobAnswers) -> str:
    return hashlib.sha256(answers.to_json().encode()).hexdigest()[:16]


def _dask(path: str) -> str:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        return _hash(ranks.load(path, dask=cluster.scheduler_address))


def _ray(path: str) -> str:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        return _hash(ranks.load(path, ray="auto"))
    finally:
        ray.shutdown()


def _mpi(path: str) -> str:
    if importlib.util.find_spec("mpi4py") is None:
        raise ImportError("mpi4py", name="mpi4py")
    mpiexec = Path(sys.executable).parent / "mpiexec"
    command = [str(mpiexec), "-n", "3", sys.executable, "-m", "mindtorch_v2.profiler", "ranks", path, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return hashlib.sha256(done.stdout.rstrip("\n").encode()).hexdigest()[:16]


def _s3(path: str) -> str:
    import boto3
    import s3fs  # noqa: F401
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="runs")
        for file in Path(path).iterdir():
            client.upload_file(str(file), "runs", f"job/{file.name}")
        return _hash(ranks.load("s3://runs/job/", processes=1))
    finally:
        server.stop()


def hta(args: argparse.Namespace) -> int:
    """HolisticTraceAnalysis and this package on the same Kineto traces: memory, CPU time, and which rank is found slow."""
    if importlib.util.find_spec("hta") is None:
        print("HolisticTraceAnalysis: not installed")
        return 0
    slow = args.ranks // 2
    with tempfile.TemporaryDirectory(prefix="ranks") as folder:
        job = SyntheticJob(args.ranks, events=args.events, faults=Faults(slow_rank=(slow, 1.05)))
        for rank in range(args.ranks):
            job.save(Path(folder), range(rank, rank + 1))
            saved = Path(folder) / f"rank{rank:05d}.mtp"
            load(saved).export_chrome_trace(str(Path(folder) / f"rank{rank:05d}.json.gz"))
            saved.unlink()
        for name in ("mtprof", "hta"):
            command = [sys.executable, __file__, "beside", "--folder", folder, "--engine", name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(f"{name}: {(done.stdout.strip() or done.stderr.strip()).splitlines()[-1]}", flush=True)
        print(f"planted: rank {slow}")
    return 0


def beside(args: argparse.Namespace) -> int:
    """One of the two in a process of its own."""
    if args.engine == "mtprof":
        answers = ranks.load(args.folder, processes=1)
        found = f"slow ranks {[one.rank for one in answers.stragglers.slow]}"
    else:
        found = _hta_answers(args.folder)
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]  # HTA starts processes
    peak = max(peak_mb(), used[1].ru_maxrss / 1024)
    spent = sum(each.ru_utime + each.ru_stime for each in used)
    count = len(list(Path(args.folder).iterdir()))
    print(f"{count} ranks: {spent / count:.2f} s CPU a rank with imports, peak {peak:.0f} MB; {found}")
    return 0


def _hta_answers(folder: str) -> str:
    from hta.trace_analysis import TraceAnalysis

    logging.disable(logging.WARNING)
    files = {rank: str(file) for rank, file in enumerate(sorted(Path(folder).iterdir()))}
    analysis = TraceAnalysis(trace_files=files)
    answers = []
    for name, ask in (
        ("overlap", lambda: analysis.get_comm_comp_overlap(visualize=False).iloc[:, 1].tolist()[:4]),
        ("stragglers", lambda: analysis.get_potential_stragglers(num_candidates=1)),
    ):
        try:
            answers.append(f"{name} {ask()}")
        except Exception as error:
            answers.append(f"{name}: {type(error).__name__}: {error}")
    return "; ".join(answers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["planted", "clocks", "cost", "digests", "engines", "hta", "beside"])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--folder", default=None, help="of `cost` and `digests`: where the input is, or is made")
    parser.add_argument("--engine", choices=["mtprof", "hta"], help="of `beside`, which `hta` starts")
    args = parser.parse_args()
    return int(globals()[args.what](args))  # NumPy's numbers are no exit codes


if __name__ == "__main__":
    sys.exit(main())
