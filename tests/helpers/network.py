"""Comparing what the runtime says of losses and layers with what PyTorch said, see network_values.py."""

from __future__ import annotations

import json
from typing import Any

import network_values as _values

import mindtorch_v2 as torch
import mindtorch_v2.autograd
import mindtorch_v2.nn.functional

RECORDED: dict[str, dict[str, Any]] = json.loads(_values.VALUES.read_text())
# How near values must be, relative to the larger of 1 and the value.
_TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 2e-6}


def expressions(*sections: str) -> list[str]:
    """The expressions of some sections, as parameters of a test."""
    return [expression for section in sections for expression in RECORDED[section]]


def _near(expected: Any, got: Any, kind: str) -> bool:
    if isinstance(expected, float) and isinstance(got, float):
        return abs(expected - got) <= _TOLERANCE[kind] * max(1.0, abs(expected))
    return bool(expected == got)


def _difference(expected: Any, got: Any, where: str) -> str | None:
    tensor = isinstance(expected, list) and len(expected) == 3 and isinstance(expected[0], str)
    if tensor and isinstance(got, list) and len(got) == 3:
        if expected[:2] != got[:2]:
            return f"{where}: expected {expected[:2]}, got {got[:2]}"
        for place, (a, b) in enumerate(zip(expected[2], got[2], strict=True)):
            if not _near(a, b, expected[0]):
                return f"{where}, element {place}: expected {a}, got {b}"
        return None
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        problems = (_difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(expected, got, strict=True)))
        return next(filter(None, problems), None)
    return None if expected == got else f"{where}: expected {expected}, got {got}"


def check(section: str, expression: str) -> None:
    """Fail unless the runtime answers an expression as PyTorch did."""
    expected, got = RECORDED[section][expression], json.loads(json.dumps(_values.answer(torch, expression)))
    assert expected.keys() == got.keys(), f"{expression}: expected {sorted(expected)}, got {sorted(got)}"
    for part in expected:
        problem = _difference(expected[part], got[part], part)
        assert problem is None, f"{expression}: {problem}"
