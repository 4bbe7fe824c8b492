"""msprof-analyze as a program, and what it writes."""

from __future__ import annotations

import csv
import html
import re
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

TOOL = Path(sys.executable).with_name("msprof-analyze")
COLUMNS = ("Step", "Index", "Computing", "Communication", "Overlapped")


def analyze(*arguments: object) -> str:
    """Run a command; returns what it said."""
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def cluster_steps(output: Path) -> list[tuple[Any, ...]]:
    """Step, rank, computing, communication and what of it is overlapped, of a cluster_analysis_output."""
    if (output / "cluster_analysis.db").exists():
        with closing(sqlite3.connect(output / "cluster_analysis.db")) as database:
            return database.execute(
                'SELECT step, "index", computing, communication, overlapped FROM ClusterStepTraceTime'
            ).fetchall()
    with open(output / "cluster_step_trace_time.csv") as file:
        return [tuple(row[name] for name in COLUMNS) for row in csv.DictReader(file)]


def sheets(book: Path) -> dict[str, list[list[str]]]:
    """The cells of each sheet of a workbook, by rows; cells without a value are left out."""
    found = {}
    with zipfile.ZipFile(book) as parts:
        shared = re.findall(r"<si><t[^>]*>(.*?)</t></si>", parts.read("xl/sharedStrings.xml").decode(), re.S)
        texts = [html.unescape(text) for text in shared]
        names = re.findall(r'<sheet name="([^"]*)"', parts.read("xl/workbook.xml").decode())
        for number, name in enumerate(names, 1):
            sheet = parts.read(f"xl/worksheets/sheet{number}.xml").decode()
            found[name] = [
                [texts[int(value)] if 't="s"' in kind else value for kind, value in re.findall(r"<c ([^>]*)><v>(.*?)</v>", row)]
                for row in re.findall(r"<row.*?</row>", sheet, re.S)
            ]
    return found
