"""Arithmetic, reductions, scans, statistics, linear algebra and transforms answer what PyTorch answers."""

from __future__ import annotations

import json
import math
from typing import Any

import math_values
import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.fft
import mindtorch_v2.linalg
import mindtorch_v2.special

RECORDED = json.loads(math_values.VALUES.read_text())
CASES = [(family, expression) for family, expressions in RECORDED.items() for expression in expressions]
# How near values must be, relative to the larger of 1 and the value.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "complex64": 3e-5, "float64": 1e-8, "complex128": 1e-8}

pytestmark = pytest.mark.filterwarnings("ignore")


def near(expected: Any, got: Any, tolerance: float) -> bool:
    if isinstance(expected, list):
        return (
            isinstance(got, list)
            and len(expected) == len(got)
            and all(near(a, b, tolerance) for a, b in zip(expected, got, strict=True))
        )
    if isinstance(expected, float) and isinstance(got, float):
        if math.isnan(expected) or math.isinf(expected):
            return expected == got or (math.isnan(expected) and math.isnan(got))
        return abs(expected - got) <= tolerance * max(1.0, abs(expected))
    return type(expected) is type(got) and bool(expected == got)


def agrees(expected: Any, got: Any) -> bool:
    if isinstance(expected, dict) and isinstance(got, dict):
        if "tensor" not in expected or "tensor" not in got:
            return expected == got
        (dtype, *shape, values), (our_dtype, *our_shape, ours) = expected["tensor"], got["tensor"]
        return dtype == our_dtype and shape == our_shape and near(values, ours, TOLERANCE.get(dtype, 0))
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(agrees(a, b) for a, b in zip(expected, got, strict=True))
    return near(expected, got, 1e-6)


@pytest.mark.parametrize(("family", "expression"), CASES, ids=[f"{family}-{e}" for family, e in CASES])
def test_answers_what_torch_answers(family: str, expression: str) -> None:
    got = json.loads(json.dumps(math_values.answer(torch, torch.from_numpy, expression)))
    expected = RECORDED[family][expression]
    assert agrees(expected, got), f"expected {expected}\ngot {got}"


@pytest.mark.parametrize("number", [2, 2.0, True, np.float32(2), np.int64(2)])
def test_a_number_may_come_first(number):
    made = torch.mul(number, torch.ones(2, dtype=torch.float16))
    assert (made.dtype, made.tolist()) == (torch.float16, [float(number)] * 2)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (True, "two bool tensors"),
        (torch.tensor(True), "two bool tensors"),
        (1, "a bool tensor"),
        (torch.ones(1), "a bool tensor"),
    ],
)
def test_truth_values_have_no_difference(other, words):
    with pytest.raises(RuntimeError, match=f"with {words} is not supported"):
        torch.tensor([True]) - other
