"""Writes docs/commands: for each command of mtprof its usage and what it prints for the demo's profile.

    python tools/command_pages.py            # records the demo anew and writes the pages and the pictures
    python tools/command_pages.py --check    # only compares the texts and the usage on the pages

The pictures (tools/pictures.py) need Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

from mindtorch_v2.profiler.cli import command as commands
from mindtorch_v2.profiler.cli.main import main as mtprof_main

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "commands"
SCRIPT = "examples/train_gpt.py"
DEMO = "build/demo"
PROFILE = f"{DEMO}/profile.mtp"
CHANGED = f"{DEMO}/train_gpt_relu.py"  # the same with another activation, for `mtprof diff`
RUNS = (1, 2, 3, 4)  # of each
CUT = f"{DEMO}/cut.json"  # the beginning of the trace, for `mtprof repair`
MOST_LINES = 24
# Wide enough for usage lines; one BLAS thread, because two that wait for each other on a busy machine distort times.
CEILINGS = f"{DEMO}/ceilings.json"
ENVIRONMENT = {"COLUMNS": "120", "OPENBLAS_NUM_THREADS": "1", "MTPROF_CEILINGS": str(ROOT / CEILINGS)}

# For `mtprof advice`: two things that cost time.
WASTEFUL = f"{DEMO}/wasteful.py"
WASTEFUL_TEXT = """\
import mindtorch_v2 as torch
from mindtorch_v2 import nn


class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, number):
        return torch.randn(3, 32, 32).sort(dim=2).values.flatten(), number % 10


model = nn.Sequential(nn.Linear(3072, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters())
for photos, labels in torch.utils.data.DataLoader(Photos(), batch_size=16):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(photos), labels).backward()
    optimizer.step()
    mirrored = photos.view(-1, 3, 32, 32).flip(3).flatten(1)
    if model(mirrored).argmax(1).eq(model(photos).argmax(1)).all():
        print("the same of mirrored photos")
