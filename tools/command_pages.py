"""Writes docs/commands: for each command of mtprof its usage and what it prints for the demo's profile.

    python tools/command_pages.py            # records the demo anew and writes the pages and the picture
    python tools/command_pages.py --check    # only compares the usage on the pages with --help

The picture of the report needs Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "commands"
IMAGES = ROOT / "docs" / "images"
DEMO = "build/demo"
PROFILE = f"{DEMO}/profile.mtp"
MOST_LINES, MOST_WIDTH = 24, 160

# command -> (what to know about it, arguments of the example whose output is shown)
TEXTS: dict[str, tuple[str, list[str] | None]] = {
    "run": (
        "Profiles a script as it is. The script sees its own `sys.argv`, is `__main__`, and ends with its own exit code; the "
        "profile is written also when it raises or is interrupted with Ctrl-C. All threads are recorded. `--as-torch` lets "
        "`import torch` in the script mean this package. With `--schedule` a step is one `step()` of an optimizer. The ending "
        "of `-o` chooses the format: `.mtp` (the saved profile, from which all other commands work), `.json`, `.json.gz` or "
        "`.html`.",
        None,
    ),
    "table": (
        "The table of `key_averages()`, with torch's columns and sort keys, of a saved profile, of a trace of this package or "
        "of one that PyTorch wrote. Below it stands what recording itself cost, if that is known.",
        ["table", PROFILE, "-n", "8"],
    ),
    "events": (
        "Single events in order of start or by length, as text or one JSON object a line.",
        ["events", PROFILE, "--name", "aten::addmm", "--slowest", "-n", "8"],
    ),
    "tree": (
        "Calls with the same path added up, or what each `nn.Module` took, forward and backward apart (recorded with "
        "`--modules` or `with_modules=True`).",
        ["tree", PROFILE, "--by", "module"],
    ),
    "memory": (
        "What was allocated, the peak, and which ops and lines had allocated what was held then (recorded with `--memory` or "
        "`profile_memory=True`).",
        ["memory", PROFILE, "-n", "8"],
    ),
    "flops": (
        "Floating point operations by operator and the speed they were done at (recorded with `--flops` or "
        "`with_flops=True`).",
        ["flops", PROFILE, "-n", "8"],
    ),
    "advice": (
        "Rules look for what usually costs time or memory: waiting for the data loader, values read from tensors inside the "
        "loop, many tiny ops, copies, mixed floating types, history or gradients that nobody uses, an optimizer that goes "
        "parameter by parameter, memory that grows, pauses of the garbage collector. Each finding names its evidence, the "
        "line of your code if stacks were recorded, and an estimate of the gain.",
        ["advice", PROFILE],
    ),
    "report": (
        "One HTML file with everything: overview, operators, call tree and flame graph, timeline, memory, modules, advice. It "
        "needs neither server nor network.\n\n![The report of the demo](../images/report.png)",
        ["report", PROFILE, "-o", f"{DEMO}/report.html"],
    ),
    "diff": (
        "Compares the steps of two recordings. Ops are aligned by name, input shapes and module path. For each the time per "
        "step that a quarter of the steps stay below is compared, with a bootstrap interval over blocks of neighbouring steps; "
        "the intervals hold for all ops together. What the whole machine changed by is taken out first and shown. At least "
        "five steps are needed on each side: `mtprof run --schedule`. `--fail-over 5%` makes it a check for CI.",
        ["diff", PROFILE, PROFILE],
    ),
    "convert": (
        "Writes a recording for another tool: `chrome` (also for Perfetto's page), `perfetto` (its native format), "
        "`speedscope`, `collapsed` stacks for flame graph scripts, `pprof`, `csv`, `parquet` (extra `parquet`), `html`, "
        "`saved`.",
        ["convert", PROFILE, "--to", "speedscope", "-o", f"{DEMO}/profile.speedscope.json"],
    ),
    "validate": (
        "Whether the file is whole and well formed, and whether what is recorded makes sense: children inside their parents, "
        "self times that add up, memory that never falls below zero. Exit code 1 and one line for each problem.",
        ["validate", PROFILE],
    ),
    "demo": ("Records a small training run, writes its profile, trace and report, and says how to look at them.", None),
}


def mtprof(*arguments: str) -> str:
    """What the command prints, cut to what fits on a page."""
    env = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run([sys.executable, "-m", "mindtorch_v2.profiler", *arguments], cwd=ROOT, env=env, text=True,
                          capture_output=True, check=True)
    lines = [line[:MOST_WIDTH].rstrip() for line in done.stdout.strip("\n").splitlines()]
    return "\n".join(lines[:MOST_LINES] + (["..."] if len(lines) > MOST_LINES else []))


def usage(command: str) -> str:
    """The command's --help as a fenced block."""
    return f"```text\n{mtprof(command, '--help')}\n```"


def page(command: str) -> str:
    text, example = TEXTS[command]
    parts = [f"# mtprof {command}", text, usage(command)]
    if example:
        parts += [f"    mtprof {' '.join(example)}", f"```text\n{mtprof(*example)}\n```"]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    lines = ["# Commands", "", "`mtprof` comes with the package; `python -m mindtorch_v2.profiler` is the same. The output on "
             "these pages is of `mtprof demo -o build/demo`, made by `make docs`.", ""]
    lines += [f"- [{command}]({command}.md)" for command in TEXTS]
    return "\n".join(lines) + "\n"


def take_picture() -> None:
    """A screenshot of the demo's report."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1280, "height": 860}, device_scale_factor=1)
        shown.goto((ROOT / DEMO / "profile.html").as_uri())
        shown.wait_for_selector("main section", state="visible")
        shown.wait_for_timeout(500)
        shown.screenshot(path=IMAGES / "report.png")
        browser.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that the usage on the pages is that of the commands")
    args = parser.parse_args()
    if args.check:
        stale = [command for command in TEXTS if usage(command) not in (PAGES / f"{command}.md").read_text()]
        print("stale pages: " + ", ".join(stale) if stale else "the pages are up to date")
        return 1 if stale else 0
    mtprof("demo", "-o", DEMO)
    PAGES.mkdir(exist_ok=True)
    for command in TEXTS:
        (PAGES / f"{command}.md").write_text(page(command))
    (PAGES / "README.md").write_text(index())
    take_picture()
    return 0


if __name__ == "__main__":
    sys.exit(main())
