"""mtprof memory: how much was held when, and what held it at the peak."""

from __future__ import annotations

import argparse

from ..analysis.findings import duration, size
from ..analysis.memory_use import memory_use
from . import reading
from .exit_codes import Failure

EXAMPLE = "mtprof memory profile.mtp -n 10"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    reading.add_path(parser)
    reading.add_limit(parser, 15)


def run(args: argparse.Namespace) -> int:
    """Print the figures."""
    loaded = reading.open_recording(args.path)
    store = loaded.store
    if not len(store.mem_time):
        raise Failure("no memory was recorded: profile(profile_memory=True), or `mtprof run --memory`")
    for use in memory_use(store, loaded._memory_uses()):
        print(f"{use.device}: {use.allocations:,} allocations of {size(use.allocated)}, {size(use.left)} left at the end")
        print(f"peak: {size(use.peak)} after {duration(use.peak_ns - store.clock_start_ns)}"
              + (f", in step {use.peak_step}" if use.peak_step is not None else ""))
        if use.categories:
            print("held then: " + ", ".join(f"{name.lower()} {size(amount)}" for name, amount in use.categories.items()))
        print(f"\n{'held':>9} {'blocks':>7}  allocated by, at the peak")
        shown = reading.first(use.holders, args.limit)
        for holder in shown:
            place = f"  at {holder.where}" if holder.where else ""
            print(f"{size(holder.bytes):>9} {holder.blocks:>7,}  {holder.name}{place}")
        if len(use.holders) > len(shown):
            print(f"... {len(use.holders) - len(shown)} more")
    return 0
