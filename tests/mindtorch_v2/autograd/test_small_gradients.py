"""Gradients of small and odd cases, beside those of PyTorch: see tests/helpers/small_gradients.py."""

from __future__ import annotations

import json

import pytest
import small_gradients

import mindtorch_v2 as torch

_WANTED = json.loads(small_gradients.TABLE.read_text())
_CASES = small_gradients.Cases(torch).all


@pytest.mark.parametrize("family", sorted({name.split(" ")[0] for name in _CASES}))
@pytest.mark.filterwarnings("ignore")
def test_values_and_gradients_are_those_of_torch(family):
    differing = {}
    for name, case in _CASES.items():
        if name.split(" ")[0] == family:
            got = small_gradients.answer(torch, case)
            if not small_gradients.same(_WANTED[name], got):
                differing[name] = {key: (got.get(key), one) for key, one in _WANTED[name].items() if got.get(key) != one}
    assert not differing
