"""Small calls that random programs brought up give what they gave in PyTorch: results, layouts, history, refusals."""

from __future__ import annotations

import json

import pytest

import mindtorch_v2 as torch

from .recorded_small_calls import CASES, RECORDED, answers


@pytest.mark.filterwarnings("ignore")
def test_small_calls_give_what_torch_gave():
    recorded = json.loads(RECORDED.read_text())
    assert list(recorded) == CASES.strip().splitlines()
    found = answers(torch)
    assert {case: found[case] for case in found if found[case] != recorded[case]} == {}
