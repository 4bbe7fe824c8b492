"""Division by zero, overflow and invalid values: silent in the kernels, as in torch, and NumPy's own warning elsewhere."""

from __future__ import annotations

import warnings

import numpy as np

from ..._core.cpython import calling_module
from ..._core.threads import ThreadState, started, threads

_OURS = __name__.partition(".")[0]


class _Listener:
    """Takes what NumPy says of floating-point errors, and warns of those that do not come from this package.

    A filter of warnings could not do this, since any filter that a program sets later goes before it.
    """

    def write(self, text: str) -> None:
        if calling_module(skipped="numpy").partition(".")[0] != _OURS:
            warnings.warn(text.removeprefix("Warning: ").rstrip("\n"), RuntimeWarning, stacklevel=2)


_listener = _Listener()


def listen(_state: ThreadState) -> None:
    """Hear of the calling thread's floating-point errors, unless the program listens to them itself."""
    if np.geterrcall() is None:
        np.seterrcall(_listener)
        np.seterr(**{kind: "log" for kind, mode in np.geterr().items() if mode == "warn"})


def install() -> None:
    """Listen in this thread and in each that gets a state.

    A thread that has none yet warns as NumPy does; the filter, which holds until the program sets its own, is for that.
    """
    listen(threads.state)
    started.append(listen)
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=rf"{_OURS}\.")
