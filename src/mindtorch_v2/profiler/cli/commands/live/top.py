"""What a running process does now, op by op.

The process must be armed (MTPROF=arm); it counts only while this looks at it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ...._io.strict_json import dumps
from ...._io.terminal import cut, padded, shown
from ....analysis.findings import duration
from ... import processes, reading
from ...exit_codes import FINE, UNREADABLE, Failure

EXAMPLE = "mtprof top 4711 --interval 2"

_NAME_COLUMNS = 44
_CLEAR = "\x1b[H\x1b[J"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    processes.add_pid(parser)
    parser.add_argument("--interval", type=_seconds, default=1.0, metavar="S", help="seconds between two looks (default 1)")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N looks (default: when the process ends)")
    reading.add_limit(parser, 20, "ops")
    parser.add_argument("--json", action="store_true", help="one JSON object per look")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Print what was counted since the last look, until the process ends or so many looks are done."""
    pid = processes.chosen(args.pid)
    request = {"request": "top", "interval": args.interval, "count": args.count}
    before: dict[str, Any] = {"seconds": 0.0, "steps": 0, "count": 0, "ops": []}
    looks = 0
    for now in processes.answers(pid, request):
        since = difference(before, now)
        before = now
        looks += 1
        if args.json:
            print(dumps({**since, "ops": list(reading.first(since["ops"], args.limit))}), flush=True)
        else:
            print((_CLEAR if sys.stdout.isatty() else "") + _text(since, args.limit), flush=True)
    if not looks:
        raise Failure(f"process {pid} ended before anything was counted", UNREADABLE)
    return FINE


def difference(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What was counted between two answers: ops by self time, with their share of the time."""
    seconds = now["seconds"] - before["seconds"]
    earlier = {op["name"]: op for op in before["ops"]}
    ops = []
    for op in now["ops"]:
        last = earlier.get(op["name"], {"calls": 0, "self_ns": 0})
        calls, self_ns = op["calls"] - last["calls"], op["self_ns"] - last["self_ns"]
        if calls:
            share = self_ns / 1e9 / seconds if seconds else 0.0
            ops.append({"name": op["name"], "calls": calls, "self_ns": self_ns, "share": share, "p99_ns": op["p99_ns"]})
    ops.sort(key=lambda op: -op["self_ns"])
    return {
        "pid": now["pid"],
        "command": now["command"],
        "seconds": seconds,
        "steps": now["steps"] - before["steps"],
        "calls": now["count"] - before["count"],
        "ops": ops,
        "ops_in_all": len(ops),
    }


def _text(since: dict[str, Any], limit: int) -> str:
    steps, seconds = since["steps"], since["seconds"]
    rate = f"{steps / seconds:.3g} steps/s, {duration(seconds * 1e9 / steps)} a step" if steps else "no step has ended"
    lines = [
        f"{since['pid']}  {shown(since['command'])}",
        f"{rate}; {since['calls'] / seconds:,.0f} events/s",
        f"{'op':{_NAME_COLUMNS}} {'self %':>7} {'self':>9} {'calls':>9} {'p99':>9}",
    ]
    lines += [
        f"{padded(cut(shown(op['name']), _NAME_COLUMNS), _NAME_COLUMNS, left=True)} {100 * op['share']:6.1f}% "
        f"{duration(op['self_ns']):>9} {op['calls']:>9,} {duration(op['p99_ns']):>9}"
        for op in reading.first(since["ops"], limit)
    ]
    return "\n".join(lines)
