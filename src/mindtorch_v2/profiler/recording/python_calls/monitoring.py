"""Listens to a thread's Python calls through sys.monitoring, for Python 3.12 and later.

The events of this runtime's own code are switched off one by one as they come up, so that they cost nothing after the
first time. Only the entries of ops stay on, since they tell which line an op was called from. Whatever happens until
they return is this runtime's own business, as is what it calls in libraries.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from threading import get_ident
from types import BuiltinFunctionType, CodeType, MethodDescriptorType, ModuleType
from typing import Any

from ...._core.threads import ThreadState
from .code_origin import ENTRY, INSIDE, LIBRARY, belongs

_monitoring: Any = getattr(sys, "monitoring", None)
_NAME = "profiler"


class Listener:
    """Fills a stream (see _stacks) from the calls of the thread that prepares it."""

    def __init__(
        self,
        events: list[Any],
        clock: Callable[[], int],
        state: ThreadState,
    ) -> None:
        """`state` is for listeners that leave the thread while an op runs; this one does not."""
        self._stream = (events, clock)
        self._thread = 0
        self.functions: dict[int, Callable[..., Any]] = {}

    @staticmethod
    def hears(code: CodeType) -> bool:
        """Whether calls of this code are in the stream."""
        return _kinds[code.co_filename] != INSIDE

    @staticmethod
    def unpacked(events: list[Any]) -> list[Any]:
        """The stream as _stacks wants it: as it is."""
        return events

    def prepare(self) -> None:
        """Make ready to listen to the calling thread."""
        self._thread = get_ident()
        self.functions = _functions(*self._stream, self._thread)

    def listen(self) -> None:
        """Begin to listen, or go on."""
        _hub.join(self._thread, self)

    def pause(self) -> None:
        """Nothing of what follows would be heard anyway: it is this runtime's inside."""

    def stop(self) -> None:
        """Listen no more."""
        _hub.leave(self._thread)


class _Hub:
    """The one place where events arrive: they come from every thread and are handed to the thread's listener."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._tool = -1
        self._lock = threading.Lock()

    def join(self, thread: int, listener: Listener) -> None:
        with self._lock:
            if self._listeners.get(thread) is not listener:
                self._listeners[thread] = listener
                self._connect()

    def leave(self, thread: int) -> None:
        with self._lock:
            if self._listeners.pop(thread, None) is not None:
                self._connect()

    def _connect(self) -> None:
        """Hand events straight to a single listener, or to the one of the thread they come from."""
        if not self._listeners:
            _monitoring.set_events(self._tool, 0)
            _monitoring.free_tool_id(self._tool)
            self._tool = -1
            return
        first = self._tool < 0
        if first:
            self._tool = _free_tool()
            _monitoring.restart_events()
        functions = [listener.functions for listener in self._listeners.values()]
        for event, function in functions[0].items():
            to_all = function if len(functions) == 1 else _each_until_heard([one[event] for one in functions])
            _monitoring.register_callback(self._tool, event, to_all)
        if first:
            _monitoring.set_events(self._tool, sum(functions[0]))


_hub = _Hub()


def _each_until_heard(functions: list[Callable[..., Any]]) -> Callable[..., Any]:
    """Every listener knows its own thread, so at most one takes the event."""

    def call(*values: Any) -> Any:
        for function in functions:
            answer = function(*values)
            if answer is not None:
                return answer
        return None

    return call


def _free_tool() -> int:
    for tool in (_monitoring.PROFILER_ID, 3, 4):
        try:
            _monitoring.use_tool_id(tool, _NAME)
        except ValueError:
            continue
        return int(tool)
    raise RuntimeError("with_stack: every tool id of sys.monitoring that a profiler may use is taken")


class _Kinds(dict[str, int]):
    """What the code of a file belongs to, looked up once."""

    def __missing__(self, filename: str) -> int:
        kind = self[filename] = belongs(filename)
        return kind


_kinds = _Kinds()


def _functions(stream: list[Any], clock: Callable[[], int], mine: int) -> dict[int, Callable[..., Any]]:
    """What to call for which event, on behalf of the thread `mine`."""
    extend = stream.extend
    switch_off, kinds, getframe, ident = _monitoring.DISABLE, _kinds, sys._getframe, get_ident
    builtins: dict[Any, str] = {}
    methods: dict[tuple[str, str], str] = {}
    # What runs inside this code is not heard: how often it has been entered, and whether its own call was heard.
    quiet: CodeType | None = None
    depth = 0
    call_heard = False

    def describe(function: Any) -> str:
        if type(function) is MethodDescriptorType:
            text = f"<built-in method {function.__name__} of {function.__objclass__.__name__} object>"
            return builtins.setdefault(function, text)
        owner = function.__self__
        if owner is None or isinstance(owner, ModuleType):
            return builtins.setdefault(function, f"<built-in function {function.__name__}>")
        # A bound method refers to its object: only the names are kept.
        key = (type(owner).__name__, function.__name__)
        return methods.setdefault(key, f"<built-in method {key[1]} of {key[0]} object>")

    def begin(code: CodeType, offset: int) -> Any:
        nonlocal quiet, depth, call_heard
        if ident() != mine:
            return None
        kind = kinds[code.co_filename]
        if kind == INSIDE:
            return switch_off
        if depth:
            if code is quiet:
                depth += 1
            return None
        caller = getframe(1).f_back
        while caller is not None and kinds[caller.f_code.co_filename] == INSIDE:
            if kind == LIBRARY:
                quiet, depth, call_heard = code, 1, False
                return None
            caller = caller.f_back
        extend((code, -1 if caller is None else caller.f_lasti, clock()))
        if kind == ENTRY:
            quiet, depth, call_heard = code, 1, True
        return None

    def thrown_into(code: CodeType, offset: int, error: BaseException) -> None:
        begin(code, offset)  # cannot be switched off

    def returned(code: CodeType, offset: int, value: Any) -> Any:
        nonlocal depth
        if ident() != mine:
            return None
        kind = kinds[code.co_filename]
        if kind == INSIDE:
            return switch_off
        if depth:
            if code is not quiet:
                return None
            depth -= 1
            if depth or not call_heard:
                return None
        extend((None, -1, clock()))
        return None

    def unwound(code: CodeType, offset: int, error: BaseException) -> None:
        returned(code, offset, None)  # cannot be switched off

    def call(code: CodeType, offset: int, function: Any, argument: Any) -> Any:
        kind = function.__class__
        if depth or kind is BuiltinFunctionType or kind is MethodDescriptorType:
            if kinds[code.co_filename] in (INSIDE, ENTRY):
                return switch_off
            if depth or ident() != mine:
                return None
        else:
            return None
        extend((builtins.get(function) or describe(function), offset, clock()))
        return None

    def called(code: CodeType, offset: int, function: Any, argument: Any) -> None:
        kind = function.__class__
        if (kind is not BuiltinFunctionType and kind is not MethodDescriptorType) or depth or ident() != mine:
            return
        if kinds[code.co_filename] not in (INSIDE, ENTRY):
            extend((None, -1, clock()))

    events = _monitoring.events
    return {
        events.PY_START: begin,
        events.PY_RESUME: begin,
        events.PY_THROW: thrown_into,
        events.PY_RETURN: returned,
        events.PY_YIELD: returned,
        events.PY_UNWIND: unwound,
        events.CALL: call,
        events.C_RETURN: called,
        events.C_RAISE: called,
    }
