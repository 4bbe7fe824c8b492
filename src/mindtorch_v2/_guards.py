"""torch._guards: which fake mode a program runs in. Nothing is compiled, so there are no guards."""

from __future__ import annotations

from typing import Any

from ._core.threads import threads
from .utils._pytree import tree_leaves

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> Any:
    """The innermost FakeTensorMode that is active on this thread, or None."""
    return next(iter(_active_modes()), None)


def _active_modes() -> list[Any]:
    from ._subclasses.fake_tensor import FakeTensorMode

    return [mode for mode in reversed(threads.state.modes) if isinstance(mode, FakeTensorMode)]


def detect_fake_mode(inputs: Any = None) -> Any:
    """The FakeTensorMode that is active on this thread, else that of the fake tensors among `inputs`, else None.

    AssertionError where several are found.
    """
    from ._subclasses.fake_tensor import FakeTensor

    modes = _active_modes()
    modes += [leaf.fake_mode for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)]
    if any(mode is not modes[0] for mode in modes):
        raise AssertionError(f"fake mode ({modes[0]}) doesn't match others among the active ones and the inputs")
    return modes[0] if modes else None
