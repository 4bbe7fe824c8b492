"""Records programs with one known problem each, and programs without, and compares the advice with what was planted.

    python tests/planted/run.py [NAME ...] [--runs N] [--keep FOLDER] [--json FILE] [--others]

In a problem, the line that should be named ends with `# planted: RULE`. A program passes if the advice is that rule at that
line and nothing else; a clean program passes if there is none. The exit status is 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
# With more, threads of a product wait for each other whenever the machine runs something else.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_MARK = re.compile(r"# planted: (\w+)$")


class Program(NamedTuple):
    """A program, the rule that should fire, if any, and the lines that it should name."""

    path: Path
    rule: str | None
    lines: tuple[int, ...]


class Outcome(NamedTuple):
    """What came of one recording: whether the problem was found and its line named, and what else was said."""

    found: bool
    named: bool
    others: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the advice is what it should be."""
        return self.found and self.named and not self.others


def programs() -> list[Program]:
    """All programs: the problems in order of name, then the clean ones."""
    found = []
    for path in [*sorted((HERE / "problems").glob("*.py")), *sorted((HERE / "clean").glob("*.py"))]:
        marks = [
            (number, match[1])
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if (match := _MARK.search(line)) is not None
        ]
        rules = {rule for _, rule in marks}
        assert len(rules) == (path.parent.name == "problems"), f"{path}: one rule is planted in a problem, none elsewhere"
        found.append(Program(path, next(iter(rules), None), tuple(line for line, _ in marks)))
    return found


def advice_on(program: Program, recording: Path) -> list[dict[str, object]]:
    """Run a program under `mtprof run --all` and return the findings of `mtprof advice`."""
    environment = {**os.environ, **_ONE_THREAD}
    command = [sys.executable, "-m", "mindtorch_v2.profiler"]
    subprocess.run(
        [*command, "run", "--quiet", "--all", "-o", str(recording), program.path.name],
        cwd=program.path.parent,
        env=environment,
        check=True,
        capture_output=True,
    )
    shown = subprocess.run(
        [*command, "advice", "--json", str(recording)],
        cwd=program.path.parent,
        env=environment,
        check=True,
        capture_output=True,
    )
    findings: list[dict[str, object]] = json.loads(shown.stdout)["findings"]
    return findings


def judged(program: Program, findings: list[dict[str, object]]) -> Outcome:
    """Compare findings with what was planted."""
    places = {f"{program.path.name}({line})" for line in program.lines}
    fitting = [finding for finding in findings if finding["rule"] == program.rule]
    others = tuple(f"{finding['rule']} at {finding['where']}" for finding in findings if finding["rule"] != program.rule)
    if program.rule is None:
        return Outcome(True, True, others)
    wrong = tuple(f"{finding['rule']} at {finding['where']}" for finding in fitting if finding["where"] not in places)
    return Outcome(bool(fitting), len(wrong) < len(fitting), (*others, *(wrong if len(wrong) < len(fitting) else ())))


def main() -> int:
    """Run the chosen programs and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runs", type=int, default=1, help="recordings of each program")
    parser.add_argument("--keep", type=Path, help="folder for the recordings")
    parser.add_argument("--json", type=Path, help="file for the outcome of each program")
    parser.add_argument("--others", action="store_true", help="run pyinstrument, line_profiler and scalene in place of mtprof")
    options = parser.parse_args()
    chosen = [program for program in programs() if not options.names or program.path.stem in options.names]
    if options.others:
        from other_tools import compare  # here, because it imports this module

        known = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
        outcomes_of_others = compare(chosen, known)
        if options.json:
            options.json.write_text(json.dumps(outcomes_of_others, indent=1) + "\n")
        return 0
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for program in chosen:
            name = program.path.stem
            outcomes = []
            for _ in range(options.runs):
                findings = advice_on(program, folder.resolve() / f"{name}.mtp")
                outcomes.append(judged(program, findings))
                if not outcomes[-1].passed:
                    told = "; ".join(f"{each['rule']} at {each['where']} ({each['share']})" for each in findings) or "no advice"
                    print(f"  {name}: planted {program.rule} at {program.lines}, advice: {told}", flush=True)
            passed = sum(outcome.passed for outcome in outcomes)
            print(
                f"{'held  ' if passed == options.runs else 'broken'} {name} ({program.rule}): {passed} of {options.runs}",
                flush=True,
            )
            results[name] = {
                "rule": program.rule,
                "runs": options.runs,
                "found": sum(outcome.found for outcome in outcomes),
                "named": sum(outcome.named for outcome in outcomes),
                "passed": passed,
                "others": sorted({other for outcome in outcomes for other in outcome.others}),
            }
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    broken = sum(result["passed"] != options.runs for result in results.values())
    print(f"{len(chosen)} programs, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
