"""CallTracer for Python 3.12 and later: traces a thread's Python calls through sys.monitoring.

The events of this runtime's own code are disabled one by one as they come up, so that they cost nothing after the first
time. Only the entries of ops stay enabled, since they tell which line an op was called from. What runs until an entry
returns is this runtime's inside, as is what the inside calls in libraries: none of it is traced.

What a callback raises is raised where the program is, also just before a lock is released. So the callbacks call nothing that
is not written in Python: signals are handled after such a call. They take times and thread ids from one iterator.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from itertools import repeat, starmap
from threading import get_ident
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any

from ...._core.cpython import without_signals_at_entry
from ...._core.threads import ThreadState
from .code_origin import ENTRY, FIND_AND_LOAD, IMPORT_PREFIX, INSIDE, LIBRARY, PROFILER_FOLDER, USER, classify

_monitoring: Any = getattr(sys, "monitoring", None)
_NAME = "profiler"


class CallTracer:
    """Appends the calls and returns of the thread that calls prepare() to a stream (see `stream`)."""

    def __init__(self, events: list[Any], clock: Callable[[], int], state: ThreadState) -> None:
        """`state` is for tracers that pause while an op runs; this one does not."""
        self._stream = (events, clock)
        self._thread = 0
        self.blocked_by = ""  # why nothing is traced: greenlets take turns
        self.names: dict[str, Any] = {}  # the globals of its callbacks
        self.functions: dict[int, Callable[..., Any]] = {}

    @property
    def left_out(self) -> int:
        """How many calls were left out since prepare() because they were made while a module was imported."""
        return int(self.names.get("left_out", 0))

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
        self.blocked_by = ""
        self._bind(get_ident())

    def start_on(self, thread: int) -> bool:
        """Trace another thread from now on; always True."""
        self._bind(thread)
        _hub.add(thread, self)
        return True

    def _bind(self, thread: int) -> None:
        self._thread = thread
        self.functions, self.names = _functions(*self._stream, thread)

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
            callback = function
            if len(functions) > 1:
                outward = (_CALLER + 1,) if event in _BEGINNINGS else ()
                callback = _by_thread({of: own[event] for of, own in functions.items()}, outward)
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


def _by_thread(functions: dict[int, Callable[..., Any]], outward: tuple[int, ...]) -> Callable[..., Any]:
    """One callback for several tracers: that of the calling thread's handles the event, if there is one.

    `outward` is passed along: how far the caller's frame is from theirs, with this one in between.
    """
    idents = iter(get_ident, -1)

    @without_signals_at_entry
    def call(*values: Any) -> Any:
        for ident in idents:
            return functions[ident](*values, *outward) if ident in functions else None
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


_CALLER = 2  # how far outward from a callback the frame is that called the code
# The events whose callbacks want to know that.
_BEGINNINGS = (
    () if _monitoring is None else tuple(getattr(_monitoring.events, f"PY_{name}") for name in ("START", "RESUME", "THROW"))
)


def _functions(
    events: list[Any], clock: Callable[[], int], thread: int
) -> tuple[dict[int, Callable[..., Any]], dict[str, Any]]:
    """The callback for each event, which append to `events` what happens on a thread, and the globals that they share."""
    # Global names cost a function nothing when it is called, unlike those that it closes over.
    own: dict[str, Any] = {
        "events": events,
        "moments": zip(starmap(get_ident, repeat(())), starmap(clock, repeat(())), strict=False),
        "thread": thread,
        "names": {},
        "methods": {},
        "untraced": None,
        "depth": 0,
        "call_traced": False,
        "importing": 0,
        "imports": [],
        "left_out": 0,
        "import_prefix": IMPORT_PREFIX,
        "profiler_folder": PROFILER_FOLDER,
        "disable": _monitoring.DISABLE,
        "frames": _Frames(),
        "origins": _origins,
        "find_and_load": FIND_AND_LOAD,
        "USER": USER,
        "INSIDE": INSIDE,
        "ENTRY": ENTRY,
        "LIBRARY": LIBRARY,
        "BuiltinFunctionType": BuiltinFunctionType,
        "MethodDescriptorType": MethodDescriptorType,
        "ModuleType": ModuleType,
    }

    def bound(function: Any) -> FunctionType:
        return FunctionType(function.__code__.replace(), own, argdefs=function.__defaults__)

    inner = {"describe": _describe, "outside": _outside, "by_profiler": _by_profiler, "begin": _begin, "returned": _returned}
    for name, function in inner.items():
        own[name] = bound(function)
    names = _monitoring.events
    return {
        names.PY_START: own["begin"],
        names.PY_RESUME: own["begin"],
        names.PY_THROW: bound(_thrown_into),
        names.PY_RETURN: own["returned"],
        names.PY_YIELD: own["returned"],
        names.PY_UNWIND: bound(_unwound),
        names.CALL: bound(_call),
        names.C_RETURN: own.setdefault("called", bound(_called)),
        names.C_RAISE: own["called"],
    }, own


# Stand for the globals that each tracer gives its copies of the functions below.
events: list[Any] = []
moments: Iterator[tuple[int, int]] = iter(())  # each reading of the calling thread's id and of the clock
thread = 0  # the traced one
names: dict[Any, str] = {}  # texts of builtins
methods: dict[tuple[str, str], str] = {}  # of methods that are bound to an object, by the names of class and method
disable: Any = None
frames: Any = None
origins: dict[str, int] = {}
find_and_load: CodeType | None = None
# What runs inside the code `untraced` is not traced: how deep its calls are nested, and whether its own call was traced.
untraced: CodeType | None = None
depth = 0
call_traced = False
importing = 0  # how many imports are under way
imports: list[bool] = []  # of those inside of what is not traced, whether they are traced
import_prefix, profiler_folder = IMPORT_PREFIX, ""
left_out = 0  # calls that are not appended because a module is being imported


@without_signals_at_entry
def _describe(function: Any) -> str:
    if function.__class__ is MethodDescriptorType:
        text = f"<built-in method {function.__name__} of {function.__objclass__.__name__} object>"
        names[function] = text
        return text
    owner = function.__self__
    if owner is None or ModuleType in owner.__class__.__mro__:
        text = names[function] = f"<built-in function {function.__name__}>"
        return text
    # A bound method would keep its object alive: only the names are kept.
    key = (owner.__class__.__name__, function.__name__)
    if key not in methods:
        methods[key] = f"<built-in method {key[1]} of {key[0]} object>"
    return methods[key]


@without_signals_at_entry
def _outside(frame: FrameType) -> FrameType | None:
    """The nearest frame outward that is not this runtime's inside. A loop would be a place where signals are handled."""
    back = frame.f_back
    return back if back is None or origins[back.f_code.co_filename] != INSIDE else outside(back)


