"""Making a program that differs as small as it gets."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from typing import Any

from .compare import Difference, first_difference
from .machine import Statement

Run = tuple[list[Any], dict[str, Any]]


class Torch:
    """PyTorch in a process of its own, which runs programs; started again where one of them ends it."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.process: subprocess.Popen[str] | None = None

    def run(self, program: list[Statement]) -> Run | None:
        """(outcomes, gradients), or None if the program crashed PyTorch."""
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(program) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.wait()
            self.process = None
            return None
        return tuple(json.loads(line))  # type: ignore[return-value]

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()


def simpler_lists(items: list[Any]) -> Iterator[list[Any]]:
    for at in range(len(items)):
        yield items[:at] + items[at + 1 :]


def simpler_statements(statement: Statement, described: list[Any] | None) -> Iterator[Statement]:
    """The same statement with less in it; `described` is what its result was, if it was a tensor."""
    if statement["do"] != "input" and described is not None:
        dtype, shape = described[0], described[1]
        made = {"id": statement["id"], "do": "input", "shape": shape, "dtype": dtype, "seed": 1}
        yield made
        if described[3]:
            yield {**made, "grad": True}
    writes_out = statement["do"] == "out"  # it is another statement without the keyword
    for key in ("layout", "style", "grad", "no_grad", "kwargs", "seed"):
        if statement.get(key) and not (key == "kwargs" and writes_out):
            yield {name: one for name, one in statement.items() if name != key}
    for key in statement.get("kwargs", {}):
        if not (key == "out" and writes_out):
            yield {**statement, "kwargs": {name: one for name, one in statement["kwargs"].items() if name != key}}
    if statement["do"] == "input":
        if statement["dtype"] != "float32":
            yield {**statement, "dtype": "float32"}
            if statement["dtype"] != "int64":
                yield {**statement, "dtype": "int64"}
        shape = statement["shape"]
        for less in simpler_lists(shape):
            yield {**statement, "shape": less}
        for at, size in enumerate(shape):
            for less in (1, 2):
                if size > less or size == 0:
                    yield {**statement, "shape": [*shape[:at], less, *shape[at + 1 :]]}
        return
    for at, argument in enumerate(statement["args"]):
        for less in simpler_arguments(argument):
            yield {**statement, "args": [*statement["args"][:at], less, *statement["args"][at + 1 :]]}
    for less in simpler_lists(statement["args"][1:]):
        yield {**statement, "args": [statement["args"][0], *less]}


def simpler_arguments(argument: Any) -> Iterator[Any]:
    if isinstance(argument, list):
        yield from simpler_lists(argument)
    elif isinstance(argument, dict) and "tuple" in argument:
        for less in simpler_lists(argument["tuple"]):
            yield {"tuple": less}
    elif isinstance(argument, float) or (isinstance(argument, int) and not isinstance(argument, bool)):
        for less in (0, 1):
            if argument != less:
                yield type(argument)(less)


def candidates(program: list[Statement], outcomes: list[Any], keep: int) -> Iterator[list[Statement]]:
    """Smaller programs, the largest steps first. The statement at `keep` stays what it is."""
    for at in reversed(range(len(program))):
        if at != keep:
            yield program[:at] + program[at + 1 :]
    for at, statement in enumerate(program):
        described = None
        if at != keep and isinstance(outcomes[at].get("results"), dict):
            described = outcomes[at]["results"].get("tensor")
        for less in simpler_statements(statement, described):
            yield [*program[:at], less, *program[at + 1 :]]


def shrink(
    torch: Any, theirs: Torch, program: list[Statement], found: Difference, tries: int = 250
) -> tuple[list[Statement], Difference]:
    """The smallest program found that differs in the same op and kind, and its difference."""
    program = copy.deepcopy(program[: found.at + 1])
    ran = theirs.run(program)
    if ran is None:
        return program, found
    again = first_difference(torch, program, *ran)
    if again is None or (again.op, again.kind) != (found.op, found.kind):
        return program, found
    found = again
    better = True
    while better and tries > 0:
        better = False
        for less in candidates(program, ran[0], found.at):
            tries -= 1
            if tries <= 0:
                break
            result = theirs.run(less)
            if result is None:
                continue
            difference = first_difference(torch, less, *result)
            if difference is not None and (difference.op, difference.kind) == (found.op, found.kind):
                program, ran, found, better = less, result, difference, True
                break
    return program[: found.at + 1], found
