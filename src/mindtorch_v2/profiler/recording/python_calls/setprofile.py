"""Listens to a thread's Python calls through sys.setprofile, for Python 3.11.

Every event costs a Python call, so the listener covers its ears while an op runs: it leaves the thread when it sees the
op's entry called and comes back when the op's frame ends. What runs inside an op is this runtime's own business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from ...._core.threads import ThreadState
from ...._dispatch import entry_globals, observer
from ..allocations import FINALISERS
from .code_origin import ENTRY, belongs

# The code of the functions that choose among the entries of one name, and of those that compile an entry when it is
# first called.
_CHOOSER = observer.dispatch_code["choose"]
_STAND_IN = observer.dispatch_code["stand_in"]

ProfileFunction = Callable[[FrameType, str, Any], None]


class Listener:
    """Fills a stream (see _stacks) from the calls of the thread that starts it."""

    def __init__(
        self,
        events: list[Any],
        clock: Callable[[], int],
        state: ThreadState,
    ) -> None:
        """`state` is that of the thread."""
        self._stream = (events, clock, state)
        self._callback: ProfileFunction | None = None
        self._retire: Callable[[], None] = _nothing
        self._previous: Any = None
        self._leaves = True
        self.listen: Callable[[], None]
        self.pause: Callable[[], None]

    @staticmethod
    def hears(code: CodeType) -> bool:
        """Whether calls of this code are in the stream: all are, but for what happens inside ops."""
        return True

    def unpacked(self, events: list[Any]) -> list[Any]:
        """The stream as _stacks wants it: a return is a mere time here, and that of an op's entry may not be there."""
        # By id(): looking a code object up by itself takes long.
        codes = {id(what): what for what in events if what.__class__ is CodeType} if self._leaves else {}
        unreturned = {
            number
            for number, code in codes.items()
            if code is _CHOOSER or code is _STAND_IN or belongs(code.co_filename) == ENTRY
        }
        made: list[Any] = []
        take = made.extend
        following = iter(events)
        for what in following:
            if what.__class__ is int:
                take((None, -1, what))
            elif id(what) in unreturned:
                place, now = next(following), next(following)
                take((what, place, now, None, -1, now))
            else:
                take((what, next(following), next(following)))
        return made

    def prepare(self) -> None:
        """Make ready to listen to the calling thread, together with whoever does already."""
        self._previous = sys.getprofile()
        chained = self._previous if callable(self._previous) else None
        self._leaves = chained is None
        self._callback, self._retire = _functions(*self._stream, chained)
        # No Python functions, so that calling them is not heard.
        self.listen = partial(sys.setprofile, self._callback)
        self.pause = partial(sys.setprofile, None)
        if self._leaves:
            self._stream[2].tracer_switch = (self.pause, self.listen)

    def stop(self) -> None:
        """Listen no more; give the thread back. On another thread it takes effect with that thread's next call."""
        self._retire()
        if sys.getprofile() is self._callback:
            _give_back(self._previous)
        self._callback = self._previous = None
        self._retire = _nothing


def _give_back(previous: Any) -> None:
    if previous is None or callable(previous):
        sys.setprofile(previous)
    else:  # cProfile's, which is no Python function
        previous.enable()


def _nothing(*values: Any) -> None:
    pass


def _functions(
    events: list[Any], clock: Callable[[], int], state: ThreadState, previous: Any
) -> tuple[ProfileFunction, Callable[[], None]]:
    """The function for sys.setprofile, and one that makes it leave."""
    builtins: dict[Any, str] = {}
    methods: dict[tuple[str, str], str] = {}

    def describe(function: Any) -> str:
        owner = function.__self__
        if owner is None or isinstance(owner, ModuleType):
            text = builtins[function] = f"<built-in function {function.__name__}>"
            return text
        # A bound method refers to its object: only the names are kept.
        key = (type(owner).__name__, function.__name__)
        text = methods.get(key, "")
        if not text:
            text = methods[key] = f"<built-in method {key[1]} of {key[0]} object>"
        return text

    def chained(frame: FrameType, event: str, arg: Any) -> None:
        previous(frame, event, arg)
        everything(frame, event, arg)

    def retire() -> None:
        own.update(extend=_nothing, append=_nothing, clock=leave)
        state.tracer_pause_factory = state.tracer_switch = None

    def leave() -> int:
        sys.setprofile(previous)
        return 0

    # Names that are global to the callback cost it nothing when it is called, unlike those that it would close over.
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
        "tensor_end": FINALISERS[0],
        "storage_end": FINALISERS[1],
        "left_at": None,
        "getframe": sys._getframe,
    }
    everything = FunctionType(_every_event.__code__.replace(), own)
    callback = FunctionType(_outside_of_ops.__code__.replace(), own)

    class Pause:
        """While there is one the listener is away.

        Neither its beginning nor its end is a Python function, so that they are not heard.
        """

        __slots__ = ()
        __init__ = partial(sys.setprofile, None)
        __del__ = partial(sys.setprofile, callback)

    own["Pause"] = Pause
    if previous is not None:  # somebody else counts on every event
        return chained, retire
    return callback, retire


# What the two functions below find in the globals that each listener gives them.
extend: Callable[[tuple[Any, ...]], None] = _nothing
append: Callable[[int], None] = _nothing
clock: Callable[[], int] = int
state: Any = None
describe: Callable[[Any], str] = str
names: dict[Any, str] = {}  # of builtins
entries: dict[str, Any] = {}  # the globals of generated op entries, and of nothing else
Pause: Any = None
# The code of functions that are on their way to an op's entry, and of those that run at the end of tensors.
chooser: CodeType | None = None
stand_in: CodeType | None = None
tensor_end: CodeType | None = None
storage_end: CodeType | None = None
# Which function is on its way to an op's entry now: nothing is taken down until that returns.
left_at: CodeType | None = None
getframe: Callable[[int], FrameType] = sys._getframe


def _outside_of_ops(frame: FrameType, event: str, arg: Any) -> None:
    global left_at
    if event == "return":
        if arg is None or left_at is not None:  # None: also when an exception ends the frame
            code = frame.f_code
            if left_at is not None:
                if code is left_at:
                    left_at = None
                return
            if code is tensor_end or code is storage_end or frame.f_globals is entries:
                return
        append(clock())
    elif event == "call":
        code = frame.f_code
        if left_at is not None:
            state.tracer_pause_factory = Pause
            return
        if code is tensor_end or code is storage_end:
            return
        try:
            extend((code, getframe(2).f_lasti, clock()))
        except ValueError:  # nobody called it
            extend((code, -1, clock()))
        state.tracer_pause_factory = Pause
        if code is chooser or code is stand_in:
            left_at = code
    elif left_at is not None:
        pass
    elif event == "c_call":
        extend((names.get(arg) or describe(arg), frame.f_lasti, clock()))
    else:  # c_return, c_exception
        append(clock())


def _every_event(frame: FrameType, event: str, arg: Any) -> None:
    if event == "call":
        back = frame.f_back
        extend((frame.f_code, -1 if back is None else back.f_lasti, clock()))
    elif event == "c_call":
        extend((names.get(arg) or describe(arg), frame.f_lasti, clock()))
    else:
        append(clock())
