"""How long a step would take if an op were faster.

`mtprof run --virtual-speedup` checks it in a real run.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.findings import duration, relative_change
from ....analysis.what_if import WhatIf
from ... import reading
from ...exit_codes import FINE, USAGE, Failure
from ...parser import near_event

EXAMPLE = "mtprof what-if profile.mtp --op aten::gelu --faster 2x"

_FACTORS = (1.25, 1.5, 2.0, 4.0, math.inf)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument(
        "--op",
        action="append",
        default=None,
        metavar="NAME",
        help="name of ops, functions or kernels that become faster, * and ? stand for anything; may be repeated",
    )
    parser.add_argument("--faster", type=times, action="append", default=None, metavar="2x", help="how much; may be repeated")
    reading.add_limit(parser, 15, "names on the critical path")
    reading.add_json(parser)


def times(text: str) -> float:
    """Parse "2x" or "1.5" as a factor above 1; "inf" is a factor, too: the op takes no time."""
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = math.nan
    if not factor > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no factor above 1, such as 2x")
    return factor


def run(args: argparse.Namespace) -> int:
    """Print the predictions, or without --op the critical path and what each of its names could gain."""
    store = reading.open_recording(args.path).store
    if not len(store):
        raise Failure("nothing was recorded")
    graph = WhatIf(store)
    span = "a step" if graph.has_steps else "the recording"
    if args.op is None:
        if args.faster:
            raise Failure("say with --op what becomes faster", USAGE)
        return _print_path(graph, args, span)
    rows = graph.matching(args.op)
    if not rows.any():
        hint = near_event(args.op[0], graph.store.names) or "`mtprof table` lists the names"
        raise Failure(f"no event is named {' or '.join(args.op)}: {hint}", USAGE)
    predictions = [graph.faster(rows, factor) for factor in args.faster or _FACTORS]
    steps = max(1, len(graph.steps.start)) if graph.has_steps else 1
    alone = int(store.self_ns[rows & (store.device_type == 0)].sum()) + int(store.duration[rows & store.is_work].sum())
    path = (predictions[0].before_ns - graph.faster(rows, math.inf).after_ns) if rows.any() else 0.0
    if args.json:
        plain = [prediction.to_dict() for prediction in predictions]
        print(dumps({"per": span, "time_ns": alone / steps, "path_ns": path, "predictions": plain}, indent=1))
        return FINE
    names = shown(" and ".join(args.op))
    print(f"{names}: {duration(alone / steps)} in {span}, {duration(path)} of it on the critical path")
    for prediction in predictions:
        what = "at no cost" if math.isinf(prediction.factor) else f"{prediction.factor:g}x faster"
        change = relative_change(1 - prediction.change)
        print(f"{what:>12}: {duration(prediction.before_ns)} -> {duration(prediction.after_ns)}  ({change})")
    return FINE


def _print_path(graph: WhatIf, args: argparse.Namespace, span: str) -> int:
    path = graph.critical_path()
    whole = sum(one.path_ns for one in path)
    listed = reading.first(path, args.limit)
    if args.json:
        plain: list[dict[str, Any]] = [one._asdict() for one in listed]
        print(dumps({"path_ns": whole, "critical_path": plain, "names_in_all": len(path)}, indent=1))
        return FINE
    print(f"{'on path':>9} {'share':>6} {'self':>9} {'2x faster':>9} {'calls':>7}  name")
    for one in listed:
        gain = one.path_ns / 2 / whole if whole else float(np.nan)
        print(
            f"{duration(one.path_ns):>9} {one.path_ns / whole:>6.1%} {duration(one.total_ns):>9} {-gain:>+9.1%} "
            f"{one.calls:>7,}  {shown(one.name)}"
        )
    if len(listed) < len(path):
        print(f"... {len(path) - len(listed)} more")
    print(f"the critical path is {duration(whole)} long; --op NAME --faster 2x computes {span} anew")
    return FINE
