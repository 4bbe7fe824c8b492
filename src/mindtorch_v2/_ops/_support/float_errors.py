"""Division by zero, overflow and invalid values: silent in the kernels, as in torch, and NumPy's own warning elsewhere."""

from __future__ import annotations

import warnings

import numpy as np

from ..._core.cpython import calling_module
from ..._core.threads import ThreadState, started, threads

_OURS = __name__.partition(".")[0]
_NUMPYS = "(divide by zero|overflow|underflow|invalid value) encountered"  # how NumPy's warnings begin


class _Listener:
    """Receives NumPy's floating-point errors, and warns of those that were not raised inside this package.

    A warnings filter could not do this: any filter that the program adds later has precedence.
    """

    def write(self, text: str) -> None:
        if calling_module(skipped="numpy").partition(".")[0] != _OURS:
            warnings.warn(text.removeprefix("Warning: ").rstrip("\n"), RuntimeWarning, stacklevel=2)


_listener = _Listener()


def listen(_state: ThreadState) -> None:
    """Route the calling thread's floating-point errors to the listener, unless the program has set an error handler."""
    if np.geterrcall() is None:
        np.seterrcall(_listener)
        np.seterr(**{kind: "log" for kind, mode in np.geterr().items() if mode == "warn"})


def install() -> None:
    """Install the listener in this thread and in every thread that gets a state.

    The warnings filter is for threads without a state, where NumPy still warns itself.
    """
    listen(threads.state)
    started.append(listen)
    warnings.filterwarnings("ignore", message=_NUMPYS, category=RuntimeWarning, module=rf"{_OURS}\.")
