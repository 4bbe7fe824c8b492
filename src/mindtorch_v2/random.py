"""torch.random: seeding the default generators, and keeping their state."""

from __future__ import annotations

from functools import partial
from typing import Any

from ._core.restoring import Actions, restoring
from ._core.rng import Generator, default_generator
from ._ops.random.uniform_normal import get_rng_state, manual_seed, set_rng_state

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state", "thread_safe_generator"]


def seed() -> int:
    """Start the default generator over from a number that the system offers, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator was last started from."""
    return default_generator.initial_seed()


def thread_safe_generator() -> Generator | None:
    """The generator of a data loading worker that runs as a thread; None where there is none."""
    return None


@restoring
def fork_rng(
    undo: Actions,
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> None:
    """Inside the block random numbers may be drawn; afterwards the default generator goes on as if none had been."""
    if devices:
        raise NotImplementedError(f"{_caller}({_devices_kw}=...): only the CPU has a generator")
    if enabled:
        undo.append(partial(set_rng_state, get_rng_state()))