"""
RECORD_WASTEFUL = ["run", "-q", "--all", "--schedule", "1,1,12,1", "-o", f"{DEMO}/wasteful.mtp", WASTEFUL]

COMMANDS = commands.names()
# command -> (what to know about it, arguments of the example whose output is shown)
TEXTS: dict[str, tuple[str, list[str] | None]] = {
    "run": (
        "Profiles a script as it is. The script sees its own `sys.argv`, is `__main__`, and ends with its own exit code; the "
        "profile is written also when it raises or is ended by Ctrl-C or SIGTERM; if nothing was recorded, no file is "
        "written, and a line says so. All threads are recorded. `--as-torch` lets `import torch` in the script mean this "
        "package; `--torch` records the PyTorch that is installed, by its own `torch.profiler`. "
        "`--stack-samples 1000` records where at most a thousand ops a second were called from and traces no Python call, so "
        "that stacks cost at most a twentieth of the time. With "
        "`--schedule` a step is one `step()` of an optimizer; of several windows the last with the most finished steps is "
        "written (of a script that fails, the one it ended in). `--listen PORT` serves a page about the run while it lasts, "
        "see [Operate](../operate.md). The ending of `-o` chooses the format: `.mtp` "
        "(the saved profile, from which all other commands work), `.json`, `.json.gz` or `.html`.",
        None,
    ),
    "table": (
        "The table of `key_averages()`, with torch's columns and sort keys, of a saved profile, of a trace of this package or "
        "of one that PyTorch wrote. Below it stands what recording itself cost, if that is known.",
        ["table", PROFILE, "-n", "8"],
    ),
    "events": (
        "Single events in order of start or by length, as text or one JSON object a line. The columns are start, duration, "
        "thread, and the name, set in by its depth in the call tree.",
        ["events", PROFILE, "--name", "aten::addmm", "--slowest", "-n", "8"],
    ),
    "tree": (
        "Calls with the same path added up, or what each `nn.Module` took, forward and backward apart (recorded with "
        "`--modules` or `with_modules=True`).",
        ["tree", PROFILE, "--by", "module"],
    ),
    "memory": (
        "What was in use at the start, at the peak and at the end, and which ops and lines had allocated what was held at the "
        "peak (recorded with `--memory` or `profile_memory=True`). The figures are those of the report: with what was there "
        "before the recording, as far as it is known. A saved profile with shapes and stacks knows all that its ops touched, "
        "and what memory was used for; of other recordings only that much is known as was freed meanwhile.",
        ["memory", PROFILE, "-n", "8"],
    ),
    "device": (
        "What ran on a GPU or NPU, from a trace of PyTorch or a recording of this package: how busy it was, occupancy and "
        "tensor cores where the trace tells, kernels with launch geometry and the op that launched them, bandwidth of "
        "copies and how many of them block the host, how long work waited between launch and start; whether device, host or "
        "communication limits. Steps are divided into computing, communication, communication that nothing is computed "
        "beside, and free time; then by what they waited for: the device's work first, then what the host did while the device "
        "was idle. Gaps in the device's work name the host op that caused them. `profiler.analysis.device` has the same as "
        "functions of a store.",
        None,
    ),
    "flops": (
        "Floating point operations by operator and the speed they were done at: as recorded with `--flops` or "
        "`with_flops=True`, or worked out from input shapes, as for PyTorch's traces, which have no FLOPs. "
        "Calls that launched kernels count with the kernels' time.",
        ["flops", PROFILE, "-n", "8"],
    ),
    "advice": (
        "Rules look for what usually costs time or memory: waiting for the data loader, Python code between ops, loops over "
        "rows and ops that are repeated, values read from tensors inside the loop, many tiny ops, copies, conversions, tensors "
        "that grow, mixed floating types, a device that idles, unused history or gradients, an optimizer that goes "
        "parameter by parameter, memory that grows, pauses of the garbage collector. Each finding names its evidence, the "
        "line of your code if stacks were recorded, and an estimate of the gain.",
        ["advice", f"{DEMO}/wasteful.mtp"],
    ),
    "report": (
        "One HTML file with everything: overview, operators, call tree and flame graph, timeline, memory, modules, advice. It "
        "needs neither server nor network; a recording of a device has a section about it, too. What memory was used for "
        "(the last picture) is known of profiles, live or "
        "saved, that were recorded with shapes, memory and stacks; traces do not tell. The address of the page keeps what is "
        "chosen, so that a link leads to the same view.\n\n"
        "Colors that may touch are told apart with every kind of color blindness (smallest delta E of CIE 1976, as those see "
        "it who lack one kind of cone; 10 and more is asked for by a test):\n\n"
        "| sight | light: families of ops | light: phases, categories | dark: families of ops | dark: phases, categories "
        "| shades of a comparison |\n|---|---|---|---|---|---|\n"
        "| all | 23.0 | 25.5 | 20.8 | 14.4 | 14.1 |\n| protan | 13.9 | 11.5 | 11.6 | 11.0 | 12.6 |\n"
        "| deutan | 18.7 | 11.9 | 12.3 | 11.2 | 14.6 |\n| tritan | 11.4 | 11.1 | 11.4 | 11.0 | 14.1 |\n\n"
        "Text has a contrast of 4.5 or more on every one of them, and of 5.2 or more on the page. `make interop` has axe-core "
        "check every tab in light and dark: it finds no rule broken.",
        ["report", PROFILE, "-o", f"{DEMO}/profile.html"],
    ),
    "diff": (
        "Compares the steps of two recordings, or of several before a change with several after it. Ops are aligned by name, "
        "input shapes and module path; `(between events)` is the time of a step in no op and no range: in Python, or waiting. "
        "For each, the lower quartile of its time per step is compared; the intervals hold for "
        "all ops together. A change that all ops share (a slower machine) is shown in the second line and taken out of those "
        "below it; the step's own time, in the first, is as measured. Steps are those that `profile.step()` or "
        "`mtprof run --schedule` marked; where nothing marks them, from the end of one step of an optimizer to that of the "
        "next. At least five are needed in each recording.\n\n"
        "With one recording on each side the interval is a bootstrap over blocks of neighboring steps, widened by how far the "
        "median op moved; it holds with the common change and without it, since one recording does not tell a slower machine "
        "from slower code. With one or two kinds of op there is nothing to compare with, and only a factor of two or more "
        "counts. Steps of one run do not tell how much runs differ: on a machine with other work, 5 to 40 %. With "
        "several on each side (`before*.mtp --to after*.mtp`, recorded in turns) the recordings of one side show it, by a "
        "t-test whose variances are drawn towards that of the median op. For a check in CI, `--fail-over 5%`, record three to "
        "five of each.\n\n"
        "On a virtual machine whose speed moved by up to 40 % between recordings of 0.3 s, with one kernel slowed down by "
        "10 %: one recording of each side named it in 1 of 20 tries, five of each in 2 of 20, twenty-five in 3 of 4, "
        "fifty in 2 of 2; nothing else was ever named, nor any difference between runs of the same code.",
        ["diff", *(f"{DEMO}/gelu{n}.mtp" for n in RUNS), "--to", *(f"{DEMO}/relu{n}.mtp" for n in RUNS), "-n", "10"],
    ),
    "convert": (
        "Writes a recording for another tool: `chrome` (also for Perfetto's page), `perfetto` (its native format), "
        "`speedscope`, `collapsed` stacks for flame graph scripts, `pprof`, `csv`, `parquet` (extra `parquet`), `html`, "
        "`saved`, `ascend` and `ascend-db` (folders for Ascend's tools, as text files and as databases).",
        ["convert", PROFILE, "--to", "speedscope", "-o", f"{DEMO}/profile.speedscope.json"],
    ),
    "lines": (
        "The program's own code, with figures beside each line (recorded with `--stack` or `with_stack=True`). `total` is "
        "the time while the line was on the stack, `self` while it was the innermost line of the program: whatever a library "
        "does belongs to the line that called it. `Python` is the part of `self` between calls, in Python itself: it is "
        "placed on the first loop between the two calls around it, else on the first line between them, else on the line of "
        "the later call. `backward` is the time of the backward nodes of the line's ops, which ran in `loss.backward()`. "
        "`memory` is what was allocated, `calls` what the line called itself.\n\n"
        "The program's own are files outside of this package, of torch, of installed packages and of the standard library. A "
        "recording notes where each file was and a digest of it; the text is read when it is shown, and a file that is "
        "missing or has changed since is called so. Code that was in no file, such as a notebook's cell, is kept in the "
        "recording. Traces of PyTorch know functions, not lines: their figures stand where a function is defined.\n\n"
        "![The section Source of the report](../images/source.png)",
        ["lines", PROFILE, "--file", "train_gpt.py"],
    ),
    "ceilings": (
        "Measures what this machine can do: how fast it copies memory (256 MB, and 256 KB in a cache) and multiplies matrices "
        "of 1024 x 1024, each by the fastest of repeated runs, in a few seconds. The figures are kept in a file "
        "(`$MTPROF_CEILINGS`, else in the user's cache folder), where `mtprof roofline` and the report find them. Set "
        "`OPENBLAS_NUM_THREADS` as in the program that they are for.",
        ["ceilings", "-o", CEILINGS],
    ),
    "replay": (
        "Writes one recorded call of an op (recorded with `--shapes` or `record_shapes=True`) as a script that makes tensors "
        "of the same shapes, strides and types, calls the op and prints its time. The script needs nothing of this package: "
        "`python addmm.py torch` calls PyTorch's op, `python addmm.py mindtorch_v2` that of this package. The event is the "
        "name of an op, of which the longest call is taken, or an id of `mtprof events --json` or `mtprof sql`. Values are "
        "random, and zero where they are whole numbers, so that indices are valid; texts and the types of tensors in "
        "lists are not recorded. Of the 48 ops of the demo, 48 scripts run with this package and with PyTorch 2.13.",
        ["replay", PROFILE, "aten::addmm", "-o", f"{DEMO}/addmm.py"],
    ),
    "what-if": (
        "Replays a recording with some of its ops faster. Without `--op` it lists the critical path: what a step would be "
        "shorter by if it took no time. With `--op` a step is computed anew: work of a device follows its launch and the "
        "work before it in its stream, a host call that waits for a device follows what it waited for, a thread that works "
        "while the main thread waits in Python holds it up. An op counts with all that it called and launched; the cost of "
        "recording is part of the times.\n\n"
        "`mtprof run --virtual-speedup aten::gelu=2x train.py` checks such a prediction in a real run, as a causal profiler "
        "does: it records nothing, and in every third step makes all *but* the op twice as slow, by waiting after it, and "
        "halves the time. In another third everything is slowed down, the op as well: the two differ by what the faster op "
        "saves. What it costs to listen to ops is measured and taken off both; that a program runs slower after a wait is in "
        "both. The last third runs as it is. The kinds "
        "take turns, so that a machine whose speed changes misleads none; the result is the lower quartile of each, with an "
        "interval. The thread that runs the script is slowed down, not others and not devices. Check with a control first: "
        "`--virtual-speedup nothing=2x` is refused, since no such op ran, but an op that takes next to no time should give "
        "next to 0 %.",
        ["what-if", PROFILE, "--op", "aten::gelu", "--op", "aten::gelu_backward"],
    ),
    "roofline": (
        "FLOPs beside the bytes that an op must move: those of its inputs, once more for those it writes to, and of the "
        "memory it allocates for its result (recorded with `--shapes --memory`, best with `--flops`). Few FLOPs per byte, "
        "and memory is the limit; many, and computing is. `of limit` says how much of the machine's ceiling was reached, as "
        "measured by [`mtprof ceilings`](ceilings.md); more than 100 % of the memory's means that the tensors were in a "
        "cache. Views move nothing and are left out.\n\n"
        "![The section Roofline of the report](../images/roofline.png)",
        ["roofline", PROFILE, "--ceilings", CEILINGS, "-n", "10"],
    ),
    "sql": (
        "Any question about a recording as a statement of DuckDB (extra `sql`: `pip install 'mindtorch_v2[sql]'`). Two tables "
        "are there: `events`, a row for each event with `id` and `parent_id` to join them by, `name`, `kind`, `step`, "
        "`module`, `device`, `stack` and times in nanoseconds; and `averages`, the rows of `mtprof table`. `--columns` lists "
        "their columns. Statements see these tables and nothing else: no files, no network.\n\n"
        "The ops that took longest inside each module:\n\n"
        "    mtprof sql profile.mtp \"select module, name, sum(self_ns) / 1e6 as ms from events where kind = 'op' \\\n"
        '        group by all order by ms desc limit 10"\n\n'
        "How much of each call of `aten::linear` its children took:\n\n"
        '    mtprof sql profile.mtp "select p.id, sum(c.duration_ns) / any_value(p.duration_ns) as inside from events c \\\n'
        "        join events p on c.parent_id = p.id where p.name = 'aten::linear' group by p.id\"",
        None,
    ),
    "validate": (
        "Whether the file is whole and well formed, and whether what is recorded makes sense: children inside their parents, "
        "self times that add up, memory that never falls below zero. Exit code 1 and one line for each problem.",
        ["validate", PROFILE],
    ),
    "repair": (
        "Reads a file that was cut off or damaged as far as it goes, and writes what was found as a whole saved profile. It "
        "says what was recovered and what was lost. The other commands read such files, too.",
        ["repair", CUT, "-o", f"{DEMO}/repaired.mtp"],
    ),
    "top": (
        "Looks at a process that runs, once a second: steps a second, and what each op took since the last look. The process "
        "must be armed: started with `MTPROF=arm`, or by `profiler.arm()` in it. It counts only while it is looked at, in "
        "constant memory; Ctrl-C ends both. See [Operate](../operate.md).",
        None,
    ),
    "attach": (
        "Has an armed process (`MTPROF=arm`, or `profiler.arm()`) record itself, all threads, for so many steps or seconds. "
        "The process writes the file, a saved profile with steps, and the command ends when it is complete, with its name on "
        "standard output. If the command is ended, the recording is, too. See [Operate](../operate.md).",
        None,
    ),
    "history": (
        "One line for each recording of a folder, in the order in which they were recorded, or of the commits that a range "
        "of git has (`--git v1.0..main`: files named by a commit, such as `4f2c1e9.mtp`): the time of a step (the lower "
        "quartile, as `mtprof diff` compares it), ops in a step, the peak of memory, and whether the step changed beyond "
        "doubt since the one before, with the op that changed most. `--html` writes a page with charts, which needs neither "
        "script nor network. See [Performance in CI](../ci.md).",
        None,
    ),
    "ranks": (
        "One answer from the recordings of all ranks of a job: which rank is slow and why (its ops, more work, its "
        "data loader, late starts), which link (by pairs and groups), which steps and what they waited for, computing "
        "beside exposed communication, and the clocks of all hosts on one with the error stated. A recording is a "
        "saved profile or a trace of PyTorch with NCCL, of a rank that the recording itself or the file's name tells "
        "(`rank3.mtp`). Files that are none, damaged ones and ranks that come twice are left out by name. `report` "
        "writes a page with a heat map of ranks and steps, `merge` one trace on one clock for Perfetto, `digest` one "
        "small file for another time or place, `diff` compares two jobs. Reading takes all cores, a Dask or Ray "
        "cluster, or the processes of `mpiexec`; the answer is the same to the byte. See [Many ranks](../ranks.md) "
        "and, for sizes and costs, [Scale](../scale.md).",
        None,
    ),
    "mcp": (
        "Serves the commands that read recordings over the Model Context Protocol (extra `mcp`: `pip install "
        "'mindtorch_v2[mcp]'`), on standard input and output: a tool for each, with the same answers as `--json`. Only "
        "recordings below `--folder` can be read, and nothing can be written. See "
        "[For programs](../json.md#for-agents-and-editors).",
        None,
    ),
    "push": (
        "Sends the statistics of a recording to Prometheus' Pushgateway (`prometheus`: a PUT of its text) or an OpenTelemetry "
        "collector (`otlp`: a POST of OTLP's JSON), or the profile itself to what reads pprof (`pprof`: a POST of the gzipped "
        "file). Without `--to` it is printed. A job that runs sends its own: see [Operate](../operate.md).",
        None,
    ),
    "demo": (
        "Records a small training run, writes its profile, trace and report, and says how to look at them. It needs no "
        "checkout, unlike `make demo`.",
        None,
    ),
}

# command -> the text above its example
ABOUT_EXAMPLES = {
    "advice": f"Of the loop below, recorded with `mtprof {' '.join(RECORD_WASTEFUL)}`:\n\n```python\n{WASTEFUL_TEXT}```",
    "diff": "Four runs of 30 steps of the demo with `nn.GELU()`, in turns with four of the same with `nn.ReLU()`; `--html` "
    "writes a page with the same and a flame graph of both, blue where it became faster and orange where slower:\n\n"
    "![Flame graph of the difference](../images/difference.png)",
    "repair": "The first half of the demo's trace:",
    "report": "`make demo` writes the report in these pictures, `build/demo/report.html`.\n\n"
    "![Overview: steps, time by kind](../images/report.png)\n\n![Timeline](../images/timeline.png)\n\n"
    "![Memory by category](../images/memory.png)\n\n"
    "Calls, the largest first; below, callers and callees of one op:\n\n![Flame graph](../images/calls.png)\n\n"
    "![Callers and callees of aten::linear](../images/callers.png)\n\nThe device of a small trace of a GPU:\n\n"
    "![How busy the device was, steps, kernels](../images/device.png)\n\nOf a saved profile:",
}


def run(*command: str) -> str:
    """The standard output of a Python program, run from the root of the checkout."""
    process = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env={**os.environ, **ENVIRONMENT}, text=True, stdout=subprocess.PIPE, check=True
    )
    return process.stdout


def output(*arguments: str) -> str:
    """The output of a command, cut to MOST_LINES."""
    lines = [line.rstrip() for line in run("-m", "mindtorch_v2.profiler", *arguments).strip("\n").splitlines()]
    return "\n".join(lines[:MOST_LINES] + (["..."] if len(lines) > MOST_LINES else []))


def usage(command: str) -> str:
    """The text of `mtprof command --help`."""
    printed = io.StringIO()
    with mock.patch.dict(os.environ, ENVIRONMENT), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        mtprof_main([command, "--help"])
    return printed.getvalue().strip()


def words(text: str) -> str:
    """A usage text without its layout, which differs between versions of Python: `-o FILE, --output FILE` of 3.11 is
    `-o, --output FILE` since 3.13, and lines break elsewhere."""
    text = re.sub(r"(--?[\w-]+) (\S+), (--[\w-]+) \2(?=\s)", r"\1, \3 \2", text)
    return re.sub(r"\s", "", text)


def stale() -> list[str]:
    """Commands without a page, or with another text or usage on it."""
    outdated = []
    for command in COMMANDS:
        path = PAGES / f"{command}.md"
        text = path.read_text() if path.exists() else ""
        written = (TEXTS[command][0], ABOUT_EXAMPLES.get(command, ""))
        shown = re.findall(r"```text\n(.*?)\n```", text, re.DOTALL)
        if words(usage(command)) not in map(words, shown) or any(part not in text for part in written):
            outdated.append(command)
    return outdated


def page(command: str) -> str:
    text, example = TEXTS[command]
    parts = [f"# mtprof {command}", text, f"```text\n{usage(command)}\n```"]
    if example:
        parts += [ABOUT_EXAMPLES[command]] if command in ABOUT_EXAMPLES else []
        parts += [f"    mtprof {' '.join(example)}", f"```text\n{output(*example)}\n```"]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    text = (
        "`mtprof` comes with the package; `python -m mindtorch_v2.profiler` is the same. It reads saved profiles (`.mtp`), "
        "Chrome traces of this package, and traces of PyTorch (`.json`, `.json.gz`). The output on these pages is of the "
        "files that `make demo` writes, with `OPENBLAS_NUM_THREADS=1`; `make docs` makes the pages."
    )
    parts = [f"# Commands\n\n{text}\n"]
    for group in commands.groups():
        lines = (f"- [{name}]({name}.md): {commands.summary(commands.load(name))}\n" for name in group.modules)
        parts.append(f"## {group.title}\n\n{''.join(lines)}")
    return "\n".join(parts)


def record() -> None:
    """Run the demo, and record the profiles for `mtprof advice` and `mtprof diff`."""
    run("-m", "mindtorch_v2.profiler", "ceilings")
    run(SCRIPT, "--out", DEMO)
    whole = (ROOT / DEMO / "trace.json").read_bytes()
    (ROOT / CUT).write_bytes(whole[: len(whole) // 2])
    (ROOT / WASTEFUL).write_text(WASTEFUL_TEXT)
    run("-m", "mindtorch_v2.profiler", *RECORD_WASTEFUL)
    shutil.copytree(ROOT / "examples" / "data", ROOT / DEMO / "data", dirs_exist_ok=True)
    (ROOT / CHANGED).write_text((ROOT / SCRIPT).read_text().replace("nn.GELU()", "nn.ReLU()"))
    for number in RUNS:
        for script, name in ((SCRIPT, "gelu"), (CHANGED, "relu")):
            run(
                "-m",
                "mindtorch_v2.profiler",
                "run",
                "-q",
                "--shapes",
                "--modules",
                "--schedule",
                "6,2,30,1",
                "-o",
                f"{DEMO}/{name}{number}.mtp",
                script,
                "--steps",
                "40",
                "--out",
                f"{DEMO}/compared",
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="only check that texts and usage on the pages are those of the commands"
    )
    args = parser.parse_args()
    if args.check:
        print("stale pages: " + ", ".join(stale()) if stale() else "the pages are up to date")
        return 1 if stale() else 0
    record()
    PAGES.mkdir(exist_ok=True)
    for command in COMMANDS:
        (PAGES / f"{command}.md").write_text(page(command))
    (PAGES / "README.md").write_text(index())
    run("tools/pictures.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
