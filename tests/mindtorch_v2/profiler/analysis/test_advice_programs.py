"""Advice on real programs: none where there is nothing to change, and exactly the one that fits elsewhere."""

from __future__ import annotations

import pytest
from advice_programs import CLEAN, OPTIONS, SICK, advice_for

from mindtorch_v2.profiler.analysis.advice import RULES

TRIES = 3


def advised(program, expected, **options):
    """The advice for a program; of up to three recordings, since a busy machine may hold up any one of them."""
    for _ in range(TRIES):
        advice = advice_for(program, **options)
        if advice == expected:
            break
    return advice


SIZES = [(rule, at) for rule, programs in SICK.items() for at in range(len(programs))]


@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "shapes-memory"])
@pytest.mark.parametrize("name", CLEAN)
def test_a_program_without_fault_gets_no_advice(name, options):
    assert advised(CLEAN[name], [], **options) == []


@pytest.mark.parametrize(("rule", "at"), SIZES, ids=[f"{rule}-{at}" for rule, at in SIZES])
def test_a_fault_is_named_and_nothing_else(rule, at):
    assert advised(SICK[rule][at], [rule], **OPTIONS) == [rule]


def test_every_rule_has_a_program():
    assert set(SICK) == set(RULES)
    assert len(CLEAN) >= 15
