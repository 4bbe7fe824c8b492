"""One op, one place: what a room wants to know of an op stands in the op's declaration, not in a table of names elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.registry import packets

SOURCE = Path(torch.__file__).parent
# The smallest table: this many strings in one literal, all of them names of ops.
SMALLEST = 3
# Files with such a literal that is no fact about ops, and why.
ALLOWED = {
    "_backends/npu/kernels/optimizer.py": "a device's kernels, registered on the ops they are for",
    "_backends/npu/kernels/pointwise.py": "a device's kernels, registered on the ops they are for",
    "_backends/npu/placement.py": "the overloads of one op, which takes indices on either device",
    "_dispatch/offered.py": "where torch offers which name, as recorded from torch",
    "_serialization/names.py": "functions that a checkpoint may name",
    "func/_nn_rules.py": "what one rule does for each op of its kind",
    "masked/_mask.py": "names of reductions in torch.masked",
    "nn/_functional/sparse.py": "the modes of embedding_bag",
    "nn/init.py": "names of nonlinearities in nn.init.calculate_gain",
    "nn/parameter.py": "methods of an uninitialized parameter",
    "profiler/analysis/advice/_loops.py": "what one piece of advice looks for",
    "profiler/analysis/advice/copies.py": "what one piece of advice looks for",
    "profiler/analysis/advice/promotion.py": "what one piece of advice leaves out",
}


def names_in(node: ast.AST) -> list[str]:
    """The strings of a literal: a collection's items, a dictionary's keys, the words of `"a b c".split()`."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        items = node.elts
    elif isinstance(node, ast.Dict):
        items = [key for key in node.keys if key is not None]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        text = node.func.value
        return text.value.split() if isinstance(text, ast.Constant) and isinstance(text.value, str) else []
    else:
        return []
    strings = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return strings if len(strings) == len(items) else []


def tables(path: Path) -> Iterator[tuple[int, list[str]]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [name.removeprefix("aten::") for name in names_in(node)]
        known = [name for name in names if name.partition(".")[0] in packets]
        if len(names) >= SMALLEST and len(known) == len(names):
            yield node.lineno, names


def test_the_walk_finds_tables_of_every_form(tmp_path):
    path = tmp_path / "room.py"
    path.write_text(
        'A = frozenset({"mul", "add", "sub", "div"})\n'
        'B = {"mul": 1, "add": 2, "sub.Tensor": 3, "aten::div": 4}\n'
        'C = "mul add sub div".split()\n'
        'D = ("mul", "add", "sub", "no op of that name")\n'
        'E = ["mul", "add"]\n'
    )
    assert sorted(line for line, _ in tables(path)) == [1, 2, 3]


ROOMS = sorted(path for path in SOURCE.rglob("*.py") if not path.is_relative_to(SOURCE / "_ops"))


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_table_by_op_name_outside_the_declarations(path):
    file = path.relative_to(SOURCE).as_posix()
    found = [(line, names) for line, names in tables(path) if file not in ALLOWED]
    assert not found, f"{file}: a fact about ops belongs into their declarations (see _dispatch/facts.py): {found}"


def test_every_exception_is_needed():
    assert not [file for file in ALLOWED if not any(tables(SOURCE / file))]
