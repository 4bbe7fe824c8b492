"""Signals while a script runs under mtprof: SIGTERM ends it as Ctrl-C does, so that the recording is kept."""

from __future__ import annotations

import os
import signal
import threading
import types
from functools import partial

from ..._core.restoring import Actions, restoring


class Terminated(SystemExit):
    """Raised in the main thread by SIGTERM; ends the process with 128 + 15."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


@restoring
def sigterm_raises(undo: Actions) -> None:
    """Inside, SIGTERM raises Terminated, unless the process ignores or handles it. A script may set its own handler."""
    if _on_main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        undo.append(partial(signal.signal, signal.SIGTERM, signal.SIG_DFL))
        signal.signal(signal.SIGTERM, _raise_terminated)


@restoring
def ignored(undo: Actions, *signals: signal.Signals) -> None:
    """Inside, these signals have no effect. Only on the main thread, the one that can set handlers."""
    if _on_main_thread():
        for number in signals:
            undo.append(partial(signal.signal, number, signal.getsignal(number)))
            signal.signal(number, signal.SIG_IGN)


def _raise_terminated(number: int, frame: types.FrameType | None) -> None:
    raise Terminated


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


# ---------------------------------------------------------------------- forked children die of SIGTERM as without mtprof


class _Fork(threading.local):
    """The signals that the forking thread had blocked; None if SIGTERM has another handler than ours."""

    mask: set[signal.Signals] | set[int] | None = None


_fork = _Fork()


def _before_fork() -> None:
    # Python forgets signals that reach a child before its first instruction; a blocked one waits instead.
    ours = signal.getsignal(signal.SIGTERM) is _raise_terminated
    _fork.mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})) if ours else None


def _after_fork() -> None:
    if _fork.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _fork.mask)


def _in_child() -> None:
    if _fork.mask is not None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
