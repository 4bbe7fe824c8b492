"""Ten million ops in ring and in aggregate mode: memory stays flat, and aggregate totals are the exact ones.

    python tests/soak/ten_million.py [--ops 10000000] [--mode ring|aggregate|both]

Memory is looked at after a tenth of the ops and at the end. Beside the aggregate, short plain profiles record the same
ops; their totals added up must be the aggregate's to the nanosecond.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function

MOST_GROWTH_MB = 5.0
OPS_PER_WINDOW = 10_000


def rss_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Work:
    """A little of everything: single ops, ops that call others, ranges."""

    def __init__(self) -> None:
        self.x, self.y = torch.ones(4), torch.ones(4)
        self.layer = nn.Linear(4, 4)

    def step(self) -> None:
        x, y = self.x, self.y
        with record_function("step"):
            for _ in range(20):
                torch.add(x, y)
                torch.mul(x, y)
                torch.sub(x, y)
            with torch.no_grad(), record_function("layer"):
                self.layer(x)


def rows_per_step(work: Work) -> int:
    with profile() as prof:
        work.step()
    return len(prof.profiler.store)


def run(mode: str, ops: int, exact: bool) -> bool:
    work = Work()
    per_step = rows_per_step(work)
    steps, warm_up = ops // per_step, ops // per_step // 10
    began, before, peak = time.perf_counter(), 0.0, 0.0
    totals: dict[str, list[int]] = {}
    per_window = max(1, OPS_PER_WINDOW // per_step)
    with profile(max_memory_mb=16, mode=mode) as prof:
        done = 0
        while done < steps:
            inner = profile() if exact else None
            if inner is not None:
                inner.start()
            for _ in range(per_window):
                work.step()
                prof.step()
            if inner is not None:
                inner.stop()
                add_totals(totals, inner)
            done += per_window
            if done >= warm_up and not before:
                gc.collect()
                before = rss_mb()
            if before and done % (50 * per_window) == 0:
                peak = max(peak, rss_mb())
        gc.collect()
        after = rss_mb()
    took = time.perf_counter() - began
    count = done * per_step
    print(
        f"{mode}: {count} ops in {took:.1f} s, {took / count * 1e6:.2f} us each; memory {before:.1f} MB "
        f"after the warm-up, {after:.1f} MB at the end ({after - before:+.1f}), at most {peak - before:+.1f} in between",
        flush=True,
    )
    good = after - before < MOST_GROWTH_MB
    if mode == "ring":
        kept = len(prof.profiler.store)
        print(f"ring: {kept} events kept, {prof.dropped_events} dropped", flush=True)
        good &= kept + prof.dropped_events == done * per_step
    if exact:
        found = {name: [row.count, row.sum_ns, row.self_ns] for name, row in prof.aggregate().by_name().items()}
        print(
            f"aggregate: {sum(row[0] for row in found.values())} events, totals {'equal' if found == totals else 'differ'}",
            flush=True,
        )
        good &= found == totals
    return good


def add_totals(totals: dict[str, list[int]], prof: profile) -> None:
    store = prof.profiler.store.visible
    for name, took, alone in zip(store.label.tolist(), store.duration.tolist(), store.self_ns.tolist(), strict=True):
        total = totals.setdefault(store.labels[name], [0, 0, 0])
        total[0] += 1
        total[1] += took
        total[2] += alone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=int, default=10_000_000)
    parser.add_argument("--mode", choices=("ring", "aggregate", "exact", "all"), default="all")
    args = parser.parse_args()
    plan = [("ring", False), ("aggregate", False), ("aggregate", True)]
    chosen = {"all": plan, "ring": plan[:1], "aggregate": plan[1:2], "exact": plan[2:]}[args.mode]
    results = [run(mode, args.ops, exact) for mode, exact in chosen]
    print("fine" if all(results) else "FAILED")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
