"""Random programs, run in PyTorch and here, and compared statement by statement.

    /path/with/torch/python tools/fuzz_programs.py record FILE --count 10000 --seed 1    makes programs, notes what torch does
    python tools/fuzz_programs.py check FILE [--torch /path/with/torch/python]           runs them here, lists what differs
    python tools/fuzz_programs.py run --torch /path/with/torch/python --count 100000     both, in parts

Compared are value, dtype, shape, stride, gradient, shared memory, version, and what is refused by which exception. With
--torch, a program that differs is made as small as it gets and printed as Python. Differences are grouped by op, kind and
dtype. Those that are meant stand in fuzz_programs.txt beside this file, each with its reason; any other makes the command fail.
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from random_programs.compare import (
    CIRCUMSTANCES,
    INTO_EMPTY,
    INTO_OPERAND,
    INTO_OTHER_SHAPE,
    INTO_PART,
    NOT_FINITE,
    Difference,
    first_difference,
    op_of,
)
from random_programs.generate import make_program
from random_programs.machine import run_program
from random_programs.render import source
from random_programs.shrink import Torch, shrink

MEANT = Path(__file__).with_suffix(".txt")
BATCH = 500  # programs of one child of PyTorch's process
GRADIENTS = ("backward", "grad", "gradient")
SHRUNK = 1  # programs of a group that are made small


# ------------------------------------------------------------------ with PyTorch


def made_in_children(torch: Any, seed: int, start: int, count: int) -> Iterator[Any]:
    """Programs with their outcomes; None for one that ended its process: some kernels take instructions a processor lacks."""
    number, end = start, start + count
    while number < end:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                with os.fdopen(writing, "wb") as stream:
                    for at in range(number, min(number + BATCH, end)):
                        pickle.dump(make_program(torch, seed, at), stream)
                        stream.flush()
            except BaseException:  # nothing of the parent may be unwound here
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(writing)
        before = number
        with os.fdopen(reading, "rb") as stream:
            while True:
                try:
                    yield pickle.load(stream)
                except EOFError:
                    break
                number += 1
        if os.waitpid(child, 0)[1]:
            yield None
            number += 1
        elif number == before:
            raise RuntimeError("a child made no program")


def record(path: Path, count: int, seed: int, start: int) -> None:
    import torch

    torch.set_num_threads(1)
    crashed, began = 0, time.perf_counter()
    with gzip.GzipFile(path, "wb", mtime=0) as stream:
        stream.write(json.dumps({"torch": torch.__version__, "seed": seed, "start": start, "count": count}).encode() + b"\n")
        for made in made_in_children(torch, seed, start, count):
            if made is None:
                crashed += 1
            else:
                stream.write(json.dumps(made, separators=(",", ":")).encode() + b"\n")
    seconds = time.perf_counter() - began
    print(f"{count:,} programs in {seconds:.0f} s; {crashed} crashed torch and were left out", file=sys.stderr)


def serve() -> None:
    """Run programs that come in, one a line."""
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(run_program(torch, json.loads(line))), flush=True)


# ------------------------------------------------------------------ with this package


def recorded(path: Path) -> Iterator[list[Any]]:
    """[statements, outcomes, gradients] of each program in a file."""
    with gzip.open(path, "rb") as stream:
        next(stream)
        for line in stream:
            yield json.loads(line)


@dataclass(frozen=True)
class Meant:
    """A difference that is there on purpose: patterns of op, kind and dtype, and what must hold beside them."""

    op: str
    kind: str
    dtype: str
    words: tuple[str, ...]  # of the difference's text, such as those of an exception
    circumstances: frozenset[str]
    why: str

    @classmethod
    def parsed(cls, line: str) -> Meant:
        op, kind, dtype, when, why = (part.strip() for part in line.split("|"))
        conditions = [one.strip() for one in when.split(",") if one.strip()]
        words = tuple(one.strip('"') for one in conditions if one.startswith('"'))
        circumstances = frozenset(one for one in conditions if not one.startswith('"'))
        unknown = circumstances - CIRCUMSTANCES.keys()
        if unknown:
            raise ValueError(f"{MEANT.name}: no such circumstance: {', '.join(sorted(unknown))}")
        return cls(op, kind, dtype, words, circumstances, why)

    def covers(self, difference: Difference) -> bool:
        """A kind covers those that say more after a comma, of the memory that `out=` looks at or of values not finite."""
        kind = difference.kind
        kinds = {
            kind,
            *[kind.removesuffix(more) for more in (INTO_OPERAND, INTO_OTHER_SHAPE, INTO_PART, INTO_EMPTY, NOT_FINITE)],
        }
        return (
            fnmatch.fnmatchcase(difference.op.removesuffix(" (no_grad)"), self.op)
            and fnmatch.fnmatchcase(difference.dtype, self.dtype)
            and any(fnmatch.fnmatchcase(one, self.kind) for one in kinds)
            and all(words in difference.text for words in self.words)
            and self.circumstances <= difference.circumstances
        )


def meant() -> list[Meant]:
    """The differences of `fuzz_programs.txt`."""
    lines = MEANT.read_text().splitlines()
    return [Meant.parsed(line) for line in lines if line.strip() and not line.startswith("#")]


def is_meant(differences: Iterable[Meant], difference: Difference) -> bool:
    return any(one.covers(difference) for one in differences)


class Check:
    """Programs compared so far, and the differences among them in groups."""

    def __init__(self, torch: Any, theirs: Torch | None, messages: bool = False) -> None:
        self.torch, self.theirs, self.messages = torch, theirs, messages
        self.patterns = meant()
        self.programs = self.statements = self.listed = self.seconds = 0.0
        self.groups: dict[tuple[str, str], list[tuple[list[Any], Difference]]] = defaultdict(list)
        self.dtypes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.shrunk: Counter[tuple[str, str]] = Counter()

    def add(self, case: list[Any]) -> Difference | None:
        """Run a program; its first difference, unless it is one that is meant."""
        self.programs += 1
        began = time.perf_counter()
        found = first_difference(self.torch, *case, messages=self.messages)
        self.seconds += time.perf_counter() - began
        self.statements += len(case[0]) if found is None else found.at
        if found is None:
            return None
        if is_meant(self.patterns, found):
            self.listed += 1
            return None
        program, group = case[0], (found.op, found.kind)
        # Which op a gradient is wrong for is only known of a small program.
        if self.theirs is not None and self.shrunk[group] < (SHRUNK if found.op not in GRADIENTS else 20):
            self.shrunk[group] += 1
            program, found = shrink(self.torch, self.theirs, program, found)
            if found.op in GRADIENTS:
                ops = [op_of(one) for one in program if one["do"] not in ("input", "backward", "grad")]
                found = replace(found, op=f"{found.op} of {' '.join(ops)}")
            if is_meant(self.patterns, found):
                self.listed += 1
                return None
        group = (found.op, found.kind)
        self.groups[group].append((program, found))
        self.dtypes[group][found.dtype] += 1
        return found

    def report(self) -> str:
        lines = []
        for group, cases in sorted(self.groups.items(), key=lambda item: -len(item[1])):
            program, found = min(cases, key=lambda case: (len(case[0]), len(source(case[0]))))
            dtypes = " ".join(f"{dtype}:{count}" for dtype, count in self.dtypes[group].most_common())
            lines += [f"== {group[0]} | {group[1]} | x{len(cases)} | {dtypes}", source(program), f"-> {found.text}", ""]
        rate = self.programs / max(self.seconds, 1e-9)
        differing = sum(map(len, self.groups.values()))
        lines.append(
            f"{self.programs:,.0f} programs, {self.statements:,.0f} statements compared, {self.listed:,.0f} with a listed "
            f"difference, {differing:,} with another, in {len(self.groups)} groups; {rate:.0f} programs a second here"
        )
        return "\n".join(lines)


def ours() -> Any:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
    import mindtorch_v2

    return mindtorch_v2


def server(python: str | None) -> Torch | None:
    return Torch([python, __file__, "serve"]) if python else None


def check(path: Path, given: argparse.Namespace) -> int:
    checking = Check(ours(), server(given.torch), given.messages)
    kept = []
    for case in recorded(path):
        listed = checking.listed
        if checking.add(case) is None and checking.listed == listed:
            kept.append(case)
    print(checking.report())
    if given.keep:
        keep(path, given.keep, kept[: given.count])
    if checking.theirs is not None:
        checking.theirs.close()
    return 1 if checking.groups else 0


def keep(path: Path, corpus: Path, cases: list[Any]) -> None:
    """Write programs of a recording to another file, without the texts of exceptions."""
    with gzip.GzipFile(corpus, "wb", mtime=0) as stream, gzip.open(path, "rb") as recording:
        stream.write(next(recording))
        for program, outcomes, gradients in cases:
            for outcome in outcomes:
                if "error" in outcome:
                    outcome["error"][1] = ""
            stream.write(json.dumps([program, outcomes, gradients], separators=(",", ":")).encode() + b"\n")


def run(given: argparse.Namespace) -> int:
    """Record and check in parts, so that no file grows large."""
    checking = Check(ours(), server(given.torch), given.messages)
    part = 5000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.gz"
        for start in range(given.start, given.start + given.count, part):
            count = min(part, given.start + given.count - start)
            command = [given.torch, __file__, "record", str(path), "--seed", str(given.seed), "--start", str(start)]
            subprocess.run([*command, "--count", str(count)], check=True)
            for case in recorded(path):
                checking.add(case)
            if given.findings:
                given.findings.write_text(checking.report() + "\n")
    print(checking.report())
    assert checking.theirs is not None
    checking.theirs.close()
    return 1 if checking.groups else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "check", "run", "serve"))
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--torch", help="a Python that has torch, to make programs and to make them small")
    parser.add_argument("--messages", action="store_true", help="compare the text of exceptions, too")
    parser.add_argument("--findings", type=Path, help="write the report here after each part of a run")
    parser.add_argument("--keep", type=Path, help="write the first --count programs that did not differ to this file")
    given = parser.parse_args()
    if given.what in ("record", "check") and given.file is None:
        parser.error(f"{given.what} needs a file")
    if given.what == "run" and given.torch is None:
        parser.error("run needs --torch")
    if given.what == "record":
        record(given.file, given.count, given.seed, given.start)
    elif given.what == "serve":
        serve()
    else:
        return check(given.file, given) if given.what == "check" else run(given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
