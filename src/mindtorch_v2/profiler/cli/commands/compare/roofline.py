"""How near each op comes to what the machine can do.

It takes input shapes: profile(record_shapes=True), or `mtprof run --shapes`; with memory, results count as well.
"""

from __future__ import annotations

import argparse
from typing import Any

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis import ceilings as machine
from ....analysis.findings import duration
from ....analysis.roofline import BY, Point, roofline
from ....store.store import EventStore
from ... import reading
from ...exit_codes import FINE, USAGE, Failure
from ..read.flops import known_flops

EXAMPLE = "mtprof roofline profile.mtp --by module"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("--by", choices=BY, default="op", help="what to group by (default op)")
    parser.add_argument("--ceilings", default=None, metavar="FILE", help="what `mtprof ceilings -o FILE` wrote")
    reading.add_limit(parser, 20)
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the points with most time, and which ceiling is above each."""
    store = reading.open_recording(args.path).store
    if not (store.shapes >= 0).any():
        raise Failure("no input shapes were recorded: profile(record_shapes=True), or `mtprof run --shapes`")
    if args.by == "module" and not (store.module >= 0).any():
        raise Failure("no modules were recorded: profile(with_modules=True), or `mtprof run --modules`")
    ceilings = _ceilings(args.ceilings)
    points = roofline(store, known_flops(store), args.by)
    listed = reading.first(points, args.limit)
    if args.json:
        print(dumps(_as_plain(store, ceilings, listed, len(points)), indent=1))
        return FINE
    _print(listed, ceilings)
    left = len(points) - len(listed)
    if left:
        print(f"... {left} more")
    for note in notes(store, ceilings):
        print(note)
    return FINE


def _ceilings(path: str | None) -> machine.Ceilings | None:
    try:
        found = machine.load(path)
    except ValueError as error:
        raise Failure(str(error), USAGE) from None
    if found is None and path is not None:
        raise Failure(f"there is no file {path}: `mtprof ceilings -o {path}` measures and writes it", USAGE)
    return found


def notes(store: EventStore, ceilings: machine.Ceilings | None) -> list[str]:
    """What is to be known of the figures."""
    found = []
    if not len(store.mem_time):
        found.append("Memory was not recorded: bytes are those of inputs only, without results.")
    if ceilings is None:
        found.append("No ceilings are known: `mtprof ceilings` measures those of this machine.")
    else:
        found.append(
            f"Ceilings of {shown(ceilings.machine)}: {ceilings.copy_bytes_s / 1e9:.4g} GB/s, "
            f"{ceilings.float32_flops_s / 1e9:.4g} GFLOP/s; memory is the limit below {ceilings.ridge:.3g} FLOPs per byte."
        )
    if store.has_device_rows:
        found.append("The times are those of a device, the ceilings those of the host: they do not belong together.")
    return found


def _as_plain(store: EventStore, ceilings: machine.Ceilings | None, points: Any, in_all: int) -> dict[str, Any]:
    return {
        "ceilings": None if ceilings is None else ceilings.to_dict(),
        "points": [
            {
                **point.to_dict(),
                "limit": None if ceilings is None else point.limit(ceilings),
                "share": None if ceilings is None else point.share(ceilings),
            }
            for point in points
        ],
        "points_in_all": in_all,
        "results_counted": bool(len(store.mem_time)),
    }


def _print(points: Any, ceilings: machine.Ceilings | None) -> None:
    print(
        f"{'time':>9} {'FLOPs':>9} {'bytes':>9} {'FLOP/B':>7} {'GFLOP/s':>8} {'GB/s':>7}  {_LIMIT if ceilings else '':<13}name"
    )
    for point in points:
        print(
            f"{duration(point.time_ns):>9} {_number(point.flops):>9} {_number(point.bytes):>9} {point.intensity:>7.3g} "
            f"{point.flops_s / 1e9:>8.3g} {point.bytes_s / 1e9:>7.3g}  {_limit(point, ceilings):<13}{shown(point.name)}"
        )


_LIMIT = "of limit"


def _limit(point: Point, ceilings: machine.Ceilings | None) -> str:
    return "" if ceilings is None else f"{point.share(ceilings):.0%} {point.limit(ceilings)}"


def _number(value: int) -> str:
    return f"{value:.3g}" if value else ""
