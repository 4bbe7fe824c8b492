"""Which task runs on this thread: of asyncio (and what builds on it: uvloop, anyio), of trio, or a greenlet (gevent).

A library counts from the moment the program has imported it; none is imported here, and before that none costs anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol


class Task(Protocol):
    """A task of any library. It can be referred to weakly, so that a recording keeps none alive."""

    def __hash__(self) -> int: ...


_modules = sys.modules


class _Libraries:
    """The libraries that are imported: for each a function that gives the task that runs on this thread, or None."""

    __slots__ = ("current", "modules")

    def __init__(self) -> None:
        self.current: list[Callable[[], Task | None]] = []
        self.modules = 0  # how many modules the interpreter had when it was last looked at

    def look(self) -> None:
        """Find out which libraries are there; needed when the number of modules has changed."""
        self.modules = len(_modules)
        self.current = [find() for name, find in _FINDERS if name in _modules]


def current_task() -> Task | None:
    """The task that runs on this thread, None if there is none."""
    for current in libraries.current:
        task = current()
        if task is not None:
            return task
    return None


def name_of(task: Any) -> str:
    """The name that the task's library gives it."""
    if hasattr(task, "get_name"):  # asyncio
        return str(task.get_name())
    name = getattr(task, "name", "")
    return name if isinstance(name, str) and name else f"{type(task).__name__} {id(task):#x}"


def _asyncio() -> Callable[[], Task | None]:
    running_loop, current = _modules["asyncio.events"]._get_running_loop, _modules["asyncio.tasks"].current_task
    # asyncio's current_task() raises where no loop runs.
    return lambda: None if running_loop() is None else current()


def _trio() -> Callable[[], Task | None]:
    # What current_task() returns. That one is written in Python, outside of this package: a tracer of calls would show it.
    context = getattr(_modules.get("trio._core._run"), "GLOBAL_RUN_CONTEXT", None)
    if context is not None:
        return lambda: getattr(context, "task", None)
    current = _modules["trio"].lowlevel.current_task

    def current_or_none() -> Task | None:
        try:
            task: Task = current()
        except RuntimeError:  # no event loop runs
            return None
        return task

    return current_or_none


def _greenlet() -> Callable[[], Task | None]:
    getcurrent = _modules["greenlet"].getcurrent

    def current_or_none() -> Task | None:
        greenlet = getcurrent()
        return None if greenlet.parent is None else greenlet  # that of the thread itself has no parent

    return current_or_none


_FINDERS = (("asyncio.tasks", _asyncio), ("trio", _trio), ("greenlet", _greenlet))
libraries = _Libraries()
