"""Run a script under the profiler."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from .... import profiler
from ...._io.files import check_writable
from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.first_use import first_use_text
from ....config import RECORD_OPTIONS, SAMPLED, as_stack_option
from ... import reading, run_script, signals
from ...exit_codes import FINE, NOTHING, USAGE, Failure

EXAMPLE = "mtprof run --shapes --memory -o train.mtp train.py --epochs 1"

_ENDINGS = (".mtp", ".json", ".json.gz", ".html")
_HELP = {
    "stack": "Python calls and source lines",
    "memory": "allocations and frees",
    "shapes": "input shapes and types",
    "modules": "the nn.Module path of every op",
    "flops": "floating point operations",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument(
        "-o",
        "--output",
        default=None,
        metavar="FILE",
        help=".mtp saved profile, .json or .json.gz trace, .html report (default: the script's name with .mtp)",
    )
    for option, text in _HELP.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"record {text}")
    parser.add_argument("--all", action="store_true", help="record all of these")
    parser.add_argument(
        "--stack-samples",
        type=_rate,
        default=None,
        metavar="N",
        help="record the stacks of at most N ops a second in place of every Python call: their cost is bounded",
    )
    parser.add_argument(
        "--schedule",
        type=_schedule,
        default=None,
        metavar="W,W,A,R",
        help="wait, warm up, record, repeat: in steps of the optimizers; of several windows the last whole one is written",
    )
    parser.add_argument(
        "--listen",
        type=_port,
        default=None,
        metavar="PORT",
        help="serve a page about the run on http://127.0.0.1:PORT while it lasts (0: a free port)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--as-torch", action="store_true", help="`import torch` in the script means this package")
    which.add_argument("--torch", action="store_true", help="record the PyTorch of this environment, by torch.profiler")
    parser.add_argument(
        "--virtual-speedup",
        type=_speedup,
        default=None,
        metavar="OP=2x",
        help="record nothing; measure what a step would take if an op were faster, by making all else slower",
    )
    parser.add_argument(
        "--json", dest="written_json", action="store_true", help="tell what came of it in the last line of standard output"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no table at the end")
    parser.add_argument("script", help="script, or with -m module, to run")
    rest = parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    rest.required = False  # nor does a call without a script miss them


def run(args: argparse.Namespace) -> int:
    """Run the script, write the profile, and return the script's exit code."""
    if not args.module and os.path.isdir(args.script):
        raise Failure(f"{args.script!r} is a folder: name a script in it", USAGE)
    if not args.module and not os.path.isfile(args.script):
        raise Failure(f"there is no file {args.script!r}", USAGE)
    for option in (*_HELP, "all", "stack-samples", "schedule", "torch"):
        if f"--{option}" in args.args:
            print(f"mtprof: --{option} was given to the script: options of `mtprof run` stand before it", file=sys.stderr)
    if args.stack_samples is not None and (args.stack or args.torch):
        other = "--stack, which records every call" if args.stack else "--torch: PyTorch's profiler samples no stacks"
        raise Failure(f"--stack-samples does not go with {other}", USAGE)
    name = os.path.basename(args.script).removesuffix(".py")
    target = args.output or f"{name}.mtp"
    if not target.endswith(_ENDINGS):
        raise Failure(f"what format is {target!r}? Its name must end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}", USAGE)
    check_writable(target)  # before the script runs, not after an hour of training
    if args.as_torch:
        from ..... import as_torch

        as_torch.install()
    if args.virtual_speedup is not None:
        return _run_faster(args)
    schedule: _Schedule | None = args.schedule
    session = _session(args, schedule)
    with _page(args.listen):
        outcome = run_script.run_recorded(run_script.Target(args.script, args.args, args.module), session)
    if args.module and outcome.module_missing:
        raise Failure(f"cannot run {args.script!r}: {outcome.error}", USAGE)
    outcome.explain()
    with signals.ignored(signal.SIGTERM):  # the recording is written whole before the process ends
        why_empty = _why_empty(outcome, schedule)
        if outcome.recording is not None and not why_empty:
            write_profile(outcome.recording, target)
    if outcome.recording is not None and not args.quiet and not why_empty:
        _print_table(outcome.recording)
    if outcome.torch_missing:
        print(f"mtprof: {_TORCH_MISSING}", file=sys.stderr)
    written = shown(target)
    print(f"mtprof: {why_empty}; {written} was not written" if why_empty else f"mtprof: wrote {written}", file=sys.stderr)
    if args.written_json:
        _tell_program(outcome, target, why_empty)
    # A check that asked for a recording must not pass without one.
    return outcome.code or (NOTHING if why_empty and schedule is not None else FINE)


def _print_table(recording: run_script.Recording) -> None:
    """Print the ops that took longest, and what recording them and compiling them cost."""
    print(recording.key_averages().table(sort_by="self_cpu_time_total", row_limit=10), file=sys.stderr)
    print(recording.overhead() or _COST_NOT_KNOWN, file=sys.stderr)
    if told := first_use_text(recording._recording()):
        print(told, file=sys.stderr)


def _tell_program(outcome: run_script.Outcome, target: str, why_empty: str) -> None:
    """Print what was written, or why nothing was, as JSON."""
    figures = {"events": outcome.events, "steps": outcome.steps, "script_code": outcome.code, "why_empty": why_empty or None}
    if why_empty:
        print(dumps({"path": None, "bytes": 0, **figures}))
    else:
        reading.print_written(target, as_json=True, **figures)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)


