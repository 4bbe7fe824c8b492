"""Record a small training run and show what can be done with it."""

from __future__ import annotations

import argparse
import os

from ...._io.terminal import shown
from ....analysis.first_use import first_use_text
from ... import reading, run_script
from .run import write_profile

EXAMPLE = "mtprof demo -o build/demo"

_SCRIPT = os.path.join(os.path.dirname(run_script.__file__), "demo_script.py")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("-o", "--output", default="mtprof-demo", help="folder to write to (default mtprof-demo)")
    reading.add_written_json(parser)


def run(args: argparse.Namespace) -> int:
    """Record the run, write its profile, trace and report, and print the commands that read them."""
    os.makedirs(args.output, exist_ok=True)
    options = dict.fromkeys(("with_stack", "record_shapes", "profile_memory", "with_modules", "with_flops"), True)
    session = run_script.OwnSession(options)
    outcome = run_script.run_recorded(run_script.Target(_SCRIPT), session)
    outcome.reraise()
    prof = session.profile
    paths = {kind: os.path.join(args.output, f"profile{kind}") for kind in (".mtp", ".json.gz", ".html")}
    for path in paths.values():
        write_profile(prof, path)
    if args.written_json:
        reading.print_written(
            paths[".mtp"], as_json=True, trace=os.path.abspath(paths[".json.gz"]), report=os.path.abspath(paths[".html"])
        )
        return outcome.code
    print()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    print(prof.overhead())
    if told := first_use_text(prof._recording()):
        print(told)
    print(f"\nopen {shown(paths['.html'])} in a browser, or:")
    for command in ("table", "tree --by module", "memory", "flops", "advice"):
        print(f"  mtprof {command} {shown(paths['.mtp'])}")
    return outcome.code
