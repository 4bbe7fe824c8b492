"""Random programs with what torch did recorded beside them, and the tool that makes, compares and shrinks them."""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import fuzz_programs
from random_programs import compare, machine, render, shrink
from random_programs.generate import make_program
from random_programs.table import OPS

CORPUS = Path(__file__).parents[2] / "helpers" / "random_programs.gz"
PARTS = 10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_programs_give_what_torch_gave(part):
    checking = fuzz_programs.Check(torch, None)
    for case in itertools.islice(fuzz_programs.recorded(CORPUS), part, None, PARTS):
        checking.add(case)
    assert checking.programs >= 100 and not checking.listed
    assert not checking.groups, checking.report()


@pytest.mark.filterwarnings("ignore")
def test_a_number_and_a_seed_make_the_same_program_each_time():
    assert str(make_program(torch, 7, 3)) == str(make_program(torch, 7, 3)) != str(make_program(torch, 8, 3))


def test_every_op_of_the_table_is_there():
    for op in OPS:
        owner = torch if {"f", "o"} & set(op.forms) else operator if {"p", "P"} & set(op.forms) else torch.Tensor
        for part in op.name.split(".") if owner is torch else [op.name + "_" * (op.forms == "i")]:
            owner = getattr(owner, part)


PROGRAM = [
    {"id": 0, "do": "input", "shape": [2, 3], "dtype": "float32", "seed": 1, "grad": True, "layout": "reversed"},
    {"id": 1, "do": "input", "shape": [3], "dtype": "int64", "seed": 2},
    {"id": 2, "do": "operator", "name": "mul", "args": [{"tensor": "0"}, {"tensor": "1"}]},
    {"id": 3, "do": "method", "name": "sum", "args": [{"tensor": "2"}, [0]], "kwargs": {"keepdim": True}},
    {"id": 4, "do": "get", "args": [{"tensor": "3"}, {"tuple": [{"dots": 1}, {"slice": [0, 2, None]}]}]},
    {"id": 5, "do": "inplace", "name": "mul_", "args": [{"tensor": "4"}, 2.0]},
    {"id": 6, "do": "method", "name": "view", "args": [{"tensor": "0"}, [-1]]},
    {"id": 7, "do": "backward", "args": [{"tensor": "3"}]},
]


def test_a_program_runs_as_the_python_text_that_is_printed_for_it():
    outcomes, gradients = machine.run_program(torch, PROGRAM)
    here = {"torch": torch, "weights": machine.Machine(torch).weights}
    for line in render.source(PROGRAM[:6]).splitlines():
        exec(line, here)
    with pytest.raises(RuntimeError):
        exec(render.source(PROGRAM[6:7]), here)
    exec(render.source(PROGRAM[7:]), here)
    assert outcomes[6]["error"][0] == "RuntimeError"
    assert gradients["0"][3] == machine.values(here["t0"].grad)
    assert machine.values(here["t3"]) == outcomes[5]["changed"]["3"][8]
    assert outcomes[5]["results"] == {"is": "4"}


