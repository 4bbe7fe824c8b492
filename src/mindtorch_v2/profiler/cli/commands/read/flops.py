"""FLOPs by operator, and how fast they were done."""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.findings import duration
from ....store import tree
from ....store.store import EventStore
from ... import reading
from ...exit_codes import FINE, Failure
from ...flops_from_shapes import flops_from_shapes

EXAMPLE = "mtprof flops profile.mtp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    reading.add_limit(parser, 20)
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print FLOPs, time and speed by operator, most FLOPs first."""
    store = reading.open_recording(args.path).store
    amounts = known_flops(store)
    rows = np.flatnonzero(amounts > 0)
    labels = store.label[rows]
    count = len(store.labels)
    flops = tree.sums(labels, amounts[rows], count)
    by_kernels = store.total_device_ns[rows] > 0 if store.has_device_rows else np.zeros(len(rows), np.bool_)
    # Where an op ran on a device, its kernels took the time: the host only launched them.
    spent = tree.sums(labels, np.where(by_kernels, store.total_device_ns[rows], store.duration[rows]), count)
    on_device = np.bincount(labels[by_kernels], minlength=count) > 0
    calls = np.bincount(labels, minlength=count)
    whole = int(flops.sum())
    order = [label for label in np.argsort(-flops, kind="stable").tolist() if flops[label]]
    listed = reading.first(order, args.limit)
    if args.json:
        rows_of = {"flops": flops, "time_ns": spent, "calls": calls}
        operators = [
            {
                "name": store.labels[label],
                **{name: int(column[label]) for name, column in rows_of.items()},
                "time_of": "kernels" if on_device[label] else "host",
            }
            for label in listed
        ]
        recorded = bool(store.flops.any())
        print(dumps({"flops": whole, "recorded": recorded, "operators": operators, "operators_in_all": len(order)}, indent=1))
        return FINE
    print(f"{'FLOPs':>10} {'share':>6} {'time':>9} {'GFLOP/s':>8} {'calls':>9}  operator")
    for label in listed:
        speed = flops[label] / spent[label] if spent[label] else float("nan")
        print(
            f"{flops[label]:>10.3g} {flops[label] / whole:>6.1%} {duration(int(spent[label])):>9} {speed:>8.3g} "
            f"{calls[label]:>9,}  {shown(store.labels[label])}"
        )
    if on_device.any():
        print("Times are those of kernels where a call launched any.")
    origin = "" if store.flops.any() else ", worked out from the input shapes in the file"
    print(f"{whole:.4g} FLOPs in all{origin}")
    return FINE


def known_flops(store: EventStore) -> NDArray[np.int64]:
    """FLOPs of every row: as recorded, else computed from input shapes. A Failure says why there are none."""
    if store.flops.any():
        return store.flops
    if not (store.shapes >= 0).any():
        raise Failure(
            "the file has neither FLOPs nor input shapes to work them out from: record with "
            "profile(record_shapes=True), or `mtprof run --flops`"
        )
    flops = flops_from_shapes(store)
    if not flops.any():
        raise Failure("no FLOPs: there is no formula for any op of which the file has input shapes")
    return flops