def _page(port: int | None) -> contextlib.AbstractContextManager[object]:
    """The page about the run while it lasts, if one is asked for."""
    if port is None:
        return contextlib.nullcontext()
    from ....live.page import listen  # here, because few runs have one

    page = listen(port)
    print(f"mtprof: {page.url}", file=sys.stderr, flush=True)
    return page


class _Schedule(NamedTuple):
    """When to record: steps to wait, to warm up and to record, and how often that is repeated."""

    steps: tuple[int, int, int, int]
    action_at: Callable[[int], profiler.ProfilerAction]

    @property
    def before(self) -> int:
        """Steps of a cycle before the first that is recorded."""
        return self.steps[0] + self.steps[1]

    @property
    def cycle(self) -> int:
        """Steps of a cycle."""
        return self.before + self.steps[2]

    def needs(self, steps: int) -> int:
        """How many steps it takes to record one in the cycle that a script of `steps` steps ends in."""
        return steps // self.cycle * self.cycle + self.before + 1


_TORCH_MISSING = "torch is not installed here; with --as-torch, `import torch` in the script means this package"
_TORCH_UNRECORDED = (
    "the script imports torch, of which nothing is recorded: --torch records it by torch.profiler, and with --as-torch "
    "`import torch` means this package"
)
_COST_NOT_KNOWN = "What PyTorch's profiler costs is not known."


def _session(args: argparse.Namespace, schedule: _Schedule | None) -> run_script.Session:
    """The profiler that the arguments ask for."""
    if schedule is not None and not schedule.steps[1]:
        print("mtprof: without warm-up the first step that is recorded may take longer than usual", file=sys.stderr)
    options: dict[str, Any] = {keyword: getattr(args, option) or args.all for option, keyword in RECORD_OPTIONS.items()}
    if args.stack_samples is not None:
        options |= {"with_stack": SAMPLED, "stacks_per_second": args.stack_samples}
    if args.torch:
        from ...run_torch import TorchSession  # here, because few runs are of PyTorch

        return TorchSession(options, None if schedule is None else schedule.steps)
    if not args.as_torch:
        from ...run_torch import imports_torch

        if imports_torch(args.script, args.module) and importlib.util.find_spec("torch") is not None:
            print(f"mtprof: {_TORCH_UNRECORDED}", file=sys.stderr, flush=True)
    if schedule is None:
        return run_script.OwnSession(options)
    return run_script.OwnSession(options, schedule.action_at, _after_optimizer_steps)


def _why_empty(outcome: run_script.Outcome, schedule: _Schedule | None) -> str:
    """Why no file is to be written, since it might replace a good one; "" if something was recorded."""
    if schedule is not None and (outcome.steps < schedule.before or not outcome.events):
        return (
            f"nothing was recorded: the schedule needs {schedule.needs(outcome.steps)} steps of an optimizer or more, "
            f"and there were {outcome.steps}"
        )
    if (outcome.code and not outcome.events) or (outcome.torch_missing and outcome.only_python):
        return "nothing was recorded before the script ended"
    return "" if outcome.events else "nothing was recorded: the script ran no op"


def write_profile(prof: run_script.Recording, path: str) -> None:
    """Write a profile in the format of the path's ending."""
    if path.endswith((".json", ".json.gz")):
        prof.export_chrome_trace(path)
    elif path.endswith(".html"):
        prof.export_html(path)
    else:
        prof.overhead()  # measured now, so that the file tells what recording cost on this machine
        prof.save(path)


def _run_faster(args: argparse.Namespace) -> int:
    """Run the script with an op made faster in every third step, and print what that does to a step."""
    from ...virtual_speedup import FEWEST_STEPS, SpeedupSession  # here, because few runs are of this kind

    if args.torch:
        raise Failure("--virtual-speedup is for ops of this package, not for those of PyTorch", USAGE)
    pattern, factor = args.virtual_speedup
    session = SpeedupSession(pattern, factor, _after_optimizer_steps)
    outcome = run_script.run_recorded(run_script.Target(args.script, args.args, args.module), session)
    outcome.explain()
    found = session.outcome()
    if not session.met:
        print(f"mtprof: no op named {shown(pattern)} ran", file=sys.stderr)
        return outcome.code or NOTHING
    if found is None:
        print(f"mtprof: {session.steps} steps of an optimizer are too few: {FEWEST_STEPS} are needed", file=sys.stderr)
        return outcome.code or NOTHING
    if args.written_json:
        print(dumps({"op": pattern, "factor": factor, **found._asdict()}))
    else:
        print(f"mtprof: with {shown(pattern)} {factor:g}x faster, {found}", file=sys.stderr)
    return outcome.code


def _rate(text: str) -> float:
    try:
        return as_stack_option(SAMPLED, float(text))[1]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of stacks a second, more than 0 and at most 1e9") from None


def _speedup(text: str) -> tuple[str, float]:
    name, _, factor = text.rpartition("=")
    try:
        value = float(factor.removesuffix("x"))
    except ValueError:
        value = 0.0
    if not name or not 1 < value < 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no op and factor above 1, such as aten::gelu=2x")
    return name, value


def _schedule(text: str) -> _Schedule:
    try:
        wait, warmup, active, repeat = (int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not four numbers wait,warmup,active,repeat, such as 2,2,10,1") from None
    try:
        with warnings.catch_warnings():  # `run` says it in its own words
            warnings.simplefilter("ignore", UserWarning)
            action_at = profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat)
    except (ValueError, AssertionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r}, as wait,warmup,active,repeat: {error}") from None
    return _Schedule((wait, warmup, active, repeat), action_at)


def _after_optimizer_steps(function: Callable[[], None]) -> run_script.Handle:
    from .....optim.optimizer import call_after_steps

    return call_after_steps(function)
