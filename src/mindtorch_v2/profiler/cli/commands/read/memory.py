"""Where memory went, and what held it at the peak."""

from __future__ import annotations

import argparse
from typing import Any

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.findings import duration, size
from ....analysis.memory.use import MemoryUse, memory_use
from ... import reading
from ...exit_codes import FINE, Failure

EXAMPLE = "mtprof memory profile.mtp -n 10"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    reading.add_limit(parser, 15)
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print what was in use at the start, the peak and the end, and the holders of the peak."""
    loaded = reading.open_recording(args.path)
    store = loaded.store
    if not len(store.mem_time):
        raise Failure("no memory was recorded: profile(profile_memory=True), or `mtprof run --memory`")
    uses = memory_use(store, loaded._memory_uses())
    if args.json:
        print(dumps([_as_plain(use, args.limit) for use in uses], indent=1))
        return FINE
    for use in uses:
        at_least = "" if use.before_known else "at least "
        print(
            f"{shown(use.device)}: {use.allocations:,} allocations of {size(use.allocated)}; "
            f"in use {at_least}{size(use.before)} at the start, {size(use.left)} at the end"
        )
        print(
            f"peak: {size(use.peak)} after {duration(use.peak_ns - store.clock_start_ns)}"
            + (f", in step {use.peak_step}" if use.peak_step is not None else "")
            + f"; {_parts(use)}"
        )
        if not use.before_known:
            print("What was there before and was not freed meanwhile is not known and not counted.")
        if use.categories:
            print("held then: " + ", ".join(f"{shown(name.lower())} {size(amount)}" for name, amount in use.categories.items()))
        print(f"\n{'held':>9} {'blocks':>7}  allocated by, at the peak")
        listed = reading.first(use.holders, args.limit)
        for holder in listed:
            place = f"  at {shown(holder.where)}" if holder.where else ""
            blocks = f"{holder.blocks:,}" if holder.blocks else "-"
            print(f"{size(holder.bytes):>9} {blocks:>7}  {shown(holder.name)}{place}")
        if len(use.holders) > len(listed):
            print(f"... {len(use.holders) - len(listed)} more")
    return FINE


def _as_plain(use: MemoryUse, limit: int) -> dict[str, Any]:
    """All figures of a device in bytes, with the holders within the limit."""
    holders = [holder._asdict() for holder in reading.first(use.holders, limit)]
    return {**use._asdict(), "holders": holders, "holders_in_all": len(use.holders)}


def _parts(use: MemoryUse) -> str:
    """How much of the peak was there before the recording began."""
    if use.peak_before or use.before_known:
        return f"{size(use.peak_before)} of it from before the recording, {size(use.peak - use.peak_before)} allocated since"
    return "all of it allocated since the recording began"
