"""Python calls while recording: the events of sys.setprofile, kept as three flat lists per thread.

`objects` says what happened: a code object or a name for a call, None for a return. `times` has one moment per
event. `places` has, for every call, how far the calling frame had come (f_lasti), from which line numbers are made
afterwards. No frame is kept, so nothing that the program frees stays alive.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from .._dispatch import namespace

ProfileFunction = Callable[[FrameType, str, Any], None]


class OpenFrame(NamedTuple):
    """A Python frame that was running already when recording began."""

    code: CodeType
    line: int


class PythonLog:
    """The Python calls of one thread."""

    def __init__(self, clock: Callable[[], int], stopped_elsewhere: bool = False) -> None:
        """`stopped_elsewhere`: another thread may call stop(), which cannot reach into this one."""
        self.objects: list[Any] = []
        self.times: list[int] = []
        self.places: list[int] = []
        self.end: int | None = None
        self._clock = clock
        self._stopped_elsewhere = stopped_elsewhere
        self._callback: ProfileFunction | None = None
        self._previous: Any = None

    def start(self) -> None:
        """Begin with the calling thread's stack as it is, without the frames of this package that lead here."""
        if self.times:
            # Resumed: whatever was open when it paused ended then.
            assert self.end is not None
            depth = len(self.objects) - 2 * self.objects.count(None)
            self.objects += [None] * depth
            self.times += [self.end] * depth
        now = self._clock()
        frames: list[FrameType] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        caller: FrameType | None = None
        for frame in reversed(frames):
            self.objects.append(OpenFrame(frame.f_code, frame.f_lineno))
            self.times.append(now)
            self.places.append(caller.f_lasti if caller is not None else -1)
            caller = frame
        self.end = None
        self._previous = sys.getprofile()
        callback = _callback(self.objects, self.times, self.places, self._clock, self._previous)
        self._callback = self._until_stopped(callback, self._previous) if self._stopped_elsewhere else callback
        sys.setprofile(self._callback)

    def stop(self, end: int) -> None:
        """Listen no more; give the thread back to whoever profiled it before."""
        self.end = end
        if sys.getprofile() is self._callback:
            sys.setprofile(self._previous)
        self._callback = self._previous = None

    def _until_stopped(self, callback: ProfileFunction, previous: Any) -> ProfileFunction:
        def until_stopped(frame: FrameType, event: str, arg: Any) -> None:
            if self.end is None:
                callback(frame, event, arg)
            else:
                sys.setprofile(previous)

        return until_stopped


def _callback(
    objects: list[Any], times: list[int], places: list[int], clock: Callable[[], int], previous: Any
) -> ProfileFunction:
    add, tick, place = objects.append, times.append, places.append
    entries = vars(namespace)  # the globals of generated op entries, and of nothing else
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

    def callback(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            back = frame.f_back
            place(-1 if back is None else back.f_lasti)
            add(frame.f_code)
            tick(clock())
        elif event == "return":
            add(None)
            tick(clock())
        elif frame.f_globals is entries:
            return
        elif event == "c_call":
            place(frame.f_lasti)
            add(builtins.get(arg) or describe(arg))
            tick(clock())
        else:  # c_return, c_exception
            add(None)
            tick(clock())

    if previous is None:
        return callback

    def both(frame: FrameType, event: str, arg: Any) -> None:
        callback(frame, event, arg)
        previous(frame, event, arg)

    return both
