"""CallTracer for Python 3.12 and later: traces a thread's Python calls through sys.monitoring.

The events of this runtime's own code are disabled one by one as they come up, so that they cost nothing after the first
time. Only the entries of ops stay enabled, since they tell which line an op was called from. What runs until an entry
returns is this runtime's inside, as is what the inside calls in libraries: none of it is traced.

What a callback raises is raised where the program is, also just before a lock is released. So the callbacks call nothing that
is not written in Python: signals are handled after such a call. They take times and thread ids from iterators.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from threading import get_ident
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType, ModuleType
from typing import Any

from ...._core.cpython import without_signals_at_entry
from ...._core.threads import ThreadState
from .code_origin import ENTRY, FIND_AND_LOAD, INSIDE, LIBRARY, classify

_monitoring: Any = getattr(sys, "monitoring", None)
_NAME = "profiler"


class CallTracer:
    """Appends the calls and returns of the thread that calls prepare() to a stream (see `stream`)."""

    def __init__(self, events: list[Any], clock: Callable[[], int], state: ThreadState) -> None:
        """`state` is for tracers that pause while an op runs; this one does not."""
        self._stream = (events, clock)
        self._thread = 0
        self.blocked_by = ""  # why nothing is traced: greenlets take turns
        self.functions: dict[int, Callable[..., Any]] = {}
        self._left_out: list[int] = [0]

    @property
    def left_out(self) -> int:
        """How many calls were left out since prepare() because they were made while a module was imported."""
        return self._left_out[0]

    @staticmethod
    def traces(code: CodeType) -> bool:
        """Whether calls of this code are in the stream: all but those of this runtime's inside."""
        return _origins[code.co_filename] != INSIDE

    @staticmethod
    def unpacked(events: list[Any]) -> list[Any]:
        """Events with three entries each, as `stream` describes; this tracer appends them so."""
        return events

    def prepare(self) -> None:
        """Bind to the calling thread. Tracing begins with resume()."""
        self._thread = get_ident()
        self.blocked_by = ""
        self._left_out = [0]
        self.functions = _functions(*self._stream, self._thread, self._left_out)

    def start_on(self, thread: int) -> bool:
        """Trace another thread from now on; always True."""
        self._thread = thread
        self._left_out = [0]
        self.functions = _functions(*self._stream, thread, self._left_out)
        _hub.add(thread, self)
        return True

    def resume(self) -> None:
        """Begin to trace the thread, or go on after pause()."""
        _hub.add(self._thread, self)

    def pause(self) -> None:
        """Does nothing: what runs between pause() and resume() is this runtime's inside, which is not traced anyway."""

    def stop(self) -> None:
        """End tracing the thread; may be called on another one."""
        _hub.remove(self._thread)

    runs_here = True

    def lost_to(self, events: list[Any]) -> str:
        """Why the tracer sees nothing after the last of `events`, or "". Not for other tools: there is room for several."""
        return self.blocked_by


class _Hub:
    """Holds the one tool id that this process uses, and hands the events of every thread to that thread's tracer."""

    def __init__(self) -> None:
        self._tracers: dict[int, CallTracer] = {}
        self._tool = -1
        self._lock = threading.Lock()

    def add(self, thread: int, tracer: CallTracer) -> None:
        with self._lock:
            if self._tracers.get(thread) is not tracer:
                if not self._tracers:
                    self._take_tool()
                self._tracers[thread] = tracer
                self._connect()

    def remove(self, thread: int) -> None:
        with self._lock:
            self._tracers.pop(thread, None)
            self._connect()

    def _connect(self) -> None:
        """Register the callbacks: those of a single tracer directly, those of several behind functions that go by thread."""
        if not self._tracers:
            if self._tool >= 0 and _monitoring.get_tool(self._tool) == _NAME:
                _monitoring.set_events(self._tool, 0)
                _monitoring.free_tool_id(self._tool)
            self._tool = -1
            return
        first = not _monitoring.get_events(self._tool)
        if first:
            _monitoring.restart_events()
        functions = {thread: tracer.functions for thread, tracer in self._tracers.items()}
        any_functions = next(iter(functions.values()))
        for event, function in any_functions.items():
            callback = function if len(functions) == 1 else _by_thread({of: own[event] for of, own in functions.items()})
            _monitoring.register_callback(self._tool, event, callback)
        if first:
            _monitoring.set_events(self._tool, sum(any_functions))

    def _take_tool(self) -> None:
        # The ids without a name first: cProfile and VizTracer ask for PROFILER_ID alone, and work beside this one.
        for tool in (3, 4, _monitoring.PROFILER_ID):
            if _monitoring.get_tool(tool) is None:
                self._tool = tool  # before it is taken, so that it is given back if an interrupt comes in between
                _monitoring.use_tool_id(tool, _NAME)
                return
        raise RuntimeError("with_stack: every tool id of sys.monitoring that a profiler may use is taken")


_hub = _Hub()


