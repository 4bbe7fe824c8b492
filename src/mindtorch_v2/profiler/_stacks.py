"""Python calls while recording: one flat stream of calls and returns per thread, cut into stretches by recordings.

The stream is one list with three entries per event. What happened: a code object or a name for a call, None for a
return. For a call, how far the calling frame had come (f_lasti), from which line numbers are made afterwards. When.
No frame is kept, so nothing that the program frees stays alive.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

if sys.version_info >= (3, 12):
    from ._monitoring import Listener
else:
    from ._setprofile import Listener


WIDTH = 3


class OpenFrame(NamedTuple):
    """A Python frame that was running already when a stretch began."""

    code: CodeType
    line: int


class Stretch(NamedTuple):
    """A part of a stream without gaps: the frames on the stack when it began, and what happened since."""

    start: int
    end: int | None
    opened: list[OpenFrame]
    opened_places: list[int]
    events: list[Any]  # WIDTH entries each: what, place, time


class PythonWindow:
    """What one recording wants of a thread's stream: from its opening to its closing."""

    def __init__(self, log: PythonLog) -> None:
        self._log = log
        # start, frames, places, and where in the stream it begins
        self._begun: list[tuple[int, list[OpenFrame], list[int], int]] = []
        self._kept: list[Stretch] | None = None

    def begin(self, now: int, frame: FrameType | None) -> None:
        """Begin a stretch with the stack that `frame` is the top of."""
        log = self._log
        opened, places = _open_frames(frame, log.listener.hears)
        self._begun.append((now, opened, places, len(log.events)))

    def stretches(self, end: int | None = None) -> list[Stretch]:
        """What was heard so far."""
        return list(self._cut(end)) if self._kept is None else self._kept

    def close(self, end: int) -> None:
        """Take out of the stream what belongs to the window."""
        self._kept = self.stretches(end)

    def _cut(self, end: int | None) -> Iterator[Stretch]:
        events = self._log.events
        for at, (start, opened, opened_places, first) in enumerate(self._begun):
            last, finish = len(events), end
            if at + 1 < len(self._begun):
                finish, _, _, last = self._begun[at + 1]
            yield Stretch(start, finish, opened, opened_places, events[first:last])


def _open_frames(
    frame: FrameType | None, hears: Callable[[CodeType], bool]
) -> tuple[list[OpenFrame], list[int]]:
    """The frames of a stack whose code the listener hears, outermost first, and how far each one's caller had come."""
    frames: list[FrameType] = []
    while frame is not None:
        if hears(frame.f_code):
            frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    places = [-1, *(caller.f_lasti for caller in frames[:-1])][: len(frames)]
    return [OpenFrame(frame.f_code, frame.f_lineno) for frame in frames], places


class PythonLog:
    """The stream of one thread. It flows while at least one window is open."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.events: list[Any] = []
        self._clock = clock
        self._windows: list[PythonWindow] = []
        self.listener = Listener(self.events, clock, self._begin_again)

    def open(self) -> PythonWindow:
        """Begin a window with the calling thread's stack as it is."""
        window = PythonWindow(self)
        if self._windows:
            self.listener.pause()
        else:
            self.listener.prepare()
        self._windows.append(window)
        # From here to the end nothing is heard but the return of this function.
        window.begin(self._clock(), sys._getframe())
        self.listener.listen()
        return window

    def close(self, window: PythonWindow, end: int) -> None:
        """End a window. May be called on another thread."""
        if len(self._windows) > 1:
            self.listener.pause()
            window.close(end)
            self._windows.remove(window)
            self.listener.listen()
            return
        self.listener.stop()
        window.close(end)
        self._windows.clear()
        self.events.clear()

    def _begin_again(self, frame: FrameType | None) -> None:
        """The listener missed something: what it knew of the stack no longer holds."""
        for window in self._windows:
            window.begin(self._clock(), frame)
