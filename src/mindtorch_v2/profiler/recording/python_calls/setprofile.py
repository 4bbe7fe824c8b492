"""CallTracer for Python 3.11: traces a thread's Python calls through sys.setprofile.

Every event costs a Python call, so the tracer is off while an op runs: the op's entry, once called, holds a Pause, which
takes the profile function off the thread when it is made and puts it back when the entry's frame ends.

A thread has room for one profile function, and other tools want it too. One that is a Python function is called along. One
that is not (cProfile, VizTracer, pyinstrument) keeps the place if it was there first, and gets it if it comes later: it can
neither be called nor put back as it was. Then this tracer records no further calls, and says so; ops do not touch the other
tool's function.

The interpreter takes off a profile function that raises, and raises that where the program is, also at the entry of an
`__exit__`. So the profile functions call nothing that is not written in Python: signals are handled after such a call. They
take the time from an iterator and append with `+=`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from ...._core.cpython import set_profile_of_thread, without_signals_at_entry
from ...._core.threads import ThreadState, threads
from ...._dispatch import entry_globals, observer
from ...._whole import load_runtime
from ..allocations import FINALIZERS
from .code_origin import ENTRY, FIND_AND_LOAD, IMPORT_PREFIX, classify

load_runtime()  # for a streamed file, which mtprof reads without it
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
        self._elsewhere = 0  # the thread, if it is another than the one that started the tracer
        # Why nothing is traced: a tool was there first and cannot be called along, or greenlets take turns.
        self.blocked_by = ""
        self.resume: Callable[[], None] = _nothing
        self.pause: Callable[[], None] = _nothing
        self._names: dict[str, Any] = {}

    @property
    def left_out(self) -> int:
        """How many calls were left out since prepare() because they were made while a module was imported."""
        return int(self._names.get("left_out", 0))

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
        unreturned = {number for number, code in codes.items() if _leads_to_op(code)}
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
        self.blocked_by = _taken_by(self._previous) if self._previous is not None and chained is None else ""
        if self.blocked_by:
            self.resume = self.pause = _nothing
            return
        self._pauses_in_ops = chained is None
        self._callback, self._retire, self._names = _functions(*self._stream, chained)
        # Not Python functions, so that calling them is not traced.
        self.resume = partial(sys.setprofile, self._callback)
        self.pause = partial(sys.setprofile, None)
        if self._pauses_in_ops:
            self._stream[2].tracer_switch = (self.pause, self.resume)

    def start_on(self, thread: int) -> bool:
        """Trace another thread from now on; False if that cannot be done. Ops are not left out: they know nothing of it."""
        self._pauses_in_ops = False
        callback, self._retire, self._names = _functions(*self._stream, None, everywhere=True)
        self._callback, self._elsewhere = callback, thread
        return set_profile_of_thread(thread, callback)

    @property
    def runs_here(self) -> bool:
        """Whether the calling thread is the traced one and its profile function is this tracer's."""
        return self._callback is not None and sys.getprofile() is self._callback

    def lost_to(self, events: list[Any]) -> str:
        """Why the tracer sees nothing after the last of `events`, or "". Only the traced thread can tell."""
        state = self._stream[2]
        if self.blocked_by or self.runs_here or threads.state is not state:
            return self.blocked_by
        # The tracer is off too while the engine runs, and while an op does: then the last event is the call of its entry.
        within_op = len(events) >= 3 and events[-3].__class__ is CodeType and _leads_to_op(events[-3])
        return "" if state.paused_tracer is not None or within_op else _taken_by(sys.getprofile())

    def stop(self) -> None:
        """End tracing and restore the profile function that was set before; one that another tool has set meanwhile stays.

        Called on another thread, it takes effect with the traced thread's next event.
        """
        self._retire()
        if self.runs_here:
            sys.setprofile(self._previous)
        elif self._elsewhere:
            set_profile_of_thread(self._elsewhere, None)
        self._callback = self._previous = None
        self._retire = _nothing


def _leads_to_op(code: CodeType) -> bool:
    """Whether the tracer is paused after a call of this code: an op's entry, or what leads to one."""
    return code is _CHOOSER or code is _STAND_IN or classify(code.co_filename) == ENTRY


def _nothing(*values: Any) -> None:
    pass


def _taken_by(profile_function: Any) -> str:
    """Why a profile function of another tool is in the way, for a message."""
    if profile_function is None:
        name = "another profiler, which has ended since,"
    else:
        named = profile_function if hasattr(profile_function, "__qualname__") else type(profile_function)
        name = f"{named.__module__}.{named.__qualname__}"
    return f"{name} had the interpreter's one place for a profile function"