def _by_thread(functions: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    """One callback for several tracers: that of the calling thread's handles the event, if there is one."""
    idents = iter(get_ident, -1)

    @without_signals_at_entry
    def call(*values: Any) -> Any:
        for ident in idents:
            return functions[ident](*values) if ident in functions else None
        return None

    return call


class _Origins(dict[str, int]):
    """`classify` by file name, computed once per file."""

    def __missing__(self, filename: str) -> int:
        origin = self[filename] = classify(filename)
        return origin


_origins = _Origins()


class _Frames:
    """`frames[n]` is sys._getframe(n), without a call instruction."""

    __slots__ = ()
    __getitem__: Any = sys._getframe


_CALLER = 1  # of a callback


def _functions(  # noqa: C901  one closure per event, which share the state of their thread
    stream: list[Any], clock: Callable[[], int], mine: int, left_out: list[int]
) -> dict[int, Callable[..., Any]]:
    """The callback for each event, which append to `stream` what happens on the thread `mine`.

    `left_out[0]` counts the calls that are not appended because a module is being imported.
    """
    disable, origins = _monitoring.DISABLE, _origins
    times, idents, frames = iter(clock, -1), iter(get_ident, -1), _Frames()
    builtins: dict[Any, str] = {}
    methods: dict[tuple[str, str], str] = {}
    # What runs inside the code `untraced` is not traced: how deep its calls are nested, and whether its own call was traced.
    untraced: CodeType | None = None
    depth = 0
    call_traced = False
    importing = 0  # how many imports are under way

    @without_signals_at_entry
    def describe(function: Any) -> str:
        if function.__class__ is MethodDescriptorType:
            text = f"<built-in method {function.__name__} of {function.__objclass__.__name__} object>"
            builtins[function] = text
            return text
        owner = function.__self__
        if owner is None or ModuleType in owner.__class__.__mro__:
            text = builtins[function] = f"<built-in function {function.__name__}>"
            return text
        # A bound method would keep its object alive: only the names are kept.
        key = (owner.__class__.__name__, function.__name__)
        if key not in methods:
            methods[key] = f"<built-in method {key[1]} of {key[0]} object>"
        return methods[key]

    @without_signals_at_entry
    def outside(frame: FrameType) -> FrameType | None:
        """The nearest frame outward that is not this runtime's inside. A loop would be a place where signals are handled."""
        back = frame.f_back
        return back if back is None or origins[back.f_code.co_filename] != INSIDE else outside(back)

    @without_signals_at_entry
    def begin(code: CodeType, offset: int) -> Any:
        nonlocal stream, untraced, depth, call_traced, importing
        for ident in idents:
            if ident != mine:
                return None
            break
        origin = origins[code.co_filename]
        if origin == INSIDE:
            return disable
        if depth:
            if code is untraced:
                depth += 1
            return None
        frame = frames[_CALLER]
        if frame.f_code is not code:  # by way of `call`, or of `thrown_into`
            frame = frame.f_back
            if frame.f_code is not code:
                frame = frame.f_back
        caller = frame.f_back
        if caller is not None and origins[caller.f_code.co_filename] == INSIDE:
            if origin == LIBRARY:
                untraced, depth, call_traced = code, 1, False
                return None
            caller = outside(caller)
        what: Any = code
        if code is FIND_AND_LOAD:
            importing += 1
            what = "import " + frame.f_locals["name"]
        elif importing:
            left_out[0] += 1
            return None
        for now in times:
            stream += (what, -1 if caller is None else caller.f_lasti, now)
            break
        if origin == ENTRY:
            untraced, depth, call_traced = code, 1, True
        return None

    @without_signals_at_entry
    def thrown_into(code: CodeType, offset: int, error: BaseException) -> None:
        begin(code, offset)  # cannot be disabled

    @without_signals_at_entry
    def returned(code: CodeType, offset: int, value: Any) -> Any:
        nonlocal stream, depth, importing
        for ident in idents:
            if ident != mine:
                return None
            break
        origin = origins[code.co_filename]
        if origin == INSIDE:
            return disable
        if depth:
            if code is not untraced:
                return None
            depth -= 1
            if depth or not call_traced:
                return None
        if importing:
            if code is not FIND_AND_LOAD:
                return None
            importing -= 1
        for now in times:
            stream += (None, -1, now)
            break
        return None

    @without_signals_at_entry
    def unwound(code: CodeType, offset: int, error: BaseException) -> None:
        returned(code, offset, None)  # cannot be disabled

    @without_signals_at_entry
    def call(code: CodeType, offset: int, function: Any, argument: Any) -> Any:
        nonlocal stream
        kind = function.__class__
        if depth or kind is BuiltinFunctionType or kind is MethodDescriptorType:
            if origins[code.co_filename] in (INSIDE, ENTRY):
                return disable
            if depth:
                return None
            for ident in idents:
                if ident != mine:
                    return None
                break
            if importing:
                left_out[0] += 1
                return None
        else:
            return None
        what = builtins[function] if function in builtins else describe(function)
        for now in times:
            stream += (what, offset, now)
            break
        return None

    @without_signals_at_entry
    def called(code: CodeType, offset: int, function: Any, argument: Any) -> None:
        nonlocal stream
        kind = function.__class__
        if (kind is not BuiltinFunctionType and kind is not MethodDescriptorType) or depth or importing:
            return
        for ident in idents:
            if ident != mine:
                return
            break
        if origins[code.co_filename] not in (INSIDE, ENTRY):
            for now in times:
                stream += (None, -1, now)
                break

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
