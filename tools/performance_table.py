"""Writes the tables of docs/performance.md from the samples of a benchmark run.

make bench TORCH_PYTHON=/path/to/python BENCH_ARGS="--json build/bench.json --store"
python tools/performance_table.py build/bench.json
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
GROUPS = ("profiler", "dispatch", "ops", "train", "models")
SHOWN_ABOVE = {"dispatch": 1.3, "ops": 3.0}  # of single ops only those slower than this are listed

# row -> the ratio to torch that is the aim
AIMS = {
    "record.add": 0.6, "record.linear": 0.7, "record.train_step": 0.5, "record.train_step.all": 1.0, "record.add.shapes": 0.8,
    "record.add.memory": 0.9, "record.add.modules": 1.0, "record.add.all": 1.0, "record.mm.flops": 1.0,
    "record.linear.shapes": 1.0, "record.modules_nested": 1.0, "record.add.stack_depth10": 2.0,
    "record.add.stack_calls10": 2.0, "scope.off": 0.1, "scope.on": 0.25, "schedule.wait.step": 0.2, "session.empty": 0.3,
    "cold.table@*": 0.02, "result.events@*": 0.02, "result.key_averages@*": 0.02, "cold.export@*": 0.15,
    "cold.export_gz@*": 0.15, "stack.stop@*": 0.1, "stack.key_averages5@*": 0.1, "stack.export_json@*": 0.1,
    "stack.export_stacks@*": 0.1, "mem.recording@*": 0.2, "mem.stop@*": 0.2, "mem.table@*": 0.05, "mem.events@*": 0.05,
    "mem.key_averages@*": 0.05, "mem.export@*": 0.1, "start.import": 0.2, "start.table": 0.15, "step.mlp_small t1": 0.7,
    "step.mlp t1": 1.0, "step.lenet t1": 0.8, "step.resnet_block t1": 1.0, "step.gpt t1": 1.0, "step.lstm t1": 1.1,
    "step.* t2": 1.2, "kernel.*": 1.5, "model.* t1": 1.0, "model.* t2": 1.2,
}  # fmt: skip


def aim_of(name: str) -> float | None:
    """The aim of a row, None if it has none."""
    return next((aim for pattern, aim in AIMS.items() if fnmatch.fnmatchcase(name, pattern)), None)


def number(value: float | None) -> str:
    """A figure with four digits, or all those of whole numbers from 1,000 on."""
    if value is None:
        return "n/a"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def line(row: dict[str, Any]) -> str:
    aim = aim_of(row["name"])
    ratio = "" if row["ratio"] is None else f"{row['ratio']:.3f}"
    if aim is not None and row["ratio"] is not None and row["ratio"] > aim:
        ratio = f"**{ratio}**"
    spread = "" if not row["spread"] else f"{row['spread'][0]:.2g} to {row['spread'][1]:.2g}"
    cells = (
        row["name"],
        row["unit"],
        number(row["base"]["value"]),
        number(row["host"]["value"]),
        ratio,
        spread,
        "" if aim is None else f"{aim:g}",
    )
    return "| " + " | ".join(cells) + " |"


def table(rows: list[dict[str, Any]]) -> str:
    return "\n".join(
        [
            "| row | unit | torch | here | ratio | in single rounds | aim |",
            "|---|---|---:|---:|---:|---|---:|",
            *map(line, rows),
        ]
    )


def mean(rows: list[dict[str, Any]]) -> float:
    """The geometric mean of the ratios, without those of rows that are only informative."""
    logs = [math.log(row["ratio"]) for row in rows if row["ratio"] and row["kind"] != "info"]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def block(group: str, rows: list[dict[str, Any]]) -> str:
    """The text of one group: its table, or of single ops their mean and the slow ones."""
    of_group = [row for row in rows if row["group"] == group]
    if group not in SHOWN_ABOVE:
        return table(of_group)
    limit = SHOWN_ABOVE[group]
    slow = sorted((row for row in of_group if (row["ratio"] or 0) > limit), key=lambda row: -row["ratio"])
    level = sum(bool(row["ratio"] and row["ratio"] <= 1) for row in of_group)
    return (
        f"Geometric mean of {len(of_group)} ratios: **{mean(of_group):.2f}**; {level} rows at or below torch. "
        f"Those above {limit:g}:\n\n{table(slow)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", nargs="+", type=Path, help="files that bench.py --json wrote; later ones win")
    args = parser.parse_args()
    rows = list({row["name"]: row for path in args.samples for row in json.loads(path.read_text())["rows"]}.values())
    text = PAGE.read_text()
    for group in GROUPS:
        if not any(row["group"] == group for row in rows):
            continue  # it was not measured: the page keeps what it has
        begin, end = f"<!-- {group}: begin -->", f"<!-- {group}: end -->"
        if begin not in text or end not in text:
            sys.exit(f"{PAGE} has no block for {group}")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{block(group, rows)}\n{end}{rest.split(end)[1]}"
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
