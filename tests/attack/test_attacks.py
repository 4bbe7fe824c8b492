"""Every attack in its small size; `make attack` carries them out at length."""

from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from attacks import all_attacks, carry_out


@pytest.mark.parametrize("one", all_attacks(), ids=lambda one: f"{one.family}-{one.name}")
def test_promise_holds(one):
    outcome = carry_out(one, one.small, 120)
    assert outcome.held, outcome.text
