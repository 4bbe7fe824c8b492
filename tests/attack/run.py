"""Carries out every attack and prints a line for each: held or broken, with its figure.

    python tests/attack/run.py [--small] [--only FAMILY[.NAME] ...] [--write]

`--write` puts the lines into docs/reliability.md; the exit status is 1 if one is broken.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from attacks import all_attacks, carry_out

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="the sizes of `make test`")
    parser.add_argument("--only", nargs="+", default=[], metavar="FAMILY[.NAME]")
    parser.add_argument("--write", action="store_true", help="put the lines into docs/reliability.md")
    options = parser.parse_args()
    rows, broken = [], 0
    for one in all_attacks():
        if options.only and one.family not in options.only and f"{one.family}.{one.name}" not in options.only:
            continue
        begun = time.monotonic()
        outcome = carry_out(one, one.small if options.small else one.large, one.timeout_s)
        word = "held" if outcome.held else "broken"
        broken += not outcome.held
        print(
            f"{word:6} {one.family}.{one.name}: {one.promise} | {outcome.text} ({time.monotonic() - begun:.0f} s)", flush=True
        )
        first = outcome.text.splitlines()[0] if outcome.text else ""
        rows.append(f"| {one.promise} | {word} | {first} |")
    if options.write:
        text = PAGE.read_text()
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        old = rest.partition(END)[0].strip().splitlines()[2:]
        fresh = {row.split(" | ")[0]: row for row in rows}
        kept = [fresh.pop(row.split(" | ")[0], row) for row in old]  # with --only, the other lines stay
        table = "\n".join(["| promise | | tries |", "|---|---|---|", *kept, *fresh.values()])
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
    print(f"{len(rows)} attacks, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
