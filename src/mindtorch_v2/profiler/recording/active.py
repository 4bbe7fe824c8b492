"""Sessions that record now, so that a fork and the end of the process can end them.

A child that os.fork() makes has the parent's sessions in memory, with their hooks installed. They end in the child at once:
they are the parent's, so the child neither records into them nor writes them, and may start sessions of its own.
"""

from __future__ import annotations

import atexit
import os
import warnings
from contextlib import suppress
from typing import Protocol

from ..._dispatch import observer
from .recorder import recorders_lock


class Session(Protocol):
    """What records and can be ended from outside: a profile, or an execution trace observer."""

    def abandon(self) -> None:
        """Remove every hook; what was recorded stays."""


_running: dict[int, Session] = {}


def add(session: Session) -> None:
    """Register a session that starts to record."""
    _running[id(session)] = session


def remove(session: Session) -> None:
    """Unregister a session that has stopped; nothing happens if it is not registered."""
    _running.pop(id(session), None)


def running() -> list[Session]:
    """The sessions that record now, oldest first."""
    return list(_running.values())


def _before_fork() -> None:
    # With both locks held no session is half started or half stopped in the child.
    recorders_lock.acquire()
    observer.observers_lock.acquire()


def _in_parent() -> None:
    # A lock that is not held was being waited for when an interrupt came; the other one must not stay held.
    with suppress(RuntimeError):
        observer.observers_lock.release()
    with suppress(RuntimeError):
        recorders_lock.release()


def _in_child() -> None:
    _in_parent()
    _abandon_all()


def _at_exit() -> None:
    count = len(_running)
    _abandon_all()
    if count:
        what = "a profile was" if count == 1 else f"{count} profiles were"
        warnings.warn_explicit(
            f"{what} still running when the interpreter ended: call stop(), or use `with`, to have on_trace_ready called",
            RuntimeWarning,
            "<interpreter exit>",
            0,
        )


def _abandon_all() -> None:
    while _running:
        _, session = _running.popitem()
        session.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
atexit.register(_at_exit)
