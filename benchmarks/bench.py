#!/usr/bin/env python3
"""Time two torch-compatible packages side by side and print host/base ratios.

    bench.py --base torch --host mindtorch_v2 [--group profiler|dispatch|ops|train|models] [--quick] [--json out]

Each package runs in its own process; the two are driven alternately, one sample each per round.
A row shows the best sample of either side (the median where the value is a difference), their
ratio (lower is better for the host) and the lowest and highest ratio seen in any single round.
"""

from __future__ import annotations

import argparse
import atexit
import fnmatch
import itertools
import json
import math
import os
import platform
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rows as registry
from stored import Stored, store

HERE = Path(__file__).resolve().parent
PAGE = os.sysconf("SC_PAGE_SIZE")
# These make a library take other kernels than its own choice for the processor, which is what users have. Environments whose
# results must be alike on several machines set them, for one side only.
KERNEL_CHOICES = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "NPY_DISABLE_CPU_FEATURES",
)
COMPILE = """
import compileall, importlib.util, sys
compileall.compile_dir(importlib.util.find_spec(sys.argv[1]).submodule_search_locations[0], quiet=2)
"""


class Side:
    """One package under test and the worker process that runs its samples."""

    def __init__(self, module, python, clock, max_rss, cap):
        self.module, self.python, self.clock, self.max_rss, self.cap = module, python, clock, max_rss, cap
        self.proc = None
        self.threads = None
        self.version = None

    def start(self, threads):
        self.stop()
        request_r, self.request = os.pipe()
        self.reply, reply_w = os.pipe()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the worker
        env = dict(os.environ, BENCH_CLOCK=self.clock, PYTHONHASHSEED="0")
        for name in ("PYTHONDONTWRITEBYTECODE", *KERNEL_CHOICES):
            env.pop(name, None)
        if self.threads is None:
            # As pip leaves a package: without bytecode, every fresh process would compile its sources, on one side only.
            subprocess.run([self.python, "-c", COMPILE, self.module], env=env, stdout=subprocess.DEVNULL, check=False)
        for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM"):
            env[name + "_NUM_THREADS"] = str(threads)
        self.proc = subprocess.Popen(
            [self.python, str(HERE / "worker.py"), self.module, str(threads), str(request_r), str(reply_w)],
            pass_fds=(request_r, reply_w),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        os.close(request_r)
        os.close(reply_w)
        self.buffer = b""
        self.threads = threads

    def stop(self):
        if self.proc is None:
            return
        self.proc.kill()
        self.proc.wait()
        os.close(self.request)
        os.close(self.reply)
        self.log.close()
        self.proc = None

    def _line(self, cap):
        """Next reply line; raises after `cap` silent seconds, on death, or past the memory limit."""
        end = time.monotonic() + cap
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.reply], [], [], 0.5)
            if ready:
                data = os.read(self.reply, 1 << 16)
                if not data:
                    self.log.seek(0)
                    tail = self.log.read().decode(errors="replace").strip().splitlines()[-1:]
                    raise RuntimeError(f"worker died {' '.join(tail)}")
                self.buffer += data
                continue
            if time.monotonic() > end:
                raise TimeoutError(f"over {cap:g} s")
            try:
                rss = int(Path(f"/proc/{self.proc.pid}/statm").read_text().split()[1]) * PAGE
            except (OSError, IndexError):
                rss = 0
            if rss > self.max_rss:
                raise MemoryError(f"over {self.max_rss >> 20} MB")
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def sample(self, row, size, threads, quick):
        """Run one row once; return ({name: value}, {name: error}, overall error or None)."""
        values, errors = {}, {}
        try:
            if row.fresh or self.proc is None or self.threads != threads:
                self.start(threads)
            cap = self.cap or row.cap
            message = {"row": row.id, "size": size, "quick": quick, "cap": cap}
            os.write(self.request, json.dumps(message).encode() + b"\n")
            while True:
                reply = self._line(cap)
                if "value" in reply:
                    values[reply["name"]] = reply["value"]
                elif "name" in reply:
                    errors[reply["name"]] = reply["error"]
                elif "version" in reply:
                    self.version = reply["version"]
                else:
                    return values, errors, reply.get("error")
        except (RuntimeError, TimeoutError, MemoryError, OSError) as exc:
            self.stop()
            return values, errors, f"{type(exc).__name__}: {exc}"
        finally:
            if row.fresh:
                self.stop()


def compare(sides, row, size, threads, rounds, quick):
    """Sample both sides alternately; return each round's values and the errors of either side."""
    taken, errors, over = [], [{}, {}], [False, False]
    for turn in range(rounds):
        result = [{}, {}]
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            if not over[i]:
                result[i], parts, whole = sides[i].sample(row, size, threads, quick)
                errors[i].update(parts)
                if whole:
                    errors[i][""], over[i] = whole, True
        taken.append(result)
        if all(over):
            break
    return taken, errors


def number(value):
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if size >= 1 else f"{value:.3f}" if size >= 0.1 else f"{value:.2g}"


