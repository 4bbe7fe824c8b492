"""Every attack in its small size; `make attack` carries them out at length."""

from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from attacks import all_attacks, carry_out

# These read a real clock, which a busy machine may hold up at any moment: one of three tries has to hold.
TIMED = {"cost_of_recording", "same_code", "slowed_op", "no_advice", "fitting_advice"}
# A few percent of 100 us cannot be measured beside other tests.
ONLY_ALONE = {"self_times_around_others"}


@pytest.mark.parametrize(
    "one", [one for one in all_attacks() if one.name not in ONLY_ALONE], ids=lambda one: f"{one.family}-{one.name}"
)
def test_promise_holds(one):
    for _ in range(3 if one.name in TIMED else 1):
        outcome = carry_out(one, one.small, 120)
        if outcome.held:
            break
    assert outcome.held, outcome.text
