"""Recordings under way, for the two moments when the process stops being what it was: a fork, and its end.

A child that os.fork() makes has the parent's recordings in memory, hooks and all. They end there and then: they are the
parent's, so the child neither records into them nor writes them, and may start recordings of its own.
"""

from __future__ import annotations

import atexit
import os
import warnings
from typing import Protocol

from ..._dispatch import observer
from .recorder import changing


class Session(Protocol):
    """Something that records."""

    def abandon(self) -> None:
        """Take every hook out and keep what there is."""


_running: dict[int, Session] = {}


def opened(session: Session) -> None:
    """It records from now on."""
    _running[id(session)] = session


def closed(session: Session) -> None:
    """It records no more. Nothing happens if it did not."""
    _running.pop(id(session), None)


def running() -> list[Session]:
    """Those that record now."""
    return list(_running.values())


def _before_fork() -> None:
    # With these held nothing is half started or half stopped in the child.
    changing.acquire()
    observer.observers_lock.acquire()


def _in_parent() -> None:
    observer.observers_lock.release()
    changing.release()


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
