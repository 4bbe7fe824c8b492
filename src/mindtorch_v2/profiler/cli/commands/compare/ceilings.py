"""Measure how fast this machine copies memory and multiplies.

The figures are kept in a file, which `mtprof roofline` and the report use as ceilings.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis import ceilings
from ... import reading
from ...exit_codes import FINE, Failure

EXAMPLE = "mtprof ceilings"

_BUSY = 0.5  # programs that want to run, for each processor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument(
        "-o",
        "--output",
        default=None,
        metavar="FILE",
        help="file to keep them in (default: $MTPROF_CEILINGS, or the cache folder)",
    )
    parser.add_argument("--show", action="store_true", help="show those that were measured before, and measure nothing")
    reading.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, write the file and print the figures."""
    path = args.output or str(ceilings.default_path())
    if args.show:
        try:
            found = ceilings.load(path)
        except ValueError as error:
            raise Failure(str(error)) from None
        if found is None:
            raise Failure(f"no ceilings in {path}: `mtprof ceilings` measures them")
    else:
        _warn_if_busy()
        found = ceilings.measure()
        ceilings.save(found, path)
    if args.json:
        print(dumps({**found.to_dict(), "ridge": found.ridge, "path": path}, indent=1))
        return FINE
    measured = datetime.fromtimestamp(found.measured, UTC).strftime("%Y-%m-%d %H:%M UTC")
    print(f"{shown(found.machine)}; measured {measured}{_threads(found.threads)}")
    for text, value, unit in (
        ("copying memory", found.copy_bytes_s, "GB/s"),
        ("copying within a cache", found.cached_bytes_s, "GB/s"),
        ("products of float32 matrices", found.float32_flops_s, "GFLOP/s"),
        ("products of float64 matrices", found.float64_flops_s, "GFLOP/s"),
    ):
        print(f"{value / 1e9:>10.4g} {unit:<8} {text}")
    print(f"below {found.ridge:.3g} FLOPs per byte moved, memory is the limit")
    print(f"kept in {shown(path)}")
    return FINE


def _threads(threads: str) -> str:
    return f", with {shown(threads)} thread{'' if threads == '1' else 's'} for matrix products" if threads else ""


def _warn_if_busy() -> None:
    """Say that other programs run, which take from what is measured; a machine's load is not known everywhere."""
    load, processors = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1
    if load >= _BUSY * processors:
        print(
            f"mtprof: the machine is busy (load {load:.1f}, {processors} processors): "
            "measured when it is idle, ceilings may be higher",
            file=sys.stderr,
        )