def summarize(name, unit, kind, rounds, errors):
    """Fold the samples of one output row into a record; plain timings take the best, others the median."""
    record = {"name": name, "unit": unit, "kind": kind}
    fold = statistics.median if kind else min
    for i, side in enumerate(("base", "host")):
        samples = [r[i][name] for r in rounds if name in r[i]]
        record[side] = {
            "value": fold(samples) if samples else None,
            "samples": samples,
            "error": None if samples else errors[i].get(name) or errors[i].get("") or "not reported",
        }
    pairs = [(r[0][name], r[1][name]) for r in rounds if name in r[0] and name in r[1]]
    ratios = [b / a for a, b in pairs if a > 0 and b > 0]
    a, b = record["base"]["value"], record["host"]["value"]
    record["ratio"] = b / a if a is not None and b is not None and a > 0 and b > 0 else None
    record["spread"] = [min(ratios), max(ratios)] if ratios else None
    return record


def show(record):
    cells = ["n/a" if record[s]["value"] is None else number(record[s]["value"]) for s in ("base", "host")]
    errors = [f"n/a: {record[s]['error'][:70]}" for s in ("base", "host") if record[s]["value"] is None]
    ratio = "" if record["ratio"] is None else number(record["ratio"])
    spread = "" if not record["spread"] else "-".join(f"{r:.2f}" if r >= 0.1 else f"{r:.1g}" for r in record["spread"])
    tail = "; ".join(dict.fromkeys(errors)) if errors else f"{ratio:>9} {spread:>13}"
    print(f"{record['name']:<42} {record['unit']:<9} {cells[0]:>13} {cells[1]:>13} {tail}", flush=True)


def geomean(records):
    logs = [math.log(r["ratio"]) for r in records if r["ratio"] and r["kind"] != "info"]
    return math.exp(sum(logs) / len(logs)) if logs else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="torch", help="package to compare with, or `stored`: the last full run")
    parser.add_argument("--host", default="mindtorch_v2")
    parser.add_argument("--base-python", default=sys.executable, help="interpreter that has the base package")
    parser.add_argument("--host-python", default=sys.executable, help="interpreter that has the host package")
    parser.add_argument("--group", action="append", choices=registry.GROUPS)
    parser.add_argument("--only", default="*", help="globs over row names, e.g. 'record.*,mem.*'")
    parser.add_argument("--threads", default="1,2", help="thread counts for the train and models groups")
    parser.add_argument("--rounds", type=int, help="samples per side and row (default 5, quick 2)")
    parser.add_argument("--sizes", help="event counts for the scaling rows (default 10000,100000,1000000)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: process CPU time for single-thread rows, for a machine with other load",
    )
    parser.add_argument("--cap", type=float, help="seconds without a value before a sample is given up (default by row)")
    parser.add_argument("--max-rss", type=int, default=0, help="stop a worker above this many MB (default 60%% of RAM)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter samples, smallest sizes")
    parser.add_argument("--list", action="store_true", help="list the rows and leave")
    parser.add_argument("--json", help="write all samples here")
    parser.add_argument("--store", action="store_true", help="keep the host's figures for `--base stored`")
    args = parser.parse_args()

    rounds = args.rounds or (2 if args.quick else 5)
    sizes = [int(s) for s in args.sizes.split(",")] if args.sizes else ([10_000] if args.quick else registry.SIZES)
    max_rss = (args.max_rss << 20) or int(os.sysconf("SC_PHYS_PAGES") * PAGE * 0.6)
    sides = (
        Stored() if args.base == "stored" else Side(args.base, args.base_python, args.clock, max_rss, args.cap),
        Side(args.host, args.host_python, args.clock, max_rss, args.cap),
    )
    meta = {
        "base": args.base,
        "host": args.host,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "clock": args.clock,
        "rounds": rounds,
        "load_before": os.getloadavg(),
        "started": time.strftime("%F %T"),
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for side in sides:
        atexit.register(side.stop)
    groups = args.group or registry.GROUPS
    records = []

    def save():
        if args.json:
            meta.update(base_version=sides[0].version, host_version=sides[1].version, load_after=os.getloadavg())
            Path(args.json).write_text(json.dumps({"meta": meta, "rows": records}, indent=1))
        if args.store:
            store(meta, records)

    print(f"{'benchmark':<42} {'unit':<9} {args.base[:13]:>13} {args.host[:13]:>13} {'host/base':>9} {'spread':>13}")
    for group in groups:
        threads = [int(t) for t in args.threads.split(",")] if group in registry.THREADED else [1]
        for thread, row in itertools.product(threads, registry.load(group)):
            outputs = [o for o in row.outputs if any(fnmatch.fnmatch(o[0], glob) for glob in args.only.split(","))]
            if not outputs:
                continue
            for size in sizes if row.sized else [None]:
                suffix = (f"@{registry.short(size)}" if size else "") + (f" t{thread}" if group in registry.THREADED else "")
                if args.list:
                    for name, unit, _ in outputs:
                        print(f"{name + suffix:<42} {unit}")
                    continue
                count = min(rounds, registry.ROUNDS_AT.get(size, rounds))
                taken, errors = compare(sides, row, size, thread, count, args.quick)
                for name, unit, kind in outputs:
                    record = summarize(name, unit, kind, taken, errors)
                    record.update(name=name + suffix, group=group)
                    records.append(record)
                    show(record)
                save()
        for side in sides:
            side.stop()
        if not args.list:
            mine = [r for r in records if r["group"] == group and r["kind"] != "info"]
            mean = geomean(mine)
            lost = sum(r["host"]["value"] is None for r in mine)
            print(
                f"== {group}: geometric mean ratio {mean and round(mean, 3)}, "
                f"{sum(bool(r['ratio'] and r['ratio'] <= 1) for r in mine)} of "
                f"{len(mine)} rows at or below base, {lost} n/a\n"
            )
    save()


if __name__ == "__main__":
    main()
