"""Marks for Intel's Instrumentation and Tracing Technology: they reach a collector, such as VTune, where the process has one.

A collector puts the path of its library into the environment before the process starts. Without one marks go nowhere, here as
in torch. With one they raise: its library is reached from compiled code only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]

# By these variables a collector names its library.
_COLLECTORS = ("INTEL_LIBITTNOTIFY64", "INTEL_LIBITTNOTIFY32")


def is_available() -> bool:
    """Whether marks can be made: not where a collector waits for them."""
    return not any(os.environ.get(name) for name in _COLLECTORS)


def check_available() -> None:
    """RuntimeError where a collector waits for marks, which it would not get."""
    if not is_available():
        raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_push(msg: str) -> None:
    """Begin a nested range; RuntimeError where a collector waits for it."""
    check_available()


def range_pop() -> None:
    """End the innermost range; RuntimeError where a collector waits for it."""
    check_available()


def mark(msg: str) -> None:
    """Mark a moment; RuntimeError where a collector waits for it."""
    check_available()


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A range around a block, named `msg.format(*args, **kwargs)`."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
