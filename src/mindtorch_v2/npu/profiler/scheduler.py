"""torch_npu's Schedule: which steps a profile records."""

from __future__ import annotations

import warnings

from ...profiler.session.schedule import ProfilerAction, schedule

__all__ = ["ProfilerAction", "Schedule"]

_LEAST = {"wait": 0, "active": 1, "warmup": 0, "repeat": 0, "skip_first": 0, "skip_first_wait": 0}


class Schedule:
    """Skip `skip_first` steps, then cycles of wait, warmup and active steps; `repeat=0` cycles for ever.

    With a non-zero `skip_first_wait` the first cycle does not wait. A value that cannot be is a warning and becomes the least.
    """

    def __init__(
        self, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
    ) -> None:
        arguments = {
            "wait": wait,
            "active": active,
            "warmup": warmup,
            "repeat": repeat,
            "skip_first": skip_first,
            "skip_first_wait": skip_first_wait,
        }
        for name, value in arguments.items():
            if not isinstance(value, int) or value < _LEAST[name]:
                warnings.warn(f"Invalid parameter {name}, reset it to {_LEAST[name]}.", stacklevel=2)
                arguments[name] = _LEAST[name]
        self.__dict__.update(arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said below, of the caller's line
            self._action = schedule(**arguments)
        if not arguments["warmup"]:
            warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    wait: int
    active: int
    warmup: int
    repeat: int
    skip_first: int
    skip_first_wait: int

    def __call__(self, step: int) -> ProfilerAction:
        """The action of a step; ValueError if that is negative."""
        if step < 0:
            raise ValueError("Invalid parameter step, which must be not less than 0.")
        return self._action(step)

    def settings(self) -> dict[str, int]:
        """The numbers by name, as profiler_info.json has them."""
        return {name: getattr(self, name) for name in _LEAST}
