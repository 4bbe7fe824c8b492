"""What statistics that are always on cost a rank: CPU time of one addition over the group, and its bytes.

    mtrun --standalone --nproc-per-node 8 benchmarks/group_statistics.py [--steps 60] [--every 20]

Each rank trains a small model by DistributedDataParallel under profile(mode="aggregate"). Times are CPU time of the process.
"""

from __future__ import annotations

import argparse
import time

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.live.group_statistics import GroupStatistics, summarize


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=20)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear(128, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 16)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters())
    written = []
    added, began = [], time.process_time()
    with profile(mode="aggregate", max_memory_mb=32) as prof:
        statistics = GroupStatistics(prof.aggregate, every=args.every, write=written.append)
        for step in range(args.steps):
            optimizer.zero_grad()
            model(torch.randn(32, 128)).square().mean().backward()
            optimizer.step()
            prof.step()
            dist.barrier()  # so that waiting for a late rank is not counted
            before = time.process_time()
            statistics.step()
            if (step + 1) % args.every == 0:
                added.append(time.process_time() - before)
        spent = time.process_time() - began
    size = len(summarize(prof.aggregate(), dist.get_rank()).encode())
    everyone: list = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (min(added), sum(added) / spent, size))
    if dist.get_rank() == 0:
        least, share, sizes = zip(*everyone, strict=True)
        assert written and written[-1].ranks == dist.get_world_size()
        print(f"{dist.get_world_size()} ranks, every {args.every} of {args.steps} steps; {len(written[-1].stats.rows)} rows")
        print(f"an addition: {1e3 * min(least):.2f} to {1e3 * max(least):.2f} ms CPU a rank (least of {len(added)})")
        print(f"of all CPU time: {100 * min(share):.2f} to {100 * max(share):.2f} %")
        print(f"a summary: {min(sizes)} to {max(sizes)} bytes; sent by all ranks together {sum(sizes[1:])} bytes")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
