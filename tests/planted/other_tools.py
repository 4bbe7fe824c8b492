"""Runs the planted problems under pyinstrument, line_profiler and scalene, and looks for the planted line in their output.

`run.py --others` does it in an environment of its own, build/planted. None of these tools says what a problem is, nor that a
program has none, so what counts is whether a reader of their output is led to the place. A tool leads to the line if it is
among the three lines of the program's own file with the most time (scalene: or the most memory), without imports and
definitions; it leads to the function if the line lies in the function of one of the three. pyinstrument tells functions only.
For the programs without a problem there is nothing to compare: each of the tools shows its three lines there, too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from run import _ONE_THREAD, Program

_TOP = 3
_SOURCES = Path(__file__).parents[2] / "src"
_FOLDER = Path(__file__).parents[2] / "build" / "planted"


def _run(python: str, command: list[str], program: Program, folder: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": str(_SOURCES), "TMPDIR": folder}
    return subprocess.run(
        [python, "-m", *command],
        cwd=program.path.parent,
        env=environment,
        text=True,
        capture_output=True,
        timeout=900,
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
    """Lines with most time, of Python and of native code, or most memory; a sampler."""
    out = os.path.join(folder, "out.json")
    result = _run(python, ["scalene", "run", "-o", out, program.path.name], program, folder)
    if not os.path.exists(out):
        raise RuntimeError(result.stderr[-500:] or result.stdout[-500:])
    with open(out) as stream:
        files = json.load(stream)["files"]
    times: Counter[int] = Counter()
    allocated: Counter[int] = Counter()
    for name, file in files.items():
        if os.path.basename(name) == program.path.name:
            for line in file["lines"]:
                allocated[line["lineno"]] += line["n_malloc_mb"]
                times[line["lineno"]] += line["n_cpu_percent_python"] + line["n_cpu_percent_c"] + line.get("n_sys_percent", 0)
    time = [line for line, share in times.most_common() if share > 0]
    memory = [line for line, megabytes in allocated.most_common() if megabytes > 0]
    return min(_named(program, time), _named(program, memory), key=("line", "function", "no").index)


def _named(program: Program, lines: list[int]) -> str:
    text = program.path.read_text().splitlines()
    lines = [line for line in lines if not re.match(r"\s*(import|from|def|class|@)\b", text[line - 1])]
    if set(program.lines) & set(lines[:_TOP]):
        return "line"
    functions = {_function_of(program, line) for line in lines[:_TOP]}
    return "function" if any(_function_of(program, line) in functions for line in program.lines) else "no"


TOOLS = {"pyinstrument": pyinstrument, "line_profiler": line_profiler, "scalene": scalene}


def _environment() -> str:
    """The interpreter of an environment with the tools, which is made at the first use."""
    python = _FOLDER / "bin" / "python"
    if not python.exists():
        venv.create(_FOLDER, with_pip=True)
        needs = ["numpy", "orjson", "ml_dtypes", *TOOLS]
        subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *needs], check=True)
    return str(python)


def compare(chosen: list[Program], results: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """What each tool leads to, by program and tool; a row of a table is printed for each. Known results stay."""
    python = _environment()
    print(f"| program | {' | '.join(TOOLS)} |\n|---|{'---|' * len(TOOLS)}")
    for program in chosen:
        if program.rule is None:
            continue
        row = results.setdefault(program.path.stem, {})
        for name, tool in TOOLS.items():
            if name not in row:
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        row[name] = tool(python, program, folder)
                    except (OSError, RuntimeError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
                        print(f"{program.path.stem}: {name}: {error}", file=sys.stderr)
                        row[name] = "did not run"
        print(f"| {program.path.stem} | {' | '.join(row[name] for name in TOOLS)} |", flush=True)
    for outcome in ("line", "function", "no", "did not run"):
        counts = (sum(row[name] == outcome for row in results.values()) for name in TOOLS)
        print(f"| {outcome} | {' | '.join(map(str, counts))} |")
    return results