CHANGED = {  # what a test changes in torch's outcome, and the kind of difference that must be found
    "dtype": lambda ran: ran[0][2]["results"]["tensor"].__setitem__(0, "float64"),
    "shape": lambda ran: ran[0][2]["results"]["tensor"].__setitem__(1, [3, 2]),
    "stride": lambda ran: ran[0][2]["results"]["tensor"].__setitem__(2, [7, 1]),
    "requires_grad": lambda ran: ran[0][2]["results"]["tensor"].__setitem__(3, False),
    "is_leaf": lambda ran: ran[0][2]["results"]["tensor"].__setitem__(4, True),
    "shares": lambda ran: ran[0][4]["results"]["tensor"].__setitem__(5, None),
    "base": lambda ran: ran[0][4]["results"]["tensor"].__setitem__(6, None),
    "values": lambda ran: ran[0][2]["results"]["tensor"][8].__setitem__(0, 1e3),
    "changes": lambda ran: ran[0][5]["changed"].pop("3"),
    "changes version": lambda ran: ran[0][5]["changed"]["3"].__setitem__(7, 5),
    "raises": lambda ran: ran[0][6].update(results={"plain": None}) or ran[0][6].pop("error"),
    "error class": lambda ran: ran[0][6]["error"].__setitem__(0, "IndexError"),
    "accepts": lambda ran: ran[0][3].update(error=["ValueError", ""]),
    "results": lambda ran: ran[0][5].__setitem__("results", {"plain": 1}),
    "gradient values": lambda ran: ran[1]["0"][3].__setitem__(0, 9.0),
    "gradient": lambda ran: ran[1].clear(),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_every_kind_of_difference_is_found(kind):
    ran = machine.run_program(torch, PROGRAM)
    assert compare.first_difference(torch, PROGRAM, *ran) is None
    CHANGED[kind](ran)
    found = compare.first_difference(torch, PROGRAM, *ran)
    assert found is not None and found.kind == kind


def test_rounding_is_no_difference_where_something_is_computed_only():
    assert compare.close([1.0, math.nan, 2.0], [1.00001, math.nan, 2.0], "float32", exact=False)
    assert not compare.close([1.0], [1.00001], "float32", exact=True)
    assert not compare.close([1.0], [1.00001], "float64", exact=False)
    assert not compare.close([1.0], [math.nan], "float32", exact=False)
    assert not compare.close([3], [4], "int64", exact=False)


class Wrong:
    """Stands for PyTorch in a process of its own: gives what this package gives, but that `mul` of float32 is off by one."""

    def run(self, program):
        outcomes, gradients = machine.run_program(torch, program)
        for statement, outcome in zip(program, outcomes, strict=True):
            described = outcome["results"]["tensor"] if "results" in outcome and statement.get("name") == "mul" else [""]
            if described[0] == "float32":
                described[8] = [value + 1 for value in described[8]]
        return outcomes, gradients


def test_a_program_that_differs_is_made_small():
    found = compare.first_difference(torch, PROGRAM, *Wrong().run(PROGRAM))
    program, found = shrink.shrink(torch, Wrong(), PROGRAM, found)
    assert (found.op, found.kind) == ("operator mul", "values")
    assert len(program) == 3
    assert all(math.prod(one["shape"]) <= 1 for one in program if one["do"] == "input")


def test_differences_that_are_meant_have_a_reason():
    assert fuzz_programs.meant() and all(one.why for one in fuzz_programs.meant())


def test_a_difference_is_meant_only_in_its_circumstances():
    line = 'kron | accepts | * | "view size", no elements | torch fails'
    meant = fuzz_programs.Meant.parsed(line)
    found = compare.Difference(1, "kron", "accepts", "float32", "torch: view size is not", frozenset({"no elements"}))
    assert fuzz_programs.is_meant([meant], found)
    for other in ({"text": "torch: other words"}, {"circumstances": frozenset()}, {"op": "mm"}, {"kind": "raises"}):
        assert not fuzz_programs.is_meant([meant], dataclasses.replace(found, **other))
    with pytest.raises(ValueError, match="no such circumstance: full moon"):
        fuzz_programs.Meant.parsed("kron | accepts | * | full moon | why")


def test_circumstances_of_operands():
    tensors = {
        "no elements": torch.ones(0),
        "equal elements": torch.ones(2),
        "not finite": torch.tensor([1.0, float("inf")]),
        "dims of one element": torch.tensor([[1.0, 2.0]]),
        "a single element": torch.tensor(1),
    }
    assert {name for name in tensors if name not in compare.circumstances_of([tensors[name]])} == set()
    assert compare.circumstances_of([torch.tensor([1, 2])]) == frozenset()
    assert compare.circumstances_of([torch.tensor([1, 2]), torch.tensor([1.0, 2.0])]) == {"several dtypes"}
