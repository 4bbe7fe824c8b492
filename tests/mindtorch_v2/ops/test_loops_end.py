"""Every loop of the ops that goes on "until": why it ends. Searches and iterations count their steps and give up."""

from __future__ import annotations

import ast
from pathlib import Path

import mindtorch_v2

ROOT = Path(mindtorch_v2.__file__).parent
FOLDERS = ("_ops", "_core", "distributions", "optim", "nn")

# By file and function: what the loop uses up.
WHY_IT_ENDS = {
    "_core/cpython.py _read_call": "the instructions before a call",
    "_core/cpython.py _thread_state": "threads of the interpreter, none of which ends meanwhile",
    "_core/cpython.py call_into": "frames of the stack",
    "_core/cpython.py calling_module": "frames of the stack",
    "_core/cpython.py stack_level": "frames of the stack",
    "_core/parallel.py _work": "regions; the last one given out is None",
    "_core/parallel.py close": "interrupts, after each of which the tasks that run are waited for again",
    "_core/parallel.py help": "threads, of which there is a largest number",
    "_core/parallel.py work": "tasks",
    "_core/restoring.py carry_out": "actions, each of which is tried a fixed number of times",
    "_ops/_support/common.py add_rows": "rows, of which each turn adds some",
    "_ops/creation/from_data.py _shape_of": "levels of nesting",
    "_ops/indexing/subscripts.py _apply": "dims",
    "_ops/indexing/subscripts.py _without_leading_ones": "dims",
    "_ops/linalg/_math.py _are_ldl_pivots": "columns",
    "_ops/linalg/_unblocked.py _pivot_blocks": "columns",
    "_ops/linalg/_unblocked.py ldl_of_matrix": "columns",
    "_ops/linalg/matrix_functions.py _power": "bits of the exponent",
    "_ops/linalg/products.py _labels": "the text of an equation",
    "_ops/linalg/products.py _without_repeats": "repeated labels",
    "_ops/linalg/products.py einsum": "operands",
    "_ops/nn/resample.py _byte_taps": "bits, of which there is a largest number",
    "_ops/random/integers.py _shuffled": "chains of swaps, each of which ends",
    "_ops/reduction/reduce.py _products_of_rows": "factors, which each turn halves",
    "_ops/sparse/kernels.py _merged": "places, of which each turn merges some",
    "nn/modules/module.py _attach_to_last_node": "levels of nesting",
    "nn/parallel/_reducer.py _mark": "buckets",
    "nn/parallel/_reducer.py _unused": "nodes, each once",
    "optim/_line_search.py _zoom": "evaluations, of which there is a largest number",
    "optim/_line_search.py strong_wolfe": "evaluations, of which there is a largest number",
    "optim/lbfgs.py step": "iterations, of which the program says the largest number",
}


def _loops() -> dict[str, list[ast.While]]:
    found: dict[str, list[ast.While]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            for loop in (node for node in ast.walk(tree) if isinstance(node, ast.While)):
                around = [f for f in functions if f.lineno <= loop.lineno <= (f.end_lineno or 0)]
                name = max(around, key=lambda f: f.lineno).name if around else "<module>"
                found.setdefault(f"{path.relative_to(ROOT)} {name}", []).append(loop)
    return found


def test_every_while_loop_has_a_reason_to_end():
    assert set(_loops()) == set(WHY_IT_ENDS)


def test_no_loop_goes_on_for_ever_by_itself():
    endless = [place for place, loops in _loops().items() for loop in loops if isinstance(loop.test, ast.Constant)]
    assert not endless
