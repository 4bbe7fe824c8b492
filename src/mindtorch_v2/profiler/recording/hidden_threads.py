"""Threads that recordings leave out: the profiler's and the runtime's own, and those of a notebook around its cells."""

from __future__ import annotations

import threading
import weakref

from ..._core.threads import ThreadState, threads


class _Hidden(threading.local):
    """Whether the calling thread is one of the profiler's own."""

    value = False


_hidden = _Hidden()
_hidden_states: weakref.WeakSet[ThreadState] = weakref.WeakSet()


def hide_thread() -> None:
    """Have no recording of all threads take the calling one: it works for the profiler, not for the program."""
    _hidden.value = True  # first: a recording that runs is told of the state when it is made
    _hidden_states.add(threads.state)


def is_hidden(state: ThreadState) -> bool:
    """Whether hide_thread() was called on the thread of a state."""
    return state in _hidden_states or (_hidden.value and state is threads.state)


# Packages whose threads do not run the program: tools around it, and this one, as that of process groups.
_packages = [__name__.partition(".")[0]]


def hide_threads_of(package: str) -> None:
    """Have recordings leave out the threads of a package, whose class or function it defines."""
    if package not in _packages:
        _packages.append(package)


def is_of_a_tool(thread: threading.Thread) -> bool:
    """Whether a thread is one of this package's, or of one that hide_threads_of() was called with."""
    target = getattr(thread, "_target", None)  # gone when the thread has ended
    owner = getattr(target, "__self__", None)
    homes = (type(thread).__module__, getattr(target, "__module__", None) or "", type(owner).__module__)
    return any(home == package or home.startswith(package + ".") for home in homes for package in _packages)
