"""record_function: a named range of the user's code, as a context manager and as a decorator."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import TracebackType
from typing import Any, TypeVar, cast

from ..._core.cpython import without_signals_at_entry
from ..._core.threads import threads
from ..._dispatch import entry_globals, observer
from ..store.store import InputInfo
from .current_task import current_task, libraries
from .op_inputs import TEXT_INPUT
from .recorder import Scope, recorders_by_thread

_Function = TypeVar("_Function", bound=Callable[..., Any])

_NEVER_ENTERED = -1
_modules = sys.modules


class record_function(Scope):
    """Label a block of code: `with record_function("forward"): ...`, or `@record_function("load")` on a function.

    The label shows in profiles as a user annotation around the ops of the block. While nothing records, entering
    and leaving cost next to nothing. Entering an object again while it is still open ends its first range.
    """

    __slots__ = ()

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.began = _NEVER_ENTERED
        self.recorders = None

    @property
    def inputs(self) -> InputInfo | None:  # type: ignore[override]
        """What the recorder notes as inputs: one without a value if there are args, as torch does."""
        return None if self.args is None else TEXT_INPUT

    def __reduce__(self) -> Any:
        """A copy or a pickle is a label of the same name that was not entered."""
        return type(self), (self.name, self.args)

    def __enter__(self) -> record_function:
        if self.name.__class__ is not str or self.args is not None:
            _check(self.name, self.args)
        if entry_globals.observers_active:
            if self.recorders is not None:
                self._close()
            recorders = recorders_by_thread.get(id(threads.state))
            if recorders is not None:
                if recorders.pending:
                    recorders.resolve()
                scopes = recorders.scopes
                self.began = perf_counter_ns()
                if libraries.modules != len(_modules):
                    libraries.look()
                if libraries.current:
                    task = current_task()
                    if task is not None or recorders.tasks is not None:
                        recorders.enter(self, task)
                # The change, without a call: the scope is open, or an interrupt came before.
                self.recorders = recorders
                scopes += (self,)
                if self.args is not None:
                    observer.tell_range_inputs((self.args,))
                return self
        self.began = 0
        return self

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self.recorders is not None:
            self._close()
        elif self.began == _NEVER_ENTERED:
            raise AssertionError("Expected record to be set")

    @without_signals_at_entry
    def _close(self) -> None:
        recorders, self.recorders = self.recorders, None
        assert recorders is not None
        scopes = recorders.scopes
        if scopes and scopes[-1] is self:
            del scopes[-1]
        else:
            scopes.remove(self)
        recorders.close(self, perf_counter_ns())

    def __call__(self, function: _Function) -> _Function:
        """Label every call of a function."""
        # One scope per thread: as within one thread, a call inside another ends the outer range, but threads that
        # run the function at the same time do not disturb each other.
        own = threading.local()

        @functools.wraps(function)
        def labeled(*args: Any, **kwargs: Any) -> Any:
            try:
                scope = own.scope
            except AttributeError:
                scope = own.scope = type(self)(self.name, self.args)
            with scope:
                return function(*args, **kwargs)

        return cast("_Function", labeled)


class step_function(record_function):
    """The label `ProfilerStep#N` around one step of a scheduled profile."""

    __slots__ = ()

    kind = observer.STEP


def _check(name: Any, args: Any) -> None:
    if not isinstance(name, str):
        raise RuntimeError(f"record_function: name must be a str, not {type(name).__name__}")
    if args is not None and not isinstance(args, str):
        raise RuntimeError(f"record_function: args must be a str or None, not {type(args).__name__}")
