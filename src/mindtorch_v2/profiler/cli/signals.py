"""Signals while a script runs under mtprof: SIGTERM ends it as Ctrl-C does, so that what was recorded is kept."""

from __future__ import annotations

import os
import signal
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(SystemExit):
    """SIGTERM came."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Whoever ignores or handles SIGTERM already goes on doing so; a script may still set a handler of its own."""
    if not _on_main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def ignored(*signals: signal.Signals) -> Iterator[None]:
    """Without these signals, where signals can be had: on the main thread."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in signals if _on_main_thread()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: types.FrameType | None) -> None:
    raise Terminated


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


# ---------------------------------------------------------------------- children that are forked die of SIGTERM as without us


class _Fork(threading.local):
    """What the thread that forks had blocked, None if the handler is not ours."""

    mask: set[signal.Signals] | set[int] | None = None


_fork = _Fork()


def _before_fork() -> None:
    # Python forgets signals that reach a child before its first instruction. This one then waits.
    ours = signal.getsignal(signal.SIGTERM) is _end
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
