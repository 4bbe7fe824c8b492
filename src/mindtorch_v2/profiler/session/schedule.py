"""When to record: ProfilerAction, schedule(), and the methods that a profile calls between two actions, as a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from enum import Enum

Schedule = Callable[[int], "ProfilerAction"]


class ProfilerAction(Enum):
    """What a profile does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """A function from step number to action: skip `skip_first` steps, then cycles of wait, warmup and active steps.

    `repeat=0` cycles for ever. With a non-zero `skip_first_wait` the first cycle does not wait.
    """
    arguments = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        values = ", ".join(f"{name}={value} (need {'>' if name == 'active' else '>='} 0)" for name, value in arguments.items())
        raise AssertionError(f"Invalid profiler schedule arguments. Got {values}.")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        if repeat > 0 and step / cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action_of


def record_always(step: int) -> ProfilerAction:
    """The schedule of a profile for which no schedule was given: RECORD at every step."""
    return ProfilerAction.RECORD


_NONE, _WARMUP, _RECORD, _SAVE, _ = ProfilerAction
_NEW_CYCLE = ("stop_trace", "_trace_ready", "prepare_trace")

# The names of the methods that a profile calls when it goes from one action to the next; None is its end. A text that
# starts with "Incorrect" is a warning to give. A pair that is not here needs nothing.
TRANSITIONS: Mapping[tuple[ProfilerAction, ProfilerAction | None], tuple[str, ...]] = {
    (_NONE, _NONE): (),
    (_NONE, _WARMUP): ("prepare_trace",),
    (_NONE, _RECORD): ("prepare_trace", "start_trace"),
    (_NONE, _SAVE): ("prepare_trace", "start_trace"),
    (_WARMUP, _NONE): ("Incorrect schedule: WARMUP followed by NONE", "start_trace", "stop_trace"),
    (_WARMUP, _WARMUP): (),
    (_WARMUP, _RECORD): ("start_trace",),
    (_WARMUP, _SAVE): ("start_trace",),
    (_RECORD, _NONE): ("Incorrect schedule: RECORD followed by NONE", "stop_trace"),
    (_RECORD, _WARMUP): ("Incorrect schedule: RECORD followed by WARMUP", "stop_trace", "prepare_trace"),
    (_RECORD, _RECORD): (),
    (_RECORD, _SAVE): (),
    (_SAVE, _NONE): ("stop_trace", "_trace_ready"),
    (_SAVE, _WARMUP): _NEW_CYCLE,
    (_SAVE, _RECORD): (*_NEW_CYCLE, "start_trace"),
    (_SAVE, _SAVE): (*_NEW_CYCLE, "start_trace"),
    (_WARMUP, None): ("start_trace", "stop_trace"),
    (_RECORD, None): ("stop_trace", "_trace_ready"),
    (_SAVE, None): ("stop_trace", "_trace_ready"),
}
