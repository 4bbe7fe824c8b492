"""Writes the results of tests/parity into docs/compatibility.md, between the marks `parity: begin` and `parity: end`.

    python tools/parity_table.py            # runs every case, then writes the block
    python tools/parity_table.py --check    # runs nothing: does the block say what the lists of tests/parity say?

If a case disagrees with gaps.txt, nothing is written: the list has to be corrected first.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PARITY = ROOT / "tests" / "parity"
CASES = PARITY / "cases"
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- parity: begin -->", "<!-- parity: end -->"

# Prefix of the files of a group -> what its cases test.
GROUPS = {
    "runtime": "results, dtypes, printed text, exceptions and gradients of tensors, ops, modules, losses, optimizers and "
    "their schedules, data loaders, random numbers, saved files",
    "profiler": "sessions and schedules, events, averages, the text table, Chrome traces, stacks, memory, FLOPs, threads, "
    "arguments that are wrong",
    "calltree": "which ops a call is made of, forward and backward, with input shapes and sequence numbers: single ops, "
    "layers, optimizers, whole training steps",
    "smoke": "one case of each kind",
}


class Count(NamedTuple):
    """Numbers of cases of a group, by result."""

    cases: int
    departures: int
    gaps: int

    @property
    def agree(self) -> int:
        return self.cases - self.departures - self.gaps


class Gap(NamedTuple):
    """A line of gaps.txt, and the comment above it."""

    case: str
    reason: str
    heading: str


def names() -> list[str]:
    """`file::case` of every recorded observation."""
    goldens = sorted((CASES / "golden").glob("*.json"))
    return [f"{path.stem}::{case}" for path in goldens for case in json.loads(path.read_text())]


def listed(path: Path) -> list[Gap]:
    """The lines of gaps.txt or departures.txt. The first comment is about the file itself."""
    gaps, heading = [], ""
    for line in path.read_text().splitlines()[1:]:
        if line.startswith("#"):
            heading = line[1:].strip()
        elif line.strip():
            case, reason = line.split(maxsplit=1)
            gaps.append(Gap(case, reason, heading))
    return gaps


def counts(every: Iterable[str], departures: set[str], gaps: set[str]) -> dict[str, Count]:
    """The numbers of each group, from all cases and those that differ."""
    every = list(every)
    cases = {group: [name for name in every if name.split("::")[0].split("_")[0] == group] for group in GROUPS}
    assert sum(map(len, cases.values())) == len(every), "a file of cases belongs to no group: add it to GROUPS"
    return {
        group: Count(len(own), len(departures.intersection(own)), len(gaps.intersection(own))) for group, own in cases.items()
    }


def block() -> str:
    """The text between the marks, from the recorded observations and the two lists."""
    gaps = listed(PARITY / "gaps.txt")
    departures = {line.case for line in listed(PARITY / "departures.txt")}
    groups = counts(names(), departures, {gap.case for gap in gaps})
    total = Count(*map(sum, zip(*groups.values(), strict=True)))
    lines = ["| group | what its cases look at | cases | agree | differ on purpose | gaps |", "|---|---|---:|---:|---:|---:|"]
    for group, text in GROUPS.items():
        count = groups[group]
        name = f"`{group}_*`" if count.cases > 10 else f"`{group}`"
        lines.append(f"| {name} | {text} | {count.cases:,} | {count.agree:,} | {count.departures} | {count.gaps} |")
    lines += [f"| all | | {total.cases:,} | {total.agree:,} | {total.departures} | {total.gaps} |", "", "The gaps:"]
    for heading in dict.fromkeys(gap.heading for gap in gaps):
        lines += ["", f"{heading.rstrip('.:')}:", ""]
        mine = [gap for gap in gaps if gap.heading == heading]
        for reason in dict.fromkeys(gap.reason for gap in mine):
            which = ", ".join(f"`{gap.case.replace('::case_', '::')}`" for gap in mine if gap.reason == reason)
            lines.append(f"- {reason}: {which}")
    return "\n".join(lines)


def parts(page: str) -> tuple[str, str, str]:
    """The page before the block, the block, and the page after it."""
    before, _, rest = page.partition(f"{BEGIN}\n")
    inside, _, after = rest.partition(f"\n{END}")
    if not (rest and after):
        raise SystemExit(f"{PAGE.name} has no lines {BEGIN} and {END}")
    return before, inside, after


def load_harness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parity_harness", PARITY / "parity.py")
    assert spec and spec.loader
    harness = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(harness)
    return harness


def differing() -> set[str]:
    """Runs every case that is not in departures.txt; the names of those that differ from torch."""
    harness = load_harness()
    departures = harness.departures(CASES)
    wrong = set()
    for path in sorted((CASES / "golden").glob("*.json")):
        golden = json.loads(path.read_text())
        seen = harness.observe(CASES / f"{path.stem}.py", "mindtorch_v2")
        for case, want in golden.items():
            name = f"{path.stem}::{case}"
            if name not in departures and harness.score(want, seen.get(case, seen.get("__file__"))) < harness.COUNTS_PASS:
                wrong.add(name)
        print(f"{path.stem:32s} {sum(n.startswith(f'{path.stem}::') for n in wrong):3d} of {len(golden)} differ", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that the block on the page is up to date")
    args = parser.parse_args()
    before, inside, after = parts(PAGE.read_text())
    if args.check:
        print("up to date" if inside == block() else f"{PAGE.name} is stale: run tools/parity_table.py")
        return inside != block()
    known, wrong = {gap.case for gap in listed(PARITY / "gaps.txt")}, differing()
    for name in sorted(wrong - known):
        print(f"differs and is not in gaps.txt: {name}")
    for name in sorted(known - wrong):
        print(f"works and is in gaps.txt: {name}")
    if wrong != known:
        return 1
    PAGE.write_text(f"{before}{BEGIN}\n{block()}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
