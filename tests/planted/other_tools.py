"""Runs the planted problems under pyinstrument, line_profiler and scalene, and looks for the planted line in their output.

    python tests/planted/other_tools.py --python PYTHON [NAME ...] [--json FILE]

PYTHON is an interpreter that has the three tools and NumPy. A tool names a line if it is among the three of the program's own
file with the most time, and a function if the planted line lies in one of the three with the most time. pyinstrument tells
functions only. None of the tools says what the problem is, nor that a program has none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from run import _ONE_THREAD, Program, programs

_TOP = 3
_SOURCES = Path(__file__).parents[2] / "src"


def _run(python: str, command: list[str], program: Program, folder: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": str(_SOURCES), "TMPDIR": folder}
    return subprocess.run(
        [python, "-m", *command],
        cwd=program.path.parent,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def pyinstrument(python: str, program: Program, folder: str) -> str:
    """Where the functions with most time, those they call included, are; a sampler of calls."""
    out = os.path.join(folder, "out.json")
    _run(python, ["pyinstrument", "-r", "json", "-o", out, program.path.name], program, folder)
    with open(out) as stream:
        root = json.load(stream)["root_frame"]
    times: Counter[int] = Counter()
    for frame in _frames(root):
        if os.path.basename(frame.get("file_path") or "") == program.path.name and frame["function"] != "<module>":
            times[int(frame["line_no"])] += frame["time"]
    firsts = [line for line, _ in times.most_common(_TOP)]
    return "function" if any(_function_of(program, line) in firsts for line in program.lines) else "no"


def _frames(frame: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield frame
    for child in frame.get("children") or ():
        yield from _frames(child)


def _function_of(program: Program, line: int) -> int:
    """The first line of the function around a line."""
    lines = program.path.read_text().splitlines()
    indent = len(lines[line - 1]) - len(lines[line - 1].lstrip())
    for number in range(line, 0, -1):
        text = lines[number - 1]
        if text.lstrip().startswith("def ") and len(text) - len(text.lstrip()) < indent:
            return number
    return 0


def line_profiler(python: str, program: Program, folder: str) -> str:
    """Lines with most time, what they call included; every line is traced."""
    out = os.path.join(folder, "out.lprof")
    _run(python, ["kernprof", "-l", "-p", program.path.name, "-o", out, program.path.name], program, folder)
    shown = _run(python, ["line_profiler", "-u", "1e-6", out], program, folder).stdout
    times: Counter[int] = Counter()
    for match in re.finditer(r"^ *(\d+) +\d+ +([\d.]+) ", shown, re.MULTILINE):
        times[int(match[1])] += float(match[2])
    calls = {line for line in times if _only_calls_own(program, line)}
    return _named(program, [line for line, _ in times.most_common() if line not in calls])


def _only_calls_own(program: Program, line: int) -> bool:
    """Whether a line calls a function of the program's own, whose lines have the time, too."""
    lines = program.path.read_text().splitlines()
    own = re.findall(r"^ *def (\w+)", program.path.read_text(), re.MULTILINE)
    return any(re.search(rf"(?<!def )\b{name}\(", lines[line - 1]) for name in own) and line not in program.lines


def scalene(python: str, program: Program, folder: str) -> str:
    """Lines with most time, of Python and of native code; a sampler."""
    out = os.path.join(folder, "out.json")
    result = _run(python, ["scalene", "run", "--cpu-only", "-o", out, program.path.name], program, folder)
    if not os.path.exists(out):
        raise RuntimeError(result.stderr[-500:] or result.stdout[-500:])
    with open(out) as stream:
        files = json.load(stream)["files"]
    times: Counter[int] = Counter()
    for name, file in files.items():
        if os.path.basename(name) == program.path.name:
            for line in file["lines"]:
                times[line["lineno"]] += line["n_cpu_percent_python"] + line["n_cpu_percent_c"] + line.get("n_sys_percent", 0)
    return _named(program, [line for line, ns in times.most_common() if ns > 0])


def _named(program: Program, lines: list[int]) -> str:
    if set(program.lines) & set(lines[:_TOP]):
        return "line"
    functions = {_function_of(program, line) for line in lines[:_TOP]}
    return "function" if any(_function_of(program, line) in functions for line in program.lines) else "no"


TOOLS = {"pyinstrument": pyinstrument, "line_profiler": line_profiler, "scalene": scalene}


def main() -> int:
    """Print a row of a table for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python", required=True)
    parser.add_argument("--json", type=Path, help="file to which the outcomes are added")
    options = parser.parse_args()
    results = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for program in programs():
        if program.rule is None or (options.names and program.path.stem not in options.names):
            continue
        row = {}
        for name, tool in TOOLS.items():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    row[name] = tool(options.python, program, folder)
                except (OSError, RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
                    print(f"{program.path.stem}: {name}: {error}", file=sys.stderr)
                    row[name] = "did not run"
        results[program.path.stem] = row
        print(f"| {program.path.stem} | {' | '.join(row.values())} |", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
