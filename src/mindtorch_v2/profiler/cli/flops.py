"""mtprof flops: FLOPs by operator and the speed they were done at."""

from __future__ import annotations

import argparse

import numpy as np

from .. import _tree
from ..analysis.findings import duration
from . import reading
from .exit_codes import Failure

EXAMPLE = "mtprof flops profile.mtp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    reading.add_path(parser)
    reading.add_limit(parser, 20)


def run(args: argparse.Namespace) -> int:
    """Print the figures."""
    store = reading.open_recording(args.path).store
    if not store.flops.any():
        raise Failure("no FLOPs were recorded: profile(with_flops=True), or `mtprof run --flops`")
    rows = np.flatnonzero(store.flops > 0)
    labels = store.label[rows]
    count = len(store.labels)
    flops = _tree.sums(labels, store.flops[rows], count)
    spent = _tree.sums(labels, store.duration[rows], count)
    calls = np.bincount(labels, minlength=count)
    whole = int(flops.sum())
    print(f"{'FLOPs':>10} {'share':>6} {'time':>9} {'GFLOP/s':>8} {'calls':>9}  operator")
    for label in reading.first(np.argsort(-flops, kind="stable").tolist(), args.limit):
        if flops[label]:
            speed = flops[label] / spent[label] if spent[label] else float("nan")
            print(
                f"{flops[label]:>10.3g} {flops[label] / whole:>6.1%} {duration(int(spent[label])):>9} {speed:>8.3g} "
                f"{calls[label]:>9,}  {store.labels[label]}"
            )
    print(f"{whole:.4g} FLOPs in all")
    return 0