def _functions(
    events: list[Any], clock: Callable[[], int], state: ThreadState, previous: Any, *, everywhere: bool = False
) -> tuple[ProfileFunction, Callable[[], None], dict[str, Any]]:
    """The function for sys.setprofile, one that has it take itself off the thread at its next event, and its globals.

    everywhere: trace what runs inside ops, too.
    """
    builtins: dict[Any, str] = {}
    methods: dict[tuple[str, str], str] = {}

    @without_signals_at_entry
    def describe(function: Any) -> str:
        owner = function.__self__
        if owner is None or ModuleType in owner.__class__.__mro__:
            text = builtins[function] = f"<built-in function {function.__name__}>"
            return text
        # A bound method would keep its object alive: only the names are kept.
        key = (owner.__class__.__name__, function.__name__)
        if key not in methods:
            methods[key] = f"<built-in method {key[1]} of {key[0]} object>"
        return methods[key]

    def chained(frame: FrameType, event: str, arg: Any) -> None:
        previous(frame, event, arg)
        everything(frame, event, arg)

    def retire() -> None:
        own.update(events=[], times=iter(restore, -1), untraced=None, Pause=None)
        state.tracer_pause_factory = state.tracer_switch = None

    @without_signals_at_entry
    def restore() -> int:
        sys.setprofile(previous)
        return 0

    # Global names cost a function nothing when it is called, unlike those that it closes over.
    own = {
        "events": events,
        "times": iter(clock, -1),
        "state": state,
        "describe": describe,
        "names": builtins,
        "entries": vars(entry_globals),
        "entries_file": entry_globals.__file__,
        "chooser": _CHOOSER,
        "stand_in": _STAND_IN,
        "tensor_end": FINALIZERS[0],
        "storage_end": FINALIZERS[1],
        "untraced": None,
        "find_and_load": FIND_AND_LOAD,
        "importing": 0,
        "import_prefix": IMPORT_PREFIX,
        "left_out": 0,
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
    if everywhere:
        return everything, retire, own
    if previous is not None:  # that function needs every event, so there are no pauses
        return chained, retire, own
    return callback, retire, own


# Stand for the globals that each tracer gives its copy of the two functions below.
events: list[Any] = []
times: Iterator[int] = iter(())  # each reading of the clock
state: Any = None
describe: Callable[[Any], str] = str
names: dict[Any, str] = {}  # texts of builtins
entries: dict[str, Any] = {}  # the globals of generated op entries, and of the functions of one file
entries_file = ""  # that file
Pause: Any = None
# The code of functions that lead to an op's entry, and of those that run when a tensor or storage ends.
chooser: CodeType | None = None
stand_in: CodeType | None = None
tensor_end: CodeType | None = None
storage_end: CodeType | None = None
# The chooser or stand-in that is running now: nothing is recorded until it returns.
untraced: CodeType | None = None
# The code that imports a module, how many imports are under way, and how many calls inside of them were left out.
find_and_load: CodeType | None = None
importing: int = 0
left_out: int = 0
import_prefix = IMPORT_PREFIX


@without_signals_at_entry
def _outside_of_ops(frame: FrameType, event: str, arg: Any) -> None:  # noqa: C901  a call would be one more for each event
    """The profile function: every event except for what runs inside ops and finalizers."""
    global untraced, importing, left_out  # noqa: PLW0603  of the tracer, see `own`
    if event == "return":
        if importing and untraced is None:
            if frame.f_code is not find_and_load:
                return
            importing -= 1
        if arg is None or untraced is not None:  # None: also when an exception ends the frame
            code = frame.f_code
            if untraced is not None:
                if code is untraced:
                    untraced = None
                return
            if code is tensor_end or code is storage_end:
                return
            if frame.f_globals is entries and code.co_filename != entries_file:
                return
        for now in times:
            stream = events
            stream += (now,)
            break
    elif event == "call":
        code = frame.f_code
        # Only the entry that begins now may pause this function: another tool may be in its place when a later one begins.
        if frame.f_globals is entries and code.co_filename != entries_file:
            state.tracer_pause_factory = Pause
        if untraced is not None:
            return
        if code is tensor_end or code is storage_end:
            return
        what: Any = code
        if code is find_and_load:
            importing += 1
            what = import_prefix + frame.f_locals["name"]
        elif importing:
            left_out += 1
            return
        back = frame.f_back
        for now in times:
            stream = events
            stream += (what, -1 if back is None else back.f_lasti, now)
            break
        if code is chooser or code is stand_in:
            untraced = code
    elif untraced is not None:
        pass
    elif importing:
        if event == "c_call":
            left_out += 1
    elif event == "c_call":
        what = names[arg] if arg in names else describe(arg)
        for now in times:
            stream = events
            stream += (what, frame.f_lasti, now)
            break
    else:  # c_return, c_exception
        for now in times:
            stream = events
            stream += (now,)
            break


@without_signals_at_entry
def _every_event(frame: FrameType, event: str, arg: Any) -> None:
    """The profile function beside another one: ops are not left out, since the other one is not to miss them."""
    global importing, left_out  # noqa: PLW0603  of the tracer, see `own`
    if event == "call":
        what: Any = frame.f_code
        if what is find_and_load:
            importing += 1
            what = import_prefix + frame.f_locals["name"]
        elif importing:
            left_out += 1
            return
        back = frame.f_back
        for now in times:
            stream = events
            stream += (what, -1 if back is None else back.f_lasti, now)
            break
    elif importing and (event != "return" or frame.f_code is not find_and_load):
        if event == "c_call":
            left_out += 1
    elif event == "c_call":
        what = names[arg] if arg in names else describe(arg)
        for now in times:
            stream = events
            stream += (what, frame.f_lasti, now)
            break
    else:
        if importing:
            importing -= 1
        for now in times:
            stream = events
            stream += (now,)
            break
