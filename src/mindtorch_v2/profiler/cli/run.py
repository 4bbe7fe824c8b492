"""mtprof run: an unmodified script under the profiler."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .. import profiler
from ..profiler import profile
from . import run_script
from .exit_codes import USAGE, Failure

EXAMPLE = "mtprof run --shapes --memory -o train.mtp train.py --epochs 1"

_OPTIONS = {"stack": "with_stack", "memory": "profile_memory", "shapes": "record_shapes", "modules": "with_modules",
            "flops": "with_flops"}
_HELP = {
    "stack": "Python calls and source lines",
    "memory": "allocations and frees",
    "shapes": "input shapes and types",
    "modules": "the nn.Module path of every op",
    "flops": "floating point operations",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("-o", "--output", default=None, metavar="FILE",
                        help=".mtp saved profile, .json or .json.gz trace, .html report (default: the script's name with .mtp)")
    for option, text in _HELP.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"record {text}")
    parser.add_argument("--all", action="store_true", help="record all of these")
    parser.add_argument("--schedule", type=_schedule, default=None, metavar="W,W,A,R",
                        help="wait, warm up, record, repeat: in steps, which are counted by the optimizers' step()")
    parser.add_argument("--as-torch", action="store_true", help="`import torch` in the script means this package")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no table at the end")
    parser.add_argument("script", help="script, or with -m module, to run")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")


def run(args: argparse.Namespace) -> int:
    """Run the script, write the profile, and return the script's exit code."""
    if not args.module and not os.path.isfile(args.script):
        raise Failure(f"there is no file {args.script!r}", USAGE)
    name = os.path.basename(args.script).removesuffix(".py")
    target = args.output or f"{name}.mtp"
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):  # said now, not after an hour of training
        raise Failure(f"there is no folder {folder!r} to write to")
    if args.as_torch:
        from ... import as_torch

        as_torch.install()
    options = {given: getattr(args, option) or args.all for option, given in _OPTIONS.items()}
    outcome = run_script.recorded(
        run_script.Target(args.script, args.args, args.module),
        options,
        args.schedule,
        None if args.schedule is None else _after_optimizer_steps,
    )
    outcome.explain()
    write_profile(outcome.profile, target)
    if not args.quiet:
        print(outcome.profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=10), file=sys.stderr)
        print(outcome.profile.overhead(), file=sys.stderr)
    print(f"mtprof: wrote {target}", file=sys.stderr)
    return outcome.code


def write_profile(prof: profile, path: str) -> None:
    """Write a profile in the format that the name asks for."""
    if path.endswith((".json", ".json.gz")):
        prof.export_chrome_trace(path)
    elif path.endswith(".html"):
        prof.export_html(path)
    else:
        prof.overhead()  # so that the file tells what recording cost here
        prof.save(path)


def _schedule(text: str) -> Any:
    try:
        wait, warmup, active, repeat = (int(part) for part in text.split(","))
        return profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat)
    except (ValueError, AssertionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not four numbers wait,warmup,active,repeat: {error}") from None


def _after_optimizer_steps(function: Any) -> Any:
    from ...optim.optimizer import call_after_steps

    return call_after_steps(function)
