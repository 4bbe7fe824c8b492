"""Marks for Intel's Instrumentation and Tracing Technology, which is not part of this runtime."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether marks can be made: always False here."""
    return False


def _fail() -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_push(msg: str) -> None:
    """Begin a nested range; raises, since ITT is not part of this runtime."""
    _fail()


def range_pop() -> None:
    """End the innermost range; raises, since ITT is not part of this runtime."""
    _fail()


def mark(msg: str) -> None:
    """Mark a moment; raises, since ITT is not part of this runtime."""
    _fail()


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A range around a block, named `msg.format(*args, **kwargs)`."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
