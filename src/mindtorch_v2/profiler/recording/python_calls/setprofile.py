"""CallTracer for Python 3.11: traces a thread's Python calls through sys.setprofile.

Every event costs a Python call, so the tracer is off while an op runs: the op's entry, once called, holds a Pause, which
takes the profile function off the thread when it is made and puts it back when the entry's frame ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from ...._core.threads import ThreadState
from ...._dispatch import entry_globals, observer
from ..allocations import FINALIZERS
from .code_origin import ENTRY, classify

# The code of the functions that choose among the entries of one name, and of those that compile an entry when it is
# first called.
_CHOOSER = observer.dispatch_code["choose"]
_STAND_IN = observer.dispatch_code["stand_in"]

ProfileFunction = Callable[[FrameType, str, Any], None]


class CallTracer:
    """Appends the calls and returns of the thread that calls prepare() to a stream (see `stream`)."""

    def __init__(self, events: list[Any], clock: Callable[[], int], state: ThreadState) -> None:
        """`state` is that of the traced thread: ops find there how to pause the tracer."""
        self._stream = (events, clock, state)
        self._callback: ProfileFunction | None = None
        self._retire: Callable[[], None] = _nothing
        self._previous: Any = None
        self._pauses_in_ops = True
        self.resume: Callable[[], None]
        self.pause: Callable[[], None]

    @staticmethod
    def traces(code: CodeType) -> bool:
        """Whether calls of this code are in the stream: those of any code are, except for what runs inside ops."""
        return True

    def unpacked(self, events: list[Any]) -> list[Any]:
        """Events with three entries each, as `stream` describes.

        Here a return is only its time, and an op's entry has none, since its end is not traced: it gets one at its start.
        """
        # By id(): hashing a code object takes long.
        codes = {id(what): what for what in events if what.__class__ is CodeType} if self._pauses_in_ops else {}
        unreturned = {
            number
            for number, code in codes.items()
            if code is _CHOOSER or code is _STAND_IN or classify(code.co_filename) == ENTRY
        }
        unpacked: list[Any] = []
        extend = unpacked.extend
        entries = iter(events)
        for what in entries:
            if what.__class__ is int:
                extend((None, -1, what))
            elif id(what) in unreturned:
                place, now = next(entries), next(entries)
                extend((what, place, now, None, -1, now))
            else:
                extend((what, next(entries), next(entries)))
        return unpacked

    def prepare(self) -> None:
        """Bind to the calling thread, on which another profile function may be set. Tracing begins with resume()."""
        self._previous = sys.getprofile()
        chained = self._previous if callable(self._previous) else None
        self._pauses_in_ops = chained is None
        self._callback, self._retire = _functions(*self._stream, chained)
        # Not Python functions, so that calling them is not traced.
        self.resume = partial(sys.setprofile, self._callback)
        self.pause = partial(sys.setprofile, None)
        if self._pauses_in_ops:
            self._stream[2].tracer_switch = (self.pause, self.resume)

    def stop(self) -> None:
        """End tracing and restore the profile function that was set before.

        Called on another thread, it takes effect with the traced thread's next event.
        """
        self._retire()
        if sys.getprofile() is self._callback:
            _restore(self._previous)
        self._callback = self._previous = None
        self._retire = _nothing


def _restore(previous: Any) -> None:
    if previous is None or callable(previous):
        sys.setprofile(previous)
    else:  # cProfile's, which is no Python function
        previous.enable()


def _nothing(*values: Any) -> None:
    pass


def _functions(
    events: list[Any], clock: Callable[[], int], state: ThreadState, previous: Any
) -> tuple[ProfileFunction, Callable[[], None]]:
    """The function for sys.setprofile, and one that has it take itself off the thread at its next event."""
    builtins: dict[Any, str] = {}
    methods: dict[tuple[str, str], str] = {}

    def describe(function: Any) -> str:
        owner = function.__self__
        if owner is None or isinstance(owner, ModuleType):
            text = builtins[function] = f"<built-in function {function.__name__}>"
            return text
        # A bound method would keep its object alive: only the names are kept.
        key = (type(owner).__name__, function.__name__)
        text = methods.get(key, "")
        if not text:
            text = methods[key] = f"<built-in method {key[1]} of {key[0]} object>"
        return text

    def chained(frame: FrameType, event: str, arg: Any) -> None:
        previous(frame, event, arg)
        everything(frame, event, arg)

    def retire() -> None:
        own.update(extend=_nothing, append=_nothing, clock=restore)
        state.tracer_pause_factory = state.tracer_switch = None

    def restore() -> int:
        sys.setprofile(previous)
        return 0

    # Global names cost a function nothing when it is called, unlike those that it closes over.
    own = {
        "extend": events.extend,
        "append": events.append,
        "clock": clock,
        "state": state,
        "describe": describe,
        "names": builtins,
        "entries": vars(entry_globals),
        "chooser": _CHOOSER,
        "stand_in": _STAND_IN,
        "tensor_end": FINALIZERS[0],
        "storage_end": FINALIZERS[1],
        "untraced": None,
        "getframe": sys._getframe,
    }
    everything = FunctionType(_every_event.__code__.replace(), own)
    callback = FunctionType(_outside_of_ops.__code__.replace(), own)

    class Pause:
        """Tracing is off while an instance exists.

        Neither its construction nor its end calls a Python function, so that they are not traced.
        """

        __slots__ = ()
        __init__ = partial(sys.setprofile, None)
        __del__ = partial(sys.setprofile, callback)

    own["Pause"] = Pause
    if previous is not None:  # that function needs every event, so there are no pauses
        return chained, retire
    return callback, retire


# Stand for the globals that each tracer gives its copy of the two functions below.
extend: Callable[[tuple[Any, ...]], None] = _nothing
append: Callable[[int], None] = _nothing
clock: Callable[[], int] = int
state: Any = None
describe: Callable[[Any], str] = str
names: dict[Any, str] = {}  # texts of builtins
entries: dict[str, Any] = {}  # the globals of generated op entries, and of nothing else
Pause: Any = None
# The code of functions that lead to an op's entry, and of those that run when a tensor or storage ends.
chooser: CodeType | None = None
stand_in: CodeType | None = None
tensor_end: CodeType | None = None
storage_end: CodeType | None = None
# The chooser or stand-in that is running now: nothing is recorded until it returns.
untraced: CodeType | None = None
getframe: Callable[[int], FrameType] = sys._getframe


def _outside_of_ops(frame: FrameType, event: str, arg: Any) -> None:
    """The profile function: every event except for what runs inside ops and finalizers."""
    global untraced  # noqa: PLW0603  of the tracer, see `own`
    if event == "return":
        if arg is None or untraced is not None:  # None: also when an exception ends the frame
            code = frame.f_code
            if untraced is not None:
                if code is untraced:
                    untraced = None
                return
            if code is tensor_end or code is storage_end or frame.f_globals is entries:
                return
        append(clock())
    elif event == "call":
        code = frame.f_code
        if untraced is not None:
            state.tracer_pause_factory = Pause
            return
        if code is tensor_end or code is storage_end:
            return
        try:
            extend((code, getframe(2).f_lasti, clock()))
        except ValueError:  # the outermost frame has no caller
            extend((code, -1, clock()))
        state.tracer_pause_factory = Pause
        if code is chooser or code is stand_in:
            untraced = code
    elif untraced is not None:
        pass
    elif event == "c_call":
        extend((names.get(arg) or describe(arg), frame.f_lasti, clock()))
    else:  # c_return, c_exception
        append(clock())


def _every_event(frame: FrameType, event: str, arg: Any) -> None:
    """The profile function beside another one: ops are not left out, since the other one is not to miss them."""
    if event == "call":
        back = frame.f_back
        extend((frame.f_code, -1 if back is None else back.f_lasti, clock()))
    elif event == "c_call":
        extend((names.get(arg) or describe(arg), frame.f_lasti, clock()))
    else:
        append(clock())
