"""Distributions, divergences, transforms and constraints answer as PyTorch 2.13 did (see recorded_answers.py)."""

import json
import math

import pytest

import mindtorch_v2 as torch

from .recorded_answers import RECORDED, answer, cases, names

EXPECTED = json.loads(RECORDED.read_text())
CASES = cases()


def close(ours, theirs):
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(close, ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, int | float):
        return math.isclose(ours, theirs, rel_tol=2e-6, abs_tol=1e-9) or (math.isnan(ours) and math.isnan(theirs))
    return ours == theirs


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_answer(name):
    ours, theirs = answer(CASES[name], names(torch)), EXPECTED[name]
    assert close(ours, theirs), f"{ours} here, {theirs} in PyTorch"


def test_every_case_is_recorded():
    assert EXPECTED.keys() == CASES.keys()
