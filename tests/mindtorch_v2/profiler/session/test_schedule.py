"""schedule(): which action at which step; and what a profile does between two actions."""

from __future__ import annotations

import warnings

import pytest

from mindtorch_v2.profiler import ProfilerAction, schedule
from mindtorch_v2.profiler.session.schedule import TRANSITIONS

LETTERS = {"NONE": "n", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "S"}


def actions(steps, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = schedule(**arguments)
    return "".join(LETTERS[plan(step).name] for step in range(steps))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, "nwrSnwrSn"),
        ({"wait": 0, "warmup": 1, "active": 1}, "wSwSwS"),
        ({"wait": 0, "warmup": 0, "active": 3}, "rrSrrSr"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, "nwrSnwrSnnnnnn"),
        ({"wait": 1, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 4}, "nnnnnwSnwSnnnn"),
        ({"wait": 3, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1}, "nnwSnnnwSnnnwS"),
        ({"wait": 2, "warmup": 1, "active": 1, "repeat": 2, "skip_first_wait": -1}, "wSnnwSnnnnnnnn"),
    ],
)
def test_actions(arguments, expected):
    assert actions(len(expected), **arguments) == expected


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"wait": -1}, AssertionError),
        ({"warmup": -1}, AssertionError),
        ({"active": 0}, AssertionError),
        ({"repeat": -1}, AssertionError),
        ({"skip_first": -1}, AssertionError),
        ({"wait": "1"}, TypeError),
        ({"active": None}, TypeError),
        ({"cooldown": 1}, TypeError),
    ],
)
def test_bad_arguments(changed, error):
    with pytest.raises(error):
        schedule(**{"wait": 1, "warmup": 1, "active": 1, **changed})


def test_the_message_names_the_values_and_what_they_must_be():
    with pytest.raises(AssertionError) as caught:
        schedule(wait=-3, warmup=1, active=1)
    assert str(caught.value) == (
        "Invalid profiler schedule arguments. Got wait=-3 (need >= 0), warmup=1 (need >= 0), active=1 (need > 0), "
        "repeat=0 (need >= 0), skip_first=0 (need >= 0)."
    )


@pytest.mark.parametrize(("step", "error"), [(-1, AssertionError), ("0", TypeError), (None, TypeError)])
def test_bad_steps(step, error):
    with pytest.raises(error):
        schedule(wait=1, warmup=1, active=1)(step)


def test_no_warmup_warns():
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=1, warmup=0, active=1)


def test_every_pair_of_actions_has_a_transition():
    proper = [action for action in ProfilerAction if action is not ProfilerAction.DEVICE_STOPPED]
    assert {(a, b) for a in proper for b in proper} <= set(TRANSITIONS)
    assert {a for a, b in TRANSITIONS if b is None} == set(proper) - {ProfilerAction.NONE}