@without_signals_at_entry
def _by_profiler(frame: FrameType | None) -> bool:
    """Whether the nearest frame that is neither a library's nor this runtime's inside called into the profiler."""
    if frame is None or origins[frame.f_code.co_filename] == USER:
        return False
    return profiler_folder in frame.f_code.co_filename or by_profiler(frame.f_back)


@without_signals_at_entry
def _begin(code: CodeType, offset: int, caller_at: int = _CALLER) -> Any:  # noqa: C901  a call would be one more for each event
    global untraced, depth, call_traced, importing, imports, left_out  # noqa: PLW0603  of the tracer, see `own`
    origin = origins[code.co_filename]
    if origin == INSIDE:
        return disable
    # On any thread: most ops run inside of another, and need no time.
    if depth and code is not untraced and code is not find_and_load:
        return None
    for ident, now in moments:
        if ident != thread:
            return None
        if depth:
            if code is untraced:
                depth += 1
                return None
            by_user = not by_profiler(frames[caller_at])
            imports += (by_user,)
            if by_user:
                importing += 1
                stream = events
                stream += (import_prefix + frames[caller_at - 1].f_locals["name"], -1, now)
            return None
        place = -1
        try:
            caller = frames[caller_at]
        except ValueError:  # the thread's first frame
            pass
        else:
            if origins[caller.f_code.co_filename] == INSIDE:
                if origin == LIBRARY and (code is not find_and_load or by_profiler(caller)):
                    untraced, depth, call_traced = code, 1, False
                    return None
                caller = outside(caller)
            if caller is not None:
                place = caller.f_lasti
        what: Any = code
        if code is find_and_load:
            importing += 1
            what = import_prefix + frames[caller_at - 1].f_locals["name"]
        elif importing:
            left_out += 1
            return None
        stream = events
        stream += (what, place, now)
        if origin == ENTRY:
            untraced, depth, call_traced = code, 1, True
        return None
    return None


@without_signals_at_entry
def _thrown_into(code: CodeType, offset: int, error: BaseException, caller_at: int = _CALLER) -> None:
    begin(code, offset, caller_at + 1)  # cannot be disabled


@without_signals_at_entry
def _returned(code: CodeType, offset: int, value: Any) -> Any:
    global depth, importing  # noqa: PLW0603  of the tracer, see `own`
    if origins[code.co_filename] == INSIDE:
        return disable
    if depth and code is not untraced and code is not find_and_load:
        return None
    for ident, now in moments:
        if ident != thread:
            return None
        if depth and code is not untraced:
            if imports:
                by_user = imports[-1]
                del imports[-1]
                if by_user:
                    importing -= 1
                    stream = events
                    stream += (None, -1, now)
            return None
        if depth:
            depth -= 1
            if depth or not call_traced:
                return None
        if importing:
            if code is not find_and_load:
                return None
            importing -= 1
        stream = events
        stream += (None, -1, now)
        return None
    return None


@without_signals_at_entry
def _unwound(code: CodeType, offset: int, error: BaseException) -> None:
    returned(code, offset, None)  # cannot be disabled


@without_signals_at_entry
def _call(code: CodeType, offset: int, function: Any, argument: Any) -> Any:
    global left_out  # noqa: PLW0603  of the tracer, see `own`
    origin = origins[code.co_filename]
    if origin in (INSIDE, ENTRY):
        return disable
    kind = function.__class__
    if (kind is not BuiltinFunctionType and kind is not MethodDescriptorType) or depth:
        return None
    for ident, now in moments:
        if ident != thread:
            return None
        if importing:
            left_out += 1
            return None
        stream = events
        stream += (names[function] if function in names else describe(function), offset, now)
        return None
    return None


@without_signals_at_entry
def _called(code: CodeType, offset: int, function: Any, argument: Any) -> None:
    kind = function.__class__
    if (kind is not BuiltinFunctionType and kind is not MethodDescriptorType) or depth or importing:
        return
    for ident, now in moments:
        if ident == thread and origins[code.co_filename] not in (INSIDE, ENTRY):
            stream = events
            stream += (None, -1, now)
        return


begin: Callable[..., Any] = _begin
returned: Callable[..., Any] = _returned
describe: Callable[[Any], str] = _describe
outside: Callable[[FrameType], FrameType | None] = _outside
by_profiler: Callable[[FrameType | None], bool] = _by_profiler
