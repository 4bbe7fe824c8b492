"""Threads take turns: start(), step() and stop() of one object never run at the same time on two threads.

A call waits for the one before it, so that calls from any threads have an order, and what a call promises holds when it
returns: after stop() nothing is recorded. No lock is held while a turn lasts. What runs in a turn may therefore wait for
another thread, or run a user's callback which calls the same object again on its own thread. Who waits for a turn waits for a
bounded time.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from threading import get_ident
from typing import Protocol, TypeVar

# How long a call waits for its turn. Beyond that the thread before it hangs, or waits for this one.
MOST_WAITED_S = 60.0
_PAUSE_S = 0.001


class Turns:
    """Whose turn it is on one object: a token that is made for each call, and the thread of that call."""

    __slots__ = ("_lock", "_pid", "holder", "thread")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held for a few stores only
        self._pid = os.getpid()
        self.holder: object | None = None
        self.thread = 0

    def __reduce__(self) -> tuple[type[Turns], tuple[()]]:
        """A copy of an object has turns of its own."""
        return Turns, ()

    def begin(self, token: object, call: str) -> None:
        """Wait for the turn of `token`; RuntimeError if another thread's turn does not end in time."""
        if self._pid != os.getpid():
            self._forget_parent()
        until = time.monotonic() + MOST_WAITED_S
        while not self._take(token):
            if time.monotonic() > until:
                raise RuntimeError(
                    f"{call}() waited {MOST_WAITED_S:.0f} s for another thread that is in start(), step() or stop() of the "
                    "same profile; nothing was done"
                )
            time.sleep(_PAUSE_S)

    def _take(self, token: object) -> bool:
        with self._lock:
            if self.holder is None:
                # The thread first: whoever sees the token must see whose it is.
                self.thread = get_ident()
                self.holder = token
            return self.holder is token

    def _forget_parent(self) -> None:
        """In a forked child: a turn that another thread of the parent had will never end here."""
        self._lock, self._pid = threading.Lock(), os.getpid()
        self.holder, self.thread = None, 0


class TakesTurns(Protocol):
    """An object whose methods take turns."""

    _turns: Turns


_Self = TypeVar("_Self", bound=TakesTurns)
_Result = TypeVar("_Result")


def in_turn(method: Callable[[_Self], _Result]) -> Callable[[_Self], _Result]:
    """Have a method wait for its turn, except in a call from inside another turn of the same thread."""

    @functools.wraps(method)
    def method_in_turn(self: _Self) -> _Result:
        turns = self._turns
        if turns.holder is not None and turns.thread == get_ident():
            # A plain call: behind one with `*args` a signal is handled, and a start() that has succeeded would raise.
            return method(self)
        token = object()
        try:
            turns.begin(token, method.__qualname__.replace("._", "."))
            return method(self)
        finally:
            # Plain stores: an interrupt cannot come in between and leave the turn taken.
            if turns.holder is token:
                turns.thread = 0
                turns.holder = None

    return method_in_turn
